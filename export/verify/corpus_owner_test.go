package verify_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/evidencetest/spelltest"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
)

// seededReader is endless bytes that a name decides.
type seededReader struct {
	seed [32]byte
	n    uint64
}

func seeded(name string) *seededReader { return &seededReader{seed: sha256.Sum256([]byte(name))} }

func (r *seededReader) Read(b []byte) (int, error) {
	for i := range b {
		r.n++
		b[i] = byte(sha256.Sum256(fmt.Append(r.seed[:], r.n))[0])
	}
	return len(b), nil
}

// spellingAttacks respell every layer of a bundle, each well signed and in a tree that fits.
func spellingAttacks(c *corpus) {
	envelope := spelltest.Parse(c.file[1:])
	spelltest.Respelled(envelope.Bytes(), func(name string, bent []byte) {
		c.add("spelling: envelope: "+name, append([]byte{0xd2}, bent...), verify.CheckEnvelope)
	})
	spelltest.Respelled(c.protected(), func(name string, bent []byte) {
		c.add("spelling: protected header: "+name, c.sealed(bent, c.env.Payload), verify.CheckEnvelope)
	})
	for _, place := range []struct {
		name string
		path []uint64
	}{
		{"payload", nil}, {"identity", []uint64{2}}, {"stream", []uint64{5, 0}}, {"event", []uint64{5, 0, 3, 0}},
		{"proof", []uint64{5, 0, 3, 0, 3}}, {"blob", []uint64{6, 0}}, {"schema", []uint64{8, 0}},
	} {
		whole := spelltest.Parse(c.env.Payload)
		spelltest.Respelled(whole.At(place.path...).Bytes(), func(name string, bent []byte) {
			root := spelltest.Parse(c.env.Payload)
			root.At(place.path...).Raw = bent
			c.add("spelling: "+place.name+": "+name, c.sealed(c.protected(), root.Bytes()), verify.CheckPayload)
		})
	}
	at := newOwner(c.t, c.f).index("attempt-one", "ContainerExited", 0)
	inTree := func(place string, of func(*owner) []byte, put func(*owner, []byte), checks ...string) {
		spelltest.Respelled(of(newOwner(c.t, c.f)), func(name string, bent []byte) {
			o := newOwner(c.t, c.f)
			put(o, bent)
			c.add("spelling: "+place+": "+name, o.bundle(c.file), checks...)
		})
	}
	event := func(o *owner) ledger.Event {
		e, err := ledger.UnmarshalLeaf(o.leaves[at])
		require.NoError(c.t, err)
		return e
	}
	inTree("leaf", func(o *owner) []byte { return o.leaves[at] },
		func(o *owner, b []byte) { o.replace(at, leafHash(o.leaves[at]), b) }, verify.CheckInclusion)
	inTree("meta", func(o *owner) []byte { return event(o).Meta },
		func(o *owner, b []byte) { o.rewrite(at, func(e *ledger.Event) { e.Meta = b }) }, verify.CheckEvents)
	inTree("data", func(o *owner) []byte { return event(o).Data },
		func(o *owner, b []byte) { o.rewrite(at, func(e *ledger.Event) { e.Data = b }) }, verify.CheckEvents)
	// An optional field that is written although it holds nothing.
	for name, pair := range map[string][]*spelltest.Item{
		"false": {{N: 4, Width: -1}, {Raw: []byte{0xf4}}}, "zero": {{N: 6, Width: -1}, {N: 0, Width: -1}},
		"empty list": {{N: 7, Width: -1}, {Major: 4, Width: -1}}, "null": {{N: 13, Width: -1}, {Raw: []byte{0xf6}}},
	} {
		o := newOwner(c.t, c.f)
		o.rewrite(at, func(e *ledger.Event) {
			root := spelltest.Parse(e.Data)
			i := 0
			for i < len(root.Kids) && root.Kids[i].N < pair[0].N {
				i += 2
			}
			root.Kids = slices.Insert(root.Kids, i, pair...)
			e.Data = root.Bytes()
		})
		c.add("spelling: data: written though absent: "+name, o.bundle(c.file), verify.CheckEvents)
	}
	// Blobs: the event names the bent bytes.
	registered := newOwner(c.t, c.f).index("attempt-alone", "AttemptRegistered", 0)
	p := c.payload()
	var r evidence.AttemptRegistered
	e, err := ledger.UnmarshalLeaf(newOwner(c.t, c.f).leaves[registered])
	require.NoError(c.t, err)
	require.NoError(c.t, evidence.Unmarshal(e.Data, &r))
	recipe, _ := p.Blob(bundle.BlobDigest(r.Recipe))
	spelltest.Respelled(recipe, func(name string, bent []byte) {
		o := newOwner(c.t, c.f)
		digest := sha256.Sum256(bent)
		o.rewrite(registered, data(c.t, func(r *evidence.AttemptRegistered) { r.Recipe = digest }))
		c.add("spelling: recipe: "+name, o.bundle(c.file, func(p *bundle.Payload) { holdBlob(p, bent) }), verify.CheckRecipe, verify.CheckRecord)
	})
}

