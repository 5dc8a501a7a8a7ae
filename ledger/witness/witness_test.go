package witness_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/ledger/witness"
)

const origin = "example.org/log"

func private(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("witness test " + name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// history is a ledger that grows and signs.
type history struct {
	led    ledger.Ledger
	signer ledger.CheckpointSigner
	keys   note.Verifiers
}

func newHistory(t testing.TB) *history {
	t.Helper()
	s, err := ledger.NewEd25519Signer(origin, private("ledger"))
	require.NoError(t, err)
	keys, err := ledger.Ed25519Verifiers(origin, private("ledger").Public().(ed25519.PublicKey))
	require.NoError(t, err)
	return &history{led: ledgertest.NewMem(), signer: ledger.CheckpointSigner{Origin: origin, Signer: s}, keys: keys}
}

// grow appends until the ledger has `size` events and signs.
func (h *history) grow(t testing.TB, size uint64, salt string) ledger.Checkpoint {
	t.Helper()
	now, err := h.led.Size(t.Context())
	require.NoError(t, err)
	for ; now < size; now++ {
		_, err := h.led.Append(t.Context(), ledger.StreamID(fmt.Sprintf("s-%d", now)), ledger.NoStream,
			ledger.Prepared{Type: "T", Media: "a/b", Data: []byte(salt)})
		require.NoError(t, err)
	}
	c, err := h.led.SignCheckpoint(t.Context(), h.signer)
	require.NoError(t, err)
	return c
}

// ask makes the request that a cosigner who has seen `old` needs for a checkpoint.
func (h *history) ask(t testing.TB, old uint64, c ledger.Checkpoint) witness.Request {
	t.Helper()
	proof, err := h.led.ProveConsistency(t.Context(), old, c.Size)
	require.NoError(t, err)
	return witness.Request{Old: old, Proof: proof, Note: c.Note}
}

func cosigner(t testing.TB, name string) witness.Cosigner {
	return witness.Cosigner{Name: name, Private: private(name), Dir: t.TempDir(), Now: func() time.Time { return time.Unix(1_700_000_000, 5) }}
}

func keyOf(t testing.TB, name string) witness.Key {
	t.Helper()
	k, err := cosigner(t, name).Key()
	require.NoError(t, err)
	return k
}

// req R4
func TestCosignersRememberAndRefuse(t *testing.T) {
	h := newHistory(t)
	first, second := h.grow(t, 3, ""), ledger.Checkpoint{}
	bob := cosigner(t, "bob.example")
	_, err := bob.Cosign(h.ask(t, 0, first), origin, h.keys)
	require.NoError(t, err)
	second = h.grow(t, 9, "")

	other := newHistory(t)
	other.grow(t, 3, "another")
	fork := other.grow(t, 9, "another")
	early := newHistory(t).grow(t, 2, "")

	stale := func(t *testing.T, err error) {
		var s *witness.StaleError
		require.ErrorAs(t, err, &s)
		require.Equal(t, uint64(3), s.Seen)
	}
	forked := func(t *testing.T, err error) {
		var f *witness.ForkError
		require.ErrorAs(t, err, &f)
		require.Equal(t, first.Root, f.Seen.Root)
	}
	for name, c := range map[string]struct {
		request witness.Request
		check   func(*testing.T, error)
	}{
		"no proof":                   {witness.Request{Old: 3, Note: second.Note}, forked},
		"from the beginning":         {h.ask(t, 0, second), stale},
		"from a size never seen":     {h.ask(t, 4, second), stale},
		"another history":            {other.ask(t, 3, fork), forked},
		"another history's proof":    {witness.Request{Old: 3, Proof: other.ask(t, 3, fork).Proof, Note: second.Note}, forked},
		"a proof too long":           {witness.Request{Old: 3, Proof: append(h.ask(t, 3, second).Proof, ledger.Hash{}), Note: second.Note}, forked},
		"rolled back":                {witness.Request{Old: 2, Note: early.Note}, forked},
		"another root at that size":  {witness.Request{Old: 3, Note: newHistory(t).grow(t, 3, "x").Note}, forked},
		"signed by nobody we trust":  {witness.Request{Old: 3, Note: bytes.Replace(second.Note, []byte(origin+" "), []byte("other "), 1)}, func(t *testing.T, err error) { require.ErrorIs(t, err, ledger.ErrCheckpointUnsigned) }},
		"a changed signature":        {witness.Request{Old: 3, Note: mangle(second.Note, len(second.Note)-20)}, func(t *testing.T, err error) { require.Error(t, err) }},
		"of another origin's ledger": {witness.Request{Old: 3, Note: foreign(t).Note}, func(t *testing.T, err error) { require.ErrorIs(t, err, ledger.ErrCheckpointUnsigned) }},
	} {
		t.Run(name, func(t *testing.T) {
			signed, err := bob.Cosign(c.request, origin, h.keys)
			require.Nil(t, signed)
			c.check(t, err)
		})
	}

	// None of them moved what bob remembers: the honest request still goes through, and again.
	for range 2 {
		signed, err := bob.Cosign(h.ask(t, 3, second), origin, h.keys)
		if err != nil {
			var s *witness.StaleError
			require.ErrorAs(t, err, &s, "the second time, bob has seen size 9")
			signed, err = bob.Cosign(h.ask(t, 9, second), origin, h.keys)
		}
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(signed, second.Note), "the ledger's own lines stay")
		require.Equal(t, 1, strings.Count(string(signed), "— bob.example "))
	}
}

func mangle(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1
	return b
}

func foreign(t testing.TB) ledger.Checkpoint {
	s, err := ledger.NewEd25519Signer("other.example/log", private("foreign"))
	require.NoError(t, err)
	c, err := ledger.CheckpointSigner{Origin: "other.example/log", Signer: s}.Sign(9, ledger.Hash{1})
	require.NoError(t, err)
	return c
}

// A cosigner whose memory can't be read signs nothing: an empty memory would sign anything.
func TestDamagedMemoryRefuses(t *testing.T) {
	h := newHistory(t)
	c := h.grow(t, 3, "")
	bob := cosigner(t, "bob.example")
	_, err := bob.Cosign(h.ask(t, 0, c), origin, h.keys)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(bob.Dir, "*.seen"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("garbage"), 0o600))
	_, err = bob.Cosign(h.ask(t, 3, c), origin, h.keys)
	require.ErrorContains(t, err, "is damaged")
}

