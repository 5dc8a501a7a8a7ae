// Package exporttest makes ledgers to export from, for tests: in memory, with fixed keys, clock and
// randomness, so that the same steps always give the same bytes.
//
//	f := exporttest.New(t)
//	f.Run(t, evidencetest.Success())
//	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
package exporttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// Fixture is a ledger with its keys.
type Fixture struct {
	Ledger     ledger.Ledger
	Identity   bundle.Identity
	Key        export.BundleKey
	Private    *ecdsa.PrivateKey // of Key
	Checkpoint export.CheckpointKey
	Signer     ledger.CheckpointSigner

	written uint64  // events, for clock and nonces
	nonces  counter // of Journal
}

// firstTime is the time of the first event; each later one is a millisecond later.
const firstTime = 1_767_225_600_000_000_000

// New opens a ledger in memory: genesis, then the default policy at epoch 1.
func New(t testing.TB) *Fixture { return On(t, ledgertest.NewMem()) }

// On is New over an empty ledger of any kind.
func On(t testing.TB, led ledger.Ledger) *Fixture {
	t.Helper()
	f := &Fixture{Ledger: led}
	f.Private = ECDSA(t, "bundle")
	var err error
	f.Key, err = export.NewBundleKey(f.Private)
	check(t, err)
	seed := sha256.Sum256([]byte("exporttest checkpoint"))
	f.Checkpoint, err = export.NewCheckpointKey(ed25519.NewKeyFromSeed(seed[:]))
	check(t, err)
	opened := evidence.LedgerOpened{
		Ledger: evidence.LedgerID{0: 0xba, 15: 1}, Bundle: f.Key.SPKI(), Checkpoint: f.Checkpoint.SPKI(),
	}
	opened.Origin = "baildock/" + opened.Ledger.String()
	f.Identity = bundle.IdentityOf(opened)
	f.Signer, err = f.Checkpoint.Signer(opened.Origin)
	check(t, err)
	f.Append(t, evidence.LedgerStream, opened)
	f.Append(t, evidence.PolicyPrefix+string(evidence.DefaultPolicy), evidence.EpochAdvanced{Epoch: 1})
	return f
}

