package verify_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/ledger"
)

// owner is a ledger's owner gone bad: it holds both keys and writes whatever leaves it likes into the
// tree, with proofs and checkpoint made to fit. The tree is computed here, from RFC 6962 section 2.1.
type owner struct {
	t      testing.TB
	f      *exporttest.Fixture
	leaves [][]byte // of the whole ledger, by index
}

func newOwner(t testing.TB, f *exporttest.Fixture) *owner {
	t.Helper()
	o := &owner{t: t, f: f}
	for e, err := range f.Ledger.ReadAll(context.Background(), 0) {
		require.NoError(t, err)
		o.leaves = append(o.leaves, ledger.MarshalLeaf(e))
	}
	return o
}

func leafHash(leaf []byte) ledger.Hash { return sha256.Sum256(append([]byte{0}, leaf...)) }

func nodeHash(l, r ledger.Hash) ledger.Hash {
	return sha256.Sum256(append(append([]byte{1}, l[:]...), r[:]...))
}

// split is the largest power of two below n.
func split(n int) int {
	k := 1
	for 2*k < n {
		k *= 2
	}
	return k
}

func (o *owner) root(from, to int) ledger.Hash {
	if to-from == 1 {
		return leafHash(o.leaves[from])
	}
	k := from + split(to-from)
	return nodeHash(o.root(from, k), o.root(k, to))
}

func (o *owner) path(i, from, to int) []ledger.Hash {
	if to-from == 1 {
		return []ledger.Hash{}
	}
	k := from + split(to-from)
	if i < k {
		return append(o.path(i, from, k), o.root(k, to))
	}
	return append(o.path(i, k, to), o.root(from, k))
}

// rewrite changes the event at an index and chains those of its stream that follow it again.
func (o *owner) rewrite(i int, change func(*ledger.Event)) {
	o.t.Helper()
	e, err := ledger.UnmarshalLeaf(o.leaves[i])
	require.NoError(o.t, err)
	old := leafHash(o.leaves[i])
	change(&e)
	o.replace(i, old, ledger.MarshalLeaf(e))
}

// replace puts other bytes in a leaf's place and chains what follows it again.
func (o *owner) replace(i int, old ledger.Hash, leaf []byte) {
	o.leaves[i] = leaf
	for j := i + 1; j < len(o.leaves); j++ {
		e, err := ledger.UnmarshalLeaf(o.leaves[j])
		require.NoError(o.t, err)
		if bytes.Equal(e.Prev, old[:]) {
			next := leafHash(leaf)
			was := leafHash(o.leaves[j])
			e.Prev = next[:]
			o.replace(j, was, ledger.MarshalLeaf(e))
			return
		}
	}
}

// index finds the n-th event of a type in a stream.
func (o *owner) index(stream, typ string, n int) int {
	o.t.Helper()
	for i, leaf := range o.leaves {
		e, err := ledger.UnmarshalLeaf(leaf)
		if err != nil || string(e.Stream) != stream || e.Type != typ {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	o.t.Fatalf("stream %s has no %s", stream, typ)
	return 0
}

// bundle puts the owner's leaves, proofs and checkpoint in the place of a bundle's and signs it.
func (o *owner) bundle(file []byte, change ...func(*bundle.Payload)) []byte {
	o.t.Helper()
	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(o.t, err)
	p, err := bundle.Unmarshal(env.Payload)
	require.NoError(o.t, err)
	size := int(p.At + 1)
	for i := range p.Streams {
		for j := range p.Streams[i].Events {
			e := &p.Streams[i].Events[j]
			e.Leaf, e.Proof = o.leaves[e.Index], o.path(int(e.Index), 0, size)
		}
	}
	cp, err := o.f.Signer.Sign(uint64(size), o.root(0, size))
	require.NoError(o.t, err)
	p.Checkpoint = cp.Note
	for _, c := range change {
		c(&p)
	}
	env.Protected.Claims.Subject = p.Subject()
	return resign(o.t, o.f, env, rawPayload(o.t, p))
}

// rawPayload encodes a payload without checking it.
func rawPayload(t testing.TB, p bundle.Payload) []byte {
	t.Helper()
	b, err := unchecked.Marshal(p)
	require.NoError(t, err)
	return b
}

// data bends the payload of an event in its place, by its own encoding.
func data[P evidence.Payload](t testing.TB, bend func(*P)) func(*ledger.Event) {
	return func(e *ledger.Event) {
		var p P
		require.NoError(t, evidence.Unmarshal(e.Data, &p))
		bend(&p)
		e.Data = evidence.Marshal(p)
	}
}
