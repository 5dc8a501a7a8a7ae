package journal_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger"
)

// raw prepares an event as a forger with access to the file would: nothing is folded first.
func raw(p evidence.Payload) ledger.Prepared {
	meta, data := evidence.Encode(p, evidence.Meta{Schema: evidence.SchemaVersion, Actor: "forger"})
	return ledger.Prepared{Type: p.EventType(), Media: evidence.Media, Meta: meta, Data: data}
}

var force = journaltest.Force

// Each case forges one event; the visitor names it, and the field.
//
// req R5 req H5 req G1 req C4
func TestMeaningNamesTheFirstBadEvent(t *testing.T) {
	attempt := journal.AttemptStream("one")
	registered := func(t *testing.T, j *journal.Journal) evidence.AttemptRegistered {
		a, err := j.Attempt(t.Context(), "one")
		require.NoError(t, err)
		return a.Fold.Registered
	}
	bound := func(t *testing.T, j *journal.Journal) {
		change(t, j, "c")
		_, err := j.Register(t.Context(), forChange("one", "c"))
		require.NoError(t, err)
	}
	claimOf := func(t *testing.T, j *journal.Journal, bend func([]evidence.Basis) []evidence.Basis) ledger.Prepared {
		basis, err := j.Basis(t.Context(), journal.ChangeStream("c"), journal.PolicyStream("main"))
		require.NoError(t, err)
		return raw(evidence.AttemptClaimed{Generation: 1, Basis: bend(basis)})
	}
	same := func(bs []evidence.Basis) []evidence.Basis { return bs }
	// voided stores a claim whose ground an epoch took away before it.
	voided := func(t *testing.T, led ledger.Ledger, j *journal.Journal) evidence.Basis {
		bound(t, j)
		claim := claimOf(t, j, same)
		_, err := j.AdvanceEpoch(t.Context(), "main")
		require.NoError(t, err)
		b, err := j.Basis(t.Context(), journal.PolicyStream("main"))
		require.NoError(t, err)
		force(t, led, attempt, claim)
		return b[0]
	}
	cases := []struct {
		name, field string
		forge       func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event
	}{
		{"other media", "media", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			e := raw(evidence.StreamSealed{})
			e.Media = "application/json"
			return force(t, led, attempt, e)
		}},
		{"another spelling", "meta and data", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			e := raw(evidence.EpochAdvanced{Epoch: 2})
			e.Data = []byte{0xa1, 0x01, 0x18, 0x02} // 2 in two bytes
			return force(t, led, journal.PolicyStream("main"), e)
		}},
		{"no actor", "actor", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			e := raw(evidence.StreamSealed{})
			e.Meta = evidence.Marshal(evidence.Meta{Schema: 1})
			return force(t, led, attempt, e)
		}},
		{"a name without an ID", "stream", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			return force(t, led, "attempt--x", raw(evidence.StreamSealed{}))
		}},
		{"a runtime that is no digest", "stream", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			return force(t, led, "runtime-00", raw(evidence.StreamSealed{}))
		}},
		{"a second genesis", "index", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			return force(t, led, journal.GenesisStream, raw(genesis()))
		}},
		{"a key nobody endorsed", "history", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			pub, _, err := ed25519.GenerateKey(rand.Reader)
			require.NoError(t, err)
			spki, err := x509.MarshalPKIXPublicKey(pub)
			require.NoError(t, err)
			id := evidence.KeyIDOf(genesis().Checkpoint)
			return force(t, led, journal.GenesisStream, raw(evidence.KeyAdded{
				Role: evidence.RoleCheckpoint, Key: spki, Endorser: id[:], Signature: make([]byte, ed25519.SignatureSize)}))
		}},
		{"an event of another kind of stream", "history", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			return force(t, led, journal.PolicyStream("main"), raw(evidence.SnapshotRemoved{}))
		}},
		{"an epoch left out", "history", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			return force(t, led, journal.PolicyStream("main"), raw(evidence.EpochAdvanced{Epoch: 3}))
		}},
		{"an attempt in another's stream", "attempt", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			claimed(t, j, "one")
			return force(t, led, journal.AttemptStream("two"), raw(registered(t, j)))
		}},
		{"a step left out", "history", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			claimed(t, j, "one")
			return force(t, led, attempt, raw(evidence.StartOrdered{}))
		}},
		{"a record nobody derives", "history", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			p := claimed(t, j, "one")
			_, err := p.Append(t.Context(), afterClaim()...)
			require.NoError(t, err)
			return force(t, led, attempt, raw(evidence.AttemptFinished{Record: evidence.RecordDigest{1}}))
		}},
		{"an event after the end", "history", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			_, _, err := claimed(t, j, "one").Finish(t.Context())
			require.NoError(t, err)
			return force(t, led, attempt, raw(evidence.AttemptFenced{Generation: 2, By: evidence.FencedByRecover}))
		}},
		{"a hidden attempt", "binding", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			r := registered(t, j)
			r.Attempt = "two"
			return force(t, led, journal.AttemptStream("two"), raw(r))
		}},
		{"an attempt of no change", "binding", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			r := registered(t, j)
			r.Attempt, r.Binding.Change = "two", "nowhere"
			return force(t, led, journal.AttemptStream("two"), raw(r))
		}},
		{"an attempt listed otherwise", "data", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			r := registered(t, j)
			r.Attempt = "two"
			force(t, led, journal.ChangeStream("c"), raw(evidence.AttemptOpened{Attempt: "two", Registration: evidence.Marshal(r)}))
			r.Recipe[0]++
			return force(t, led, journal.AttemptStream("two"), raw(r))
		}},
		{"a listing for another context", "history", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			r := registered(t, j)
			r.Attempt = "two"
			r.Binding.Context[0]++
			return force(t, led, journal.ChangeStream("c"), raw(evidence.AttemptOpened{Attempt: "two", Registration: evidence.Marshal(r)}))
		}},
		{"a change in another's stream", "change", func(t *testing.T, led ledger.Ledger, _ *journal.Journal) ledger.Event {
			return force(t, led, journal.ChangeStream("c"), raw(evidence.ChangeOpened{Change: "d"}))
		}},
		{"a context under no policy", "policy", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			c := change(t, j, "c")
			c.Policy = "nowhere"
			return force(t, led, journal.ChangeStream("c"), raw(evidence.ContextSet{Version: 1, Context: c}))
		}},
		{"a context from the future", "epoch", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			c := change(t, j, "c")
			c.Epoch = 2
			return force(t, led, journal.ChangeStream("c"), raw(evidence.ContextSet{Version: 1, Context: c}))
		}},
		{"a context for a recipe without its capability", "history", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			c := change(t, j, "c")
			c.Capabilities = nil
			return force(t, led, journal.ChangeStream("c"), raw(evidence.ContextSet{Version: 1, Context: c}))
		}},
		{"a basis with another leaf", "basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			return force(t, led, attempt, claimOf(t, j, func(bs []evidence.Basis) []evidence.Basis { bs[0].Leaf[0]++; return bs }))
		}},
		{"a basis not there yet", "basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			return force(t, led, attempt, claimOf(t, j, func(bs []evidence.Basis) []evidence.Basis { bs[0].Version++; return bs }))
		}},
		{"a basis on no stream", "basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			return force(t, led, attempt, claimOf(t, j, func(bs []evidence.Basis) []evidence.Basis { bs[0].Stream = "change-b"; return bs }))
		}},
		{"a basis without the change", "basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			return force(t, led, attempt, claimOf(t, j, func(bs []evidence.Basis) []evidence.Basis { return bs[1:] }))
		}},
		{"a basis without the policy", "basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			return force(t, led, attempt, claimOf(t, j, func(bs []evidence.Basis) []evidence.Basis { return bs[:1] }))
		}},
		{"a claim under an epoch gone by", "basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			moves["epoch"](t, j)
			return force(t, led, attempt, claimOf(t, j, same))
		}},
		{"a claim under a context gone by", "basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			moves["context"](t, j)
			return force(t, led, attempt, claimOf(t, j, same))
		}},
		{"a claim under a version gone by", "basis", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			moves["version"](t, j)
			return force(t, led, attempt, claimOf(t, j, same))
		}},
		{"a valid claim called void", "claim", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			bound(t, j)
			b, err := j.Basis(t.Context(), journal.PolicyStream("main"))
			require.NoError(t, err)
			force(t, led, attempt, claimOf(t, j, same))
			return force(t, led, attempt, raw(evidence.ClaimVoided{Breaking: b[0]}))
		}},
		{"a claim voided by something else", "breaking event", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			b := voided(t, led, j)
			b.Version--
			return force(t, led, attempt, raw(evidence.ClaimVoided{Breaking: b}))
		}},
		{"a probe that isn't there", "probe", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			return relying(t, led, j, nil, func(*evidence.Basis) {})
		}},
		{"a probe that didn't see the filter", "probe", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			return relying(t, led, j, &evidence.RuntimeProbed{Controls: []evidence.Control{{ID: evidence.CtlSeccomp, Kind: evidence.Probed}}}, func(*evidence.Basis) {})
		}},
		{"a probe of another leaf", "probe", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			return relying(t, led, j, proof(), func(b *evidence.Basis) { b.Leaf[0]++ })
		}},
		{"a probe of another runtime", "probe", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			return relying(t, led, j, proof(), func(b *evidence.Basis) { b.Stream = evidence.RuntimePrefix + "00" })
		}},
		{"custody of another request", "request", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			claimed(t, j, "one")
			for _, e := range afterClaim()[:2] {
				force(t, led, attempt, raw(e))
			}
			custody, ok := afterClaim()[2].(evidence.CustodyTaken)
			require.True(t, ok)
			custody.Request[0] ^= 1
			return force(t, led, attempt, raw(custody))
		}},
		{"custody after a void claim", "claim", func(t *testing.T, led ledger.Ledger, j *journal.Journal) ledger.Event {
			voided(t, led, j)
			for _, e := range afterClaim()[:2] {
				force(t, led, attempt, raw(e))
			}
			return force(t, led, attempt, raw(afterClaim()[2]))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			led, j := begin(t)
			forged := c.forge(t, led, j)
			force(t, led, "notes", ledger.Prepared{Type: "Note", Media: "text/plain"})
			_, err := visit(t, led)
			var bad *journal.BadEventError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, c.field, bad.Field, bad.Error())
			require.Equal(t, forged.Index, bad.Index, bad.Error())
			require.Equal(t, forged.Stream, bad.Stream)
			require.Equal(t, forged.Version, bad.Version)
			require.NotEmpty(t, bad.Expected)
			require.NotEmpty(t, bad.Found)
		})
	}
}