// holdBlob puts a blob in its place.
func holdBlob(p *bundle.Payload, b []byte) {
	d := bundle.BlobDigest(sha256.Sum256(b))
	i, there := slices.BinarySearchFunc(p.Blobs, d, func(b bundle.Blob, d bundle.BlobDigest) int { return bytes.Compare(b.Digest[:], d[:]) })
	if !there {
		p.Blobs = slices.Insert(p.Blobs, i, bundle.Blob{Digest: d, Data: b})
	}
}

// ownerAttacks are lies in well-formed, well-proved trees: what the events mean is wrong.
func ownerAttacks(c *corpus) {
	type lie struct {
		name, stream, typ string
		change            func(*ledger.Event)
		checks            []string
	}
	hist, rec := []string{verify.CheckHistory, verify.CheckRecord}, []string{verify.CheckRecord}
	t := c.t
	for _, l := range []lie{
		{"exit code made 0", "attempt-failed", "ContainerExited", data(t, func(e *evidence.ContainerExited) { e.ExitCode = 0 }), rec},
		{"exit code made 1", "attempt-one", "ContainerExited", data(t, func(e *evidence.ContainerExited) { e.ExitCode = 1 }), rec},
		{"OOM hidden", "attempt-one", "ContainerExited", data(t, func(e *evidence.ContainerExited) { e.OOMEvent = evidence.OOMSeen }), rec},
		{"duration changed", "attempt-one", "ContainerExited", data(t, func(e *evidence.ContainerExited) { e.Duration++ }), rec},
		{"exit of another container", "attempt-one", "ContainerExited", data(t, func(e *evidence.ContainerExited) { e.Handle[3] ^= 1 }), hist},
		{"a control made unequal", "attempt-one", "IsolationObserved", data(t, func(e *evidence.IsolationObserved) { e.Controls[0].Equal = false }), []string{verify.CheckHistory, verify.CheckRecord}},
		{"a control's value changed", "attempt-one", "IsolationObserved", data(t, func(e *evidence.IsolationObserved) { e.Controls[0].Value[0] ^= 1 }), []string{verify.CheckControls}},
		{"a control's kind raised", "attempt-one", "KernelObserved", data(t, func(e *evidence.KernelObserved) { e.Controls[0].ID++ }), []string{verify.CheckControls, verify.CheckRecord, verify.CheckHistory}},
		{"container ID changed", "attempt-one", "ContainerCreated", data(t, func(e *evidence.ContainerCreated) { e.Container[0] ^= 1 }), hist},
		{"removal of another container", "attempt-one", "RemovalOrdered", data(t, func(e *evidence.RemovalOrdered) { e.Container[0] ^= 1 }), hist},
		{"removal said incomplete", "attempt-one", "RemovalObserved", data(t, func(e *evidence.RemovalObserved) { e.State = "incomplete" }), hist},
		{"custody's request changed", "attempt-alone", "CustodyTaken", data(t, func(e *evidence.CustodyTaken) { e.Request[0] ^= 1 }), []string{verify.CheckRequest}},
		{"manifest changed", "attempt-one", "SourceMaterialized", data(t, func(e *evidence.SourceMaterialized) { e.Manifest[0] ^= 1 }), []string{verify.CheckRecord, verify.CheckSource}},
		{"file count changed", "attempt-one", "SourceMaterialized", data(t, func(e *evidence.SourceMaterialized) { e.Files++ }), []string{verify.CheckSource}},
		{"source bytes changed", "attempt-one", "SourceMaterialized", data(t, func(e *evidence.SourceMaterialized) { e.Bytes++ }), []string{verify.CheckSource}},
		{"output length changed", "attempt-one", "OutputCaptured", data(t, func(e *evidence.OutputCaptured) { e.Stdout.Stored++ }), []string{verify.CheckOutput, verify.CheckRecord}},
		{"output said truncated", "attempt-one", "OutputCaptured", data(t, func(e *evidence.OutputCaptured) { e.Stdout.Truncated = true }), []string{verify.CheckOutput, verify.CheckRecord}},
		{"received digest changed", "attempt-one", "OutputCaptured", data(t, func(e *evidence.OutputCaptured) { e.Stdout.ReceivedHash[0] ^= 1 }), []string{verify.CheckOutput, verify.CheckRecord}},
		{"outputs swapped", "attempt-one", "OutputCaptured", data(t, func(e *evidence.OutputCaptured) { e.Stdout, e.Stderr = e.Stderr, e.Stdout }), rec},
		{"record's digest changed", "attempt-one", "AttemptFinished", data(t, func(e *evidence.AttemptFinished) { e.Record[0] ^= 1 }), rec},
		{"attempt's name changed", "attempt-one", "AttemptRegistered", data(t, func(e *evidence.AttemptRegistered) { e.Attempt = "two" }), []string{verify.CheckRecord, verify.CheckHistory}},
		{"binding removed", "attempt-one", "AttemptRegistered", data(t, func(e *evidence.AttemptRegistered) { e.Binding = nil }), []string{verify.CheckRecord, verify.CheckStreams}},
		{"bound to another version", "attempt-one", "AttemptRegistered", data(t, func(e *evidence.AttemptRegistered) { e.Binding.Version = 2 }), []string{verify.CheckRecord, verify.CheckHistory}},
		{"revision changed", "attempt-alone", "AttemptRegistered", data(t, func(e *evidence.AttemptRegistered) { e.Subject.Revision = "f" + e.Subject.Revision[1:] }), []string{verify.CheckRecord, verify.CheckRequest}},
		{"generation raised", "attempt-one", "AttemptClaimed", data(t, func(e *evidence.AttemptClaimed) { e.Generation = 2 }), hist},
		{"a reduction accepted less", "attempt-one", "AttemptClaimed", data(t, func(e *evidence.AttemptClaimed) { e.Accepted = nil }), []string{verify.CheckHistory, verify.CheckRecord}},
		{"claim on no basis", "attempt-one", "AttemptClaimed", data(t, func(e *evidence.AttemptClaimed) { e.Basis = nil }), []string{verify.CheckClaim, verify.CheckHistory, verify.CheckStreams}},
		{"claim on another leaf", "attempt-one", "AttemptClaimed", data(t, func(e *evidence.AttemptClaimed) { e.Basis[0].Leaf[0] ^= 1 }), []string{verify.CheckClaim}},
		{"claim on an older version", "attempt-one", "AttemptClaimed", data(t, func(e *evidence.AttemptClaimed) { e.Basis[0].Version-- }), []string{verify.CheckClaim}},
		{"claim on a later version", "attempt-one", "AttemptClaimed", data(t, func(e *evidence.AttemptClaimed) { e.Basis[0].Version += 900 }), []string{verify.CheckClaim}},
		{"policy of another epoch", "policy-main", "EpochAdvanced", data(t, func(e *evidence.EpochAdvanced) { e.Epoch = 2 }), []string{verify.CheckHistory, verify.CheckClaim}},
		{"context of another epoch", "change-fix", "ContextSet", data(t, func(e *evidence.ContextSet) { e.Context.Epoch = 2 }), []string{verify.CheckHistory, verify.CheckClaim}},
		{"listed under another name", "change-fix", "AttemptOpened", data(t, func(e *evidence.AttemptOpened) { e.Attempt = "nobody" }), hist},
		{"listed with another registration", "change-fix", "AttemptOpened", data(t, func(e *evidence.AttemptOpened) { e.Registration = append(e.Registration, 0) }), hist},
		{"change of another name", "change-fix", "ChangeOpened", data(t, func(e *evidence.ChangeOpened) { e.Change = "other" }), hist},
		{"another media type", "attempt-one", "ContainerExited", func(e *ledger.Event) { e.Media = "application/json" }, []string{verify.CheckEvents}},
		{"an event under another type", "attempt-one", "ContainerStarted", func(e *ledger.Event) { e.Type = "StartOrdered" }, hist},
		{"an actor without a name", "attempt-one", "ContainerStarted", func(e *ledger.Event) { e.Meta = []byte{0xa0} }, []string{verify.CheckEvents}},
		{"a probe nobody ran", "attempt-one", "RuntimeObserved", data(t, func(e *evidence.RuntimeObserved) {
			e.Probe = &evidence.Basis{Stream: e.Identity.Stream(), Version: 0}
		}), []string{verify.CheckStreams}},
		{"ledger opened by another key", "ledger", "LedgerOpened", data(t, func(e *evidence.LedgerOpened) { e.Bundle = c.spki(exporttest.ECDSA(t, "stranger").Public()) }), []string{verify.CheckIdentity}},
		{"ledger of another ID", "ledger", "LedgerOpened", data(t, func(e *evidence.LedgerOpened) { e.Ledger[4] ^= 1 }), []string{verify.CheckIdentity}},
		{"an event that doesn't belong in ledger", "ledger", "StreamSealed", func(e *ledger.Event) {
			e.Type, e.Data = "EpochAdvanced", evidence.Marshal(evidence.EpochAdvanced{Epoch: 1})
		}, []string{verify.CheckIdentity}},
	} {
		o := newOwner(t, c.f)
		o.rewrite(o.index(l.stream, l.typ, 0), l.change)
		c.add("owner: "+l.name, o.bundle(c.file), l.checks...)
	}

	// Chains: the leaf stands where it says and follows from nothing.
	for name, bend := range map[string]func(*ledger.Event){
		"prev of another event": func(e *ledger.Event) { e.Prev = bytes.Clone(e.Prev); e.Prev[0] ^= 1 },
		"version skipped":       func(e *ledger.Event) { e.Version++ },
		"another stream's":      func(e *ledger.Event) { e.Stream = "attempt-other" },
	} {
		o := newOwner(t, c.f)
		i := o.index("attempt-one", "ContainerExited", 0)
		e, err := ledger.UnmarshalLeaf(o.leaves[i])
		require.NoError(t, err)
		bend(&e)
		o.leaves[i] = ledger.MarshalLeaf(e)
		c.add("owner: chain: "+name, o.bundle(c.file), verify.CheckStreams)
	}
	rewrittenHistories(c)
}