// Many at once never make a cosigner sign two histories.
func TestCosigningIsSerial(t *testing.T) {
	bob := cosigner(t, "bob.example")
	var wg sync.WaitGroup
	var mu sync.Mutex
	roots := map[ledger.Hash]bool{}
	for i := range 12 {
		h := newHistory(t)
		c := h.grow(t, 4, fmt.Sprint(i))
		r := h.ask(t, 0, c)
		wg.Go(func() {
			if _, err := bob.Cosign(r, origin, h.keys); err == nil {
				mu.Lock()
				roots[c.Root] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, roots, 1)
}

// Unknown cosigners never count, nor does one twice, nor the ledger itself.
//
// req R4
func TestQuorum(t *testing.T) {
	h := newHistory(t)
	c := h.grow(t, 5, "")
	msg := c.Note
	for _, name := range []string{"bob.example", "carol.example", "mallory.example"} {
		signed, err := cosigner(t, name).Cosign(witness.Request{Note: msg}, origin, h.keys)
		require.NoError(t, err)
		msg = signed
	}
	bob, carol, dave := keyOf(t, "bob.example"), keyOf(t, "carol.example"), keyOf(t, "dave.example")

	opened, seen, err := witness.Policy{Witnesses: []witness.Key{bob, carol, dave}, Quorum: 2}.Check(msg, origin, h.keys)
	require.NoError(t, err)
	require.Equal(t, c.Root, opened.Root)
	require.Len(t, seen, 2)
	require.Equal(t, "bob.example", seen[0].Name)
	require.Equal(t, time.Unix(1_700_000_000, 0).UTC(), seen[0].Time)

	short := func(p witness.Policy, msg []byte, have int) {
		t.Helper()
		_, _, err := p.Check(msg, origin, h.keys)
		var q *witness.QuorumError
		require.ErrorAs(t, err, &q)
		require.Equal(t, witness.QuorumError{Have: have, Want: p.Quorum}, *q)
	}
	short(witness.Policy{Witnesses: []witness.Key{bob, carol, dave}, Quorum: 3}, msg, 2)
	short(witness.Policy{Witnesses: []witness.Key{dave}, Quorum: 1}, msg, 0)
	short(witness.Policy{Witnesses: []witness.Key{bob}, Quorum: 1}, c.Note, 0)

	lines := strings.SplitAfter(string(msg), "\n")
	var bobs string
	for _, l := range lines {
		if strings.HasPrefix(l, "— bob.example ") {
			bobs = l
		}
	}
	require.NotEmpty(t, bobs)
	short(witness.Policy{Witnesses: []witness.Key{bob, dave}, Quorum: 2}, append(bytes.Clone(c.Note), bobs+bobs...), 1)

	// A known witness's signature over another checkpoint fails the whole note.
	next := h.grow(t, 6, "")
	_, _, err = witness.Policy{Witnesses: []witness.Key{bob}, Quorum: 1}.Check(append(bytes.Clone(next.Note), bobs...), origin, h.keys)
	require.ErrorContains(t, err, "invalid signature")

	// Cosignatures without the ledger's own signature say nothing.
	_, _, err = witness.Policy{Witnesses: []witness.Key{bob}, Quorum: 1}.Check([]byte(ledger.FormatCheckpoint(origin, c.Size, c.Root)+"\n"+bobs), origin, h.keys)
	require.ErrorIs(t, err, ledger.ErrCheckpointUnsigned)

	self, err := witness.NewKey(origin, private("x").Public().(ed25519.PublicKey))
	require.NoError(t, err)
	_, _, err = witness.Policy{Witnesses: []witness.Key{self}, Quorum: 1}.Check(msg, origin, h.keys)
	require.ErrorContains(t, err, "the ledger itself")
	_, err = witness.Cosigner{Name: origin, Private: private("x"), Dir: t.TempDir()}.Cosign(witness.Request{Note: msg}, origin, h.keys)
	require.ErrorContains(t, err, "the ledger's own name")

	_, _, err = witness.Policy{}.Check(msg, origin, h.keys)
	require.ErrorContains(t, err, "names 0 witnesses")
}

// What we sign, the formats library reads; what it signs, we read.
func TestCosignaturesAreCommonOnes(t *testing.T) {
	h := newHistory(t)
	c := h.grow(t, 5, "")
	signed, err := cosigner(t, "bob.example").Cosign(witness.Request{Note: c.Note}, origin, h.keys)
	require.NoError(t, err)
	v, err := formats.NewVerifierForCosignatureV1(keyOf(t, "bob.example").String())
	require.NoError(t, err)
	n, err := note.Open(signed, note.VerifierList(v))
	require.NoError(t, err)
	require.Len(t, n.Sigs, 1)

	skey := "PRIVATE+KEY+carol.example+00000000+" + base64.StdEncoding.EncodeToString(append([]byte{4}, private("carol.example").Seed()...))
	theirs, err := formats.NewSignerForCosignatureV1(skey)
	require.NoError(t, err)
	n, err = note.Open(c.Note, h.keys)
	require.NoError(t, err)
	msg, err := note.Sign(n, theirs)
	require.NoError(t, err)
	_, seen, err := witness.Policy{Witnesses: []witness.Key{keyOf(t, "carol.example")}, Quorum: 1}.Check(msg, origin, h.keys)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), seen[0].Time, time.Minute)
}

// Every changed byte of a cosigned note is refused, or loses the cosignature.
func TestMangledNotes(t *testing.T) {
	h := newHistory(t)
	c := h.grow(t, 5, "")
	msg, err := cosigner(t, "bob.example").Cosign(witness.Request{Note: c.Note}, origin, h.keys)
	require.NoError(t, err)
	p := witness.Policy{Witnesses: []witness.Key{keyOf(t, "bob.example")}, Quorum: 1}
	_, _, err = p.Check(msg, origin, h.keys)
	require.NoError(t, err)
	tried := 0
	for i := range 8 * len(msg) {
		bad := bytes.Clone(msg)
		bad[i/8] ^= 1 << (i % 8)
		_, _, err := p.Check(bad, origin, h.keys)
		require.Error(t, err, "bit %d", i)
		tried++
	}
	require.Greater(t, tried, 2000)
}