func proof() *evidence.RuntimeProbed {
	return &evidence.RuntimeProbed{Controls: []evidence.Control{{ID: evidence.CtlSeccomp, Kind: evidence.Probed, Equal: true}}}
}

// relying stores a probe and an observation that relies on it, bent.
func relying(t testing.TB, led ledger.Ledger, j *journal.Journal, probe *evidence.RuntimeProbed, bend func(*evidence.Basis)) ledger.Event {
	t.Helper()
	claimed(t, j, "one")
	observed, ok := afterClaim()[1].(evidence.RuntimeObserved)
	require.True(t, ok)
	b := evidence.Basis{Stream: observed.Identity.Stream()}
	if probe != nil {
		e := force(t, led, ledger.StreamID(b.Stream), raw(*probe))
		b.Leaf = evidence.LeafDigest(e.Leaf())
	}
	bend(&b)
	observed.Probe = &b
	force(t, led, journal.AttemptStream("one"), raw(afterClaim()[0]))
	return force(t, led, journal.AttemptStream("one"), raw(observed))
}

// A run that relies on a probe of its runtime is sound.
//
// req C4
func TestMeaningFollowsTheProbe(t *testing.T) {
	led, j := begin(t)
	relying(t, led, j, proof(), func(*evidence.Basis) {})
	requireSound(t, led)
}