// rewrittenHistories leave out, repeat or swap events of a run, in a ledger where nothing else is wrong.
func rewrittenHistories(c *corpus) {
	events := evidencetest.Success().Finished()
	legal := map[string]bool{ // the order of these decides nothing, and a removal may be ordered again
		"6 RuntimeObserved after IsolationObserved": true,
		"12 OutputCaptured after RuntimeObserved":   true,
		"13 RuntimeObserved after RemovalOrdered":   true,
		"with 14 RemovalOrdered twice":              true,
	}
	write := func(name string, events []evidence.Payload) {
		if legal[name] {
			delete(legal, name)
			return
		}
		f := exporttest.New(c.t)
		f.Keep(c.t, evidencetest.Success())
		f.Append(c.t, "attempt-one", events...)
		f.Append(c.t, evidence.LedgerStream, evidence.StreamSealed{})
		file := handmade(c.t, f, []string{"attempt-one", "ledger"})
		c.attacks = append(c.attacks, attack{name: "history: " + name, file: file, trust: &f.Identity,
			checks: []string{verify.CheckHistory, verify.CheckRecord}})
	}
	for i, e := range events[:len(events)-1] {
		write(fmt.Sprintf("without %d %s", i, e.EventType()), slices.Delete(slices.Clone(events), i, i+1))
		write(fmt.Sprintf("with %d %s twice", i, e.EventType()), slices.Insert(slices.Clone(events), i, e))
		if i > 0 && i+2 < len(events) {
			swapped := slices.Clone(events)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			write(fmt.Sprintf("%d %s after %s", i, e.EventType(), events[i+1].EventType()), swapped)
		}
	}
	write("something after the record", append(slices.Clone(events), events[3]))
	write("two records", append(slices.Clone(events), events[len(events)-1]))
	require.Empty(c.t, legal, "no such histories")
}