// ECDSA derives a P-256 key from a name.
func ECDSA(t testing.TB, name string) *ecdsa.PrivateKey {
	t.Helper()
	d := sha256.Sum256([]byte("exporttest " + name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d[:])
	check(t, err)
	return key
}

// Append appends events to a stream's end.
func (f *Fixture) Append(t testing.TB, stream string, payloads ...evidence.Payload) []ledger.Event {
	t.Helper()
	var prepared []ledger.Prepared
	for _, p := range payloads {
		m := evidence.Meta{Schema: evidence.SchemaVersion, Actor: "test"}
		binary.BigEndian.PutUint64(m.Nonce[8:], f.written+1)
		meta, data := evidence.Encode(p, m)
		prepared = append(prepared, ledger.Prepared{
			Type: p.EventType(), Time: firstTime + int64(f.written)*1_000_000, Media: evidence.Media, Meta: meta, Data: data,
		})
		f.written++
	}
	head, ok, err := f.Ledger.Head(context.Background(), ledger.StreamID(stream))
	check(t, err)
	expected := ledger.NoStream
	if ok {
		expected = head.Version
	}
	done, err := f.Ledger.Append(context.Background(), ledger.StreamID(stream), expected, prepared...)
	check(t, err)
	return done.Events
}

// Keep stores what a history's events name: recipe, environment and everything withholdable.
func (f *Fixture) Keep(t testing.TB, h *evidencetest.History) {
	t.Helper()
	blobs := []ledger.Blob{{Data: evidence.Marshal(h.Recipe)}, {Data: evidence.Marshal(h.Environment)}}
	for _, b := range h.Plain {
		blobs = append(blobs, ledger.Blob{Data: b})
	}
	for _, w := range h.Blobs {
		blobs = append(blobs, ledger.Blob{Salt: w.Descriptor.Salt[:], Data: w.Bytes}, ledger.Blob{Data: evidence.Marshal(w.Descriptor)})
	}
	check(t, f.Ledger.Put(context.Background(), blobs...))
}

// Run stores a whole history under its attempt's stream.
func (f *Fixture) Run(t testing.TB, h *evidencetest.History) []ledger.Event {
	t.Helper()
	f.Keep(t, h)
	return f.Append(t, evidence.AttemptPrefix+string(h.Registered.Attempt), h.Finished()...)
}

// Seal seals what has to be sealed before the attempts can be exported.
func (f *Fixture) Seal(t testing.TB, ids ...evidence.AttemptID) {
	t.Helper()
	f.seal(t, ids)
}

func (f *Fixture) seal(t testing.TB, ids []evidence.AttemptID, changes ...evidence.ChangeID) {
	t.Helper()
	_, streams, err := export.Unsealed(context.Background(), f.Ledger, ids, changes...)
	check(t, err)
	for _, s := range streams {
		f.Append(t, string(s), evidence.StreamSealed{})
	}
}

// Payload seals and builds.
func (f *Fixture) Payload(t testing.TB, r export.Request) ([]byte, export.Summary) {
	t.Helper()
	if r.At == nil {
		f.seal(t, r.Attempts, r.Changes...)
	}
	r.Checkpoint = f.Signer
	payload, sum, err := export.Build(context.Background(), f.Ledger, r)
	check(t, err)
	return payload, sum
}

// Export seals, builds and signs.
func (f *Fixture) Export(t testing.TB, r export.Request) []byte {
	t.Helper()
	payload, _ := f.Payload(t, r)
	file, err := export.Sign(payload, f.Key)
	check(t, err)
	return file
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Journal judges on the ledger as `operator`, with a fixed clock and nonces that count.
func (f *Fixture) Journal() *journal.Journal {
	return journal.New(journal.Config{
		Ledger: f.Ledger, Actor: "operator", Random: &f.nonces, Now: func() time.Time { return time.Unix(0, firstTime).UTC() },
	})
}

// counter gives bytes that never repeat in blocks of eight or more.
type counter uint64

func (c *counter) Read(b []byte) (int, error) {
	for i := 0; i < len(b); i += 8 {
		*c++
		var block [8]byte
		binary.BigEndian.PutUint64(block[:], uint64(*c)|1<<63)
		copy(b[i:], block[:])
	}
	return len(b), nil
}

// Change opens a change with one version and a context that fits a history's recipe, binds the
// history to it and lists its attempt. It returns the binding.
func (f *Fixture) Change(t testing.TB, id evidence.ChangeID, h *evidencetest.History) evidence.Binding {
	t.Helper()
	return f.ChangeWith(t, id, h, func(*evidence.Context) {})
}

// ChangeWith is Change with a bent context.
func (f *Fixture) ChangeWith(t testing.TB, id evidence.ChangeID, h *evidencetest.History, bend func(*evidence.Context)) evidence.Binding {
	t.Helper()
	stream := evidence.ChangePrefix + string(id)
	revision := h.Registered.Subject.Revision
	ctx := evidence.Context{
		Version: 1, Revision: revision, Capabilities: []string{evidence.CapabilityCommand},
		Required:    []evidence.RequiredEvidence{{Kind: evidence.EvidenceCommand, Digest: evidence.PlainDigest(h.Recipe.Digest())}},
		Environment: h.Environment.Digest(), Policy: evidence.DefaultPolicy, Epoch: 1,
		Reductions: []evidence.Reduction{evidence.ReducedCgroupV1},
	}
	bend(&ctx)
	repository := evidence.RepositoryID{0: 0x5e}
	f.Append(t, stream, evidence.ChangeOpened{Change: id, Repository: repository},
		evidence.VersionAdded{Version: 1, Revision: revision}, evidence.ContextSet{Version: 1, Context: ctx})
	b := evidence.Binding{Repository: repository, Change: id, Version: 1, Context: ctx.Digest()}
	f.Bind(t, b, h)
	return b
}

// Bind binds a history to a binding that is current, lists its attempt in the change, and lets its
// claim rest on the present ends of the change and the default policy.
func (f *Fixture) Bind(t testing.TB, b evidence.Binding, h *evidencetest.History) {
	t.Helper()
	stream := evidence.ChangePrefix + string(b.Change)
	h.Registered.Binding = &b
	f.Append(t, stream, evidence.AttemptOpened{Attempt: h.Registered.Attempt, Registration: evidence.Marshal(*h.Registered)})
	if h.Custody != nil {
		h.Custody.Request = h.Request()
	}
	if h.Claimed != nil {
		h.Claimed.Basis = []evidence.Basis{f.Basis(t, stream), f.Basis(t, evidence.PolicyPrefix+string(evidence.DefaultPolicy))}
	}
}

// Basis is the present end of a stream.
func (f *Fixture) Basis(t testing.TB, stream string) evidence.Basis {
	t.Helper()
	last, ok, err := f.Ledger.Head(context.Background(), ledger.StreamID(stream))
	check(t, err)
	if !ok {
		t.Fatalf("stream %s is empty", stream)
	}
	return evidence.Basis{Stream: stream, Version: uint64(last.Version), Leaf: evidence.LeafDigest(last.Leaf())}
}