// req R4
func TestMeaningWantsTheGenesisFirst(t *testing.T) {
	var m journal.Meaning
	err := m.Visit(ledger.Event{Index: 0, Stream: "notes", Type: "Note", Media: "text/plain"})
	var bad *journal.BadEventError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "stream", bad.Field)
}

// A user's stream means nothing, whatever it pretends to be.
//
// req H6
func TestMeaningIgnoresUsersStreams(t *testing.T) {
	led, j := begin(t)
	force(t, led, "notes", raw(evidence.EpochAdvanced{Epoch: 9}), ledger.Prepared{Type: "Note", Media: "text/plain", Data: []byte("x")})
	force(t, led, "my-attempt-one", raw(evidence.AttemptFinished{}))
	claimed(t, j, "one")
	requireSound(t, led)
}

// req R7
func TestUnknownEventsAreCarriedAndNeverMisread(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	for _, id := range []evidence.AttemptID{"one", "two"} {
		_, err := j.Register(t.Context(), forChange(id, "c"))
		require.NoError(t, err)
	}
	p, err := j.Claim(t.Context(), "one", 0, runner)
	require.NoError(t, err)

	later := raw(evidence.StreamSealed{})
	later.Type = "ContextRevised"
	newType := force(t, led, journal.ChangeStream("c"), later)
	later = raw(evidence.SnapshotRemoved{})
	later.Meta = evidence.Marshal(evidence.Meta{Schema: 2, Actor: "newer"})
	newSchema := force(t, led, journal.AttemptStream("one"), later)

	before := size(t, led)
	_, err = p.Append(t.Context(), afterClaim()[0])
	require.True(t, journal.IsUnknown(err), "an attempt that can't be read is not written: %v", err)
	_, err = j.Attempt(t.Context(), "one")
	require.True(t, journal.IsUnknown(err))
	_, err = j.Claim(t.Context(), "two", 0, runner)
	require.True(t, journal.IsUnknown(err), "a claim can't rest on what can't be read: %v", err)
	_, err = j.Register(t.Context(), forChange("three", "c"))
	require.True(t, journal.IsUnknown(err))
	require.Equal(t, before, size(t, led))

	// Whatever follows in such a stream is carried too, and a claim that rests on it.
	force(t, led, journal.AttemptStream("one"), raw(evidence.AttemptFinished{}))
	basis, err := j.Basis(t.Context(), journal.ChangeStream("c"), journal.PolicyStream("main"))
	require.NoError(t, err)
	claim := force(t, led, journal.AttemptStream("two"), raw(evidence.AttemptClaimed{Generation: 1, Basis: basis}))
	m, err := visit(t, led)
	require.NoError(t, err)
	require.Equal(t, []journal.Unread{
		{Index: newType.Index, Stream: newType.Stream, Version: newType.Version, Type: "ContextRevised", Schema: 1},
		{Index: newSchema.Index, Stream: newSchema.Stream, Version: newSchema.Version, Type: "SnapshotRemoved", Schema: 2},
		{Index: claim.Index, Stream: claim.Stream, Version: claim.Version, Type: "AttemptClaimed", Schema: 1},
	}, m.Unread())
}

// req F1
func TestMeaningHandsOverFinishedAttempts(t *testing.T) {
	led, j := begin(t)
	p := claimed(t, j, "one")
	_, err := p.Append(t.Context(), afterClaim()...)
	require.NoError(t, err)
	want, last, err := p.Finish(t.Context())
	require.NoError(t, err)
	claimed(t, j, "two")
	var got []evidence.Record
	m := journal.Meaning{Finished: func(e ledger.Event, a *evidence.Attempt) {
		require.Equal(t, last.Index, e.Index)
		got = append(got, evidence.RecordOf(a))
	}}
	for e, err := range led.ReadAll(t.Context(), 0) {
		require.NoError(t, err)
		require.NoError(t, m.Visit(e))
	}
	require.Equal(t, []evidence.Record{want}, got)
	require.Equal(t, genesis(), *m.Genesis())
	require.Equal(t, [][]byte{genesis().Bundle}, m.Keys().Live(evidence.RoleBundle))
}