// keyAttacks confuse keys and their validity.
func keyAttacks(c *corpus) {
	kid := func(id evidence.KeyID) []byte {
		env := c.env
		env.Protected.KeyID = id
		return seal(c.t, c.f, env)
	}
	flipped := c.f.Key.ID()
	flipped[0] ^= 1
	c.add("key: an unknown key's ID", kid(flipped), verify.CheckIdentity)
	c.add("key: the checkpoint key's ID", kid(c.f.Checkpoint.ID()), verify.CheckIdentity)
	c.add("key: no ID", kid(evidence.KeyID{}), verify.CheckIdentity)

	second, third := exporttest.ECDSA(c.t, "second"), exporttest.ECDSA(c.t, "third")
	genesis, secondID := c.f.Key.ID(), evidence.KeyIDOf(c.spki(second.Public()))
	sign := func(key crypto.Signer, msg []byte) []byte {
		sig, err := key.Sign(nil, sum(msg), crypto.SHA256)
		require.NoError(c.t, err)
		return sig
	}
	id := c.f.Identity.ID
	added := func(role evidence.KeyRole, spki []byte, by crypto.Signer, endorser evidence.KeyID) evidence.KeyAdded {
		e := evidence.KeyAdded{Role: role, Key: spki, Endorser: endorser[:]}
		e.Signature = sign(by, e.Message(id))
		return e
	}
	retired := func(spki []byte, by crypto.Signer, endorser evidence.KeyID) evidence.KeyRetired {
		e := evidence.KeyRetired{Role: evidence.RoleBundle, Key: spki, Endorser: endorser[:]}
		e.Signature = sign(by, e.Message(id))
		return e
	}
	secondSPKI, thirdSPKI := c.spki(second.Public()), c.spki(third.Public())
	good := added(evidence.RoleBundle, secondSPKI, c.f.Private, genesis)
	otherLedger := evidence.KeyAdded{Role: evidence.RoleBundle, Key: secondSPKI, Endorser: genesis[:]}
	otherLedger.Signature = sign(c.f.Private, otherLedger.Message(evidence.LedgerID{1}))
	asRetired := retired(c.f.Identity.Bundle, c.f.Private, genesis)
	for _, k := range []struct {
		name   string
		events []evidence.Payload
		signer *ecdsa.PrivateKey
		kid    evidence.KeyID
		checks []string
	}{
		{"a stranger endorsed itself", []evidence.Payload{added(evidence.RoleBundle, secondSPKI, second, secondID)}, second, secondID, []string{verify.CheckIdentity}},
		{"a stranger signed for the genesis key", []evidence.Payload{added(evidence.RoleBundle, secondSPKI, second, genesis)}, second, secondID, []string{verify.CheckIdentity}},
		{"endorsed for another ledger", []evidence.Payload{otherLedger}, second, secondID, []string{verify.CheckIdentity}},
		{"a retirement's signature for an addition", []evidence.Payload{evidence.KeyAdded{Role: evidence.RoleBundle, Key: c.f.Identity.Bundle, Endorser: genesis[:], Signature: asRetired.Signature}}, c.f.Private, genesis, []string{verify.CheckIdentity}},
		{"added as a checkpoint key", []evidence.Payload{added(evidence.RoleCheckpoint, secondSPKI, c.f.Private, genesis)}, second, secondID, []string{verify.CheckIdentity}},
		{"added twice", []evidence.Payload{good, good}, second, secondID, []string{verify.CheckIdentity}},
		{"never added", nil, second, secondID, []string{verify.CheckIdentity}},
		{"endorsed by a retired key", []evidence.Payload{good, retired(c.f.Identity.Bundle, second, secondID), added(evidence.RoleBundle, thirdSPKI, c.f.Private, genesis)}, third, evidence.KeyIDOf(thirdSPKI), []string{verify.CheckIdentity}},
		{"signed by a retired key", []evidence.Payload{good, retired(c.f.Identity.Bundle, second, secondID)}, c.f.Private, genesis, []string{verify.CheckIdentity}},
		{"retired and added again", []evidence.Payload{good, retired(c.f.Identity.Bundle, second, secondID), added(evidence.RoleBundle, c.f.Identity.Bundle, second, secondID)}, c.f.Private, genesis, []string{verify.CheckIdentity}},
		{"the last key retired", []evidence.Payload{retired(c.f.Identity.Bundle, c.f.Private, genesis)}, c.f.Private, genesis, []string{verify.CheckIdentity}},
		{"retired by a stranger", []evidence.Payload{good, retired(c.f.Identity.Bundle, third, secondID)}, second, secondID, []string{verify.CheckIdentity}},
		{"another key's signature under an added key's ID", []evidence.Payload{good}, third, secondID, []string{verify.CheckSignature}},
		{"junk added as a key", []evidence.Payload{added(evidence.RoleBundle, []byte("junk"), c.f.Private, genesis)}, c.f.Private, genesis, []string{verify.CheckIdentity}},
	} {
		f := exporttest.New(c.t)
		if len(k.events) > 0 {
			f.Append(c.t, evidence.LedgerStream, k.events...)
		}
		f.Run(c.t, evidencetest.Success())
		f.Append(c.t, evidence.LedgerStream, evidence.StreamSealed{})
		env, err := bundle.UnmarshalEnvelope(handmade(c.t, f, []string{"attempt-one", "ledger"}))
		require.NoError(c.t, err)
		env.Protected.KeyID = k.kid
		f.Private = k.signer
		c.attacks = append(c.attacks, attack{name: "key: " + k.name, file: seal(c.t, f, env), checks: k.checks})
	}
}

// boundAttacks claim more than they hold, or hold more than any bundle may.
func boundAttacks(c *corpus) {
	payload := func(name string, b []byte) {
		c.add("bound: "+name, c.sealed(c.protected(), b), verify.CheckPayload, verify.CheckEnvelope)
	}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for major, kind := range map[byte]string{2: "byte string", 3: "text", 4: "list", 5: "map"} {
		for _, n := range [][]byte{huge, {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 1, 0, 0, 0, 0}} {
			claim := append([]byte{major<<5 | 27}, n...)
			payload(fmt.Sprintf("%s of %x", kind, n), slices.Concat([]byte{0xa1, 0x05}, claim))
			c.add(fmt.Sprintf("bound: envelope of a %s of %x", kind, n), append([]byte{0xd2}, claim...), verify.CheckEnvelope)
		}
	}
	payload("lists a thousand deep", bytes.Repeat([]byte{0x81}, 1000))
	payload("lists a million deep", bytes.Repeat([]byte{0x81}, 1<<20))
	payload("maps a thousand deep", bytes.Repeat([]byte{0xa1, 0x01}, 1000))
	payload("tags a thousand deep", bytes.Repeat([]byte{0xc1}, 1000))
	payload("nine levels", append(bytes.Repeat([]byte{0x81}, 9), 0x00))
	inner := slices.Concat([]byte{0x9a, 0x00, 0x01, 0xff, 0xff}, bytes.Repeat([]byte{0x40}, 0x1ffff))
	payload("a million items", slices.Concat([]byte{0x89}, bytes.Repeat(inner, 9)))
	payload("a list of 2^17+1", slices.Concat([]byte{0x9a, 0x00, 0x02, 0x00, 0x01}, bytes.Repeat([]byte{0x40}, 1<<17+1)))
	c.add("bound: envelope a thousand deep", append([]byte{0xd2}, bytes.Repeat([]byte{0x84}, 1000)...), verify.CheckEnvelope)
	c.add("bound: header of a megabyte", c.sealed(make([]byte, 1<<20), c.env.Payload), verify.CheckEnvelope)
	c.add("bound: a file too large", append(bytes.Clone(c.file), make([]byte, bundle.MaxBundle)...), verify.CheckEnvelope)
	for name, bend := range map[string]func(*bundle.Payload){
		"a proof of 64 hashes":      func(p *bundle.Payload) { p.Streams[0].Events[0].Proof = make([]ledger.Hash, bundle.MaxProof+1) },
		"a leaf too large":          func(p *bundle.Payload) { p.Streams[0].Events[0].Leaf = make([]byte, ledger.MaxLeaf+1) },
		"a checkpoint too large":    func(p *bundle.Payload) { p.Checkpoint = make([]byte, ledger.MaxNote+1) },
		"65 judged streams":         func(p *bundle.Payload) { many(p, 65, bundle.Judged) },
		"1025 streams":              func(p *bundle.Payload) { many(p, 1025, bundle.Cited) },
		"33 schemas":                func(p *bundle.Payload) { p.Schemas = make([]bundle.Schema, bundle.MaxSchemas+1) },
		"a schema's name too long":  func(p *bundle.Payload) { p.Schemas[len(p.Schemas)-1].Name = string(bytes.Repeat([]byte("z"), 300)) },
		"an origin too long":        func(p *bundle.Payload) { p.Ledger.Origin = string(bytes.Repeat([]byte("o"), 256)) },
		"a stream's name too long":  func(p *bundle.Payload) { p.Streams[0].Name = "a" + string(bytes.Repeat([]byte("a"), 128)) },
		"32,769 events":             func(p *bundle.Payload) { p.Streams[0].Events = make([]bundle.Event, bundle.MaxEvents+1) },
		"a key too long":            func(p *bundle.Payload) { p.Ledger.Bundle = make([]byte, 1<<16) },
		"an identity of other size": func(p *bundle.Payload) { p.Ledger.Checkpoint = append(p.Ledger.Checkpoint, 0) },
	} {
		c.add("bound: "+name, c.forged(bend), verify.CheckPayload, verify.CheckEnvelope)
	}
}

func many(p *bundle.Payload, n int, role bundle.Role) {
	for i := range n {
		s := p.Streams[0]
		s.Name, s.Role = fmt.Sprintf("attempt-%05d", i), role
		p.Streams = append(p.Streams, s)
	}
	slices.SortFunc(p.Streams, func(a, b bundle.Stream) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
}
