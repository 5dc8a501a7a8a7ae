package ledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
)

func testKey(t testing.TB, origin string, seed byte) (CheckpointSigner, note.Verifier) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	s, err := NewEd25519Signer(origin, key)
	require.NoError(t, err)
	v, err := NewEd25519Verifier(origin, key.Public().(ed25519.PublicKey))
	require.NoError(t, err)
	return CheckpointSigner{Origin: origin, Signer: s}, v
}

// Our keys are those of the note package in another form: each verifies what the other signs.
func TestNoteKeysAreStandard(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	ours, err := NewEd25519Signer("example.org/log", private)
	require.NoError(t, err)
	text, err := note.NewEd25519VerifierKey("example.org/log", public)
	require.NoError(t, err)
	theirs, err := note.NewVerifier(text)
	require.NoError(t, err)
	require.Equal(t, theirs.KeyHash(), ours.KeyHash())
	msg, err := note.Sign(&note.Note{Text: "text\n"}, ours)
	require.NoError(t, err)
	_, err = note.Open(msg, note.VerifierList(theirs))
	require.NoError(t, err)

	skey, vkey, err := note.GenerateKey(rand.Reader, "example.org/log")
	require.NoError(t, err)
	signer, err := note.NewSigner(skey)
	require.NoError(t, err)
	c, err := CheckpointSigner{Origin: "example.org/log", Signer: signer}.Sign(3, Hash{1})
	require.NoError(t, err)
	verifier, err := note.NewVerifier(vkey)
	require.NoError(t, err)
	opened, err := OpenCheckpoint(c.Note, "example.org/log", note.VerifierList(verifier))
	require.NoError(t, err)
	require.Equal(t, c, opened)
}

// req R4: a change of any bit of a signed checkpoint is noticed.
func TestCheckpointMangled(t *testing.T) {
	s, v := testKey(t, "baildock/x", 1)
	c, err := s.Sign(12345, Hash{9, 8, 7})
	require.NoError(t, err)
	known := note.VerifierList(v)
	for i := range c.Note {
		for bit := range 8 {
			b := bytes.Clone(c.Note)
			b[i] ^= 1 << bit
			_, err := OpenCheckpoint(b, "baildock/x", known)
			require.Error(t, err, "byte %d bit %d", i, bit)
		}
	}
	for i := range c.Note {
		_, err := OpenCheckpoint(c.Note[:i], "baildock/x", known)
		require.Error(t, err)
	}
}

func TestOpenCheckpoint(t *testing.T) {
	s, v := testKey(t, "baildock/x", 1)
	other, otherKey := testKey(t, "baildock/other", 2)
	witness, witnessKey := testKey(t, "witness", 3)
	stranger, _ := testKey(t, "baildock/x", 4)
	c, err := s.Sign(7, Hash{7})
	require.NoError(t, err)

	_, err = OpenCheckpoint(c.Note, "baildock/other", note.VerifierList(v, otherKey))
	require.ErrorContains(t, err, "origin")
	_, err = OpenCheckpoint(c.Note, "baildock/x", note.VerifierList(otherKey))
	require.ErrorIs(t, err, ErrCheckpointUnsigned)
	_, err = OpenCheckpoint(c.Note, "baildock/x", note.VerifierList())
	require.ErrorIs(t, err, ErrCheckpointUnsigned)

	sign := func(text string, signers ...note.Signer) []byte {
		msg, err := note.Sign(&note.Note{Text: text}, signers...)
		require.NoError(t, err)
		return msg
	}
	text := FormatCheckpoint("baildock/x", 7, Hash{7})
	// Another key's signature on it isn't the origin's own.
	_, err = OpenCheckpoint(sign(text, witness.Signer), "baildock/x", note.VerifierList(v, witnessKey))
	require.ErrorIs(t, err, ErrCheckpointUnsigned)
	_, err = OpenCheckpoint(sign(text, other.Signer), "baildock/x", note.VerifierList(v, otherKey))
	require.ErrorIs(t, err, ErrCheckpointUnsigned)
	_, err = OpenCheckpoint(sign(text, stranger.Signer), "baildock/x", note.VerifierList(v))
	require.ErrorIs(t, err, ErrCheckpointUnsigned)
	// More signatures do no harm.
	both := sign(text, s.Signer, witness.Signer)
	got, err := OpenCheckpoint(both, "baildock/x", note.VerifierList(v))
	require.NoError(t, err)
	require.Equal(t, both, got.Note)
	require.Equal(t, uint64(7), got.Size)
	// A signed text that isn't a checkpoint is none.
	_, err = OpenCheckpoint(sign(text+"extension\n", s.Signer), "baildock/x", note.VerifierList(v))
	require.Error(t, err)
	_, err = OpenCheckpoint(append(bytes.Repeat([]byte("x"), MaxNote), c.Note...), "baildock/x", note.VerifierList(v))
	require.ErrorContains(t, err, "at most")
}

func TestParseCheckpointIsStrict(t *testing.T) {
	good := FormatCheckpoint("origin", 10, Hash{0xff})
	c, err := ParseCheckpoint(good)
	require.NoError(t, err)
	require.Equal(t, Checkpoint{Origin: "origin", Size: 10, Root: Hash{0xff}}, c)
	root := strings.Split(good, "\n")[2]
	for name, bad := range map[string]string{
		"nothing":                  "",
		"no newline at the end":    strings.TrimSuffix(good, "\n"),
		"an empty line more":       good + "\n",
		"an extension line":        good + "x\n",
		"no origin":                "\n10\n" + root + "\n",
		"an origin with a space":   "a b\n10\n" + root + "\n",
		"an origin with a plus":    "a+b\n10\n" + root + "\n",
		"an origin not UTF-8":      "a\xff\n10\n" + root + "\n",
		"a long origin":            strings.Repeat("o", MaxOrigin+1) + "\n10\n" + root + "\n",
		"no size":                  "origin\n\n" + root + "\n",
		"a leading zero":           "origin\n010\n" + root + "\n",
		"a sign":                   "origin\n+10\n" + root + "\n",
		"a negative size":          "origin\n-10\n" + root + "\n",
		"a hexadecimal size":       "origin\n0x10\n" + root + "\n",
		"a size with underscore":   "origin\n1_0\n" + root + "\n",
		"a size out of range":      "origin\n9223372036854775808\n" + root + "\n",
		"a carriage return":        "origin\r\n10\n" + root + "\n",
		"a short root":             "origin\n10\n/w==\n",
		"no root":                  "origin\n10\n\n",
		"a root without padding":   "origin\n10\n" + strings.TrimRight(root, "=") + "\n",
		"a root with loose bits":   "origin\n10\n" + root[:42] + "B=\n",
		"a root in another script": "origin\n10\n" + strings.ReplaceAll(root, "/", "_") + "\n",
		"tlog's own format":        "go.sum database tree\n10\n" + root + "\n",
	} {
		_, err := ParseCheckpoint(bad)
		require.Error(t, err, name)
	}
}

func TestSignCheckpointRefuses(t *testing.T) {
	s, _ := testKey(t, "baildock/x", 1)
	_, err := CheckpointSigner{Origin: "baildock/y", Signer: s.Signer}.Sign(1, Hash{})
	require.ErrorContains(t, err, "name")
	_, err = CheckpointSigner{Origin: "baildock/x"}.Sign(1, Hash{})
	require.Error(t, err)
	_, err = CheckpointSigner{Origin: "a b", Signer: s.Signer}.Sign(1, Hash{})
	require.Error(t, err)
	_, err = s.Sign(1<<63, Hash{})
	require.Error(t, err)
	_, err = NewEd25519Signer("a b", ed25519.NewKeyFromSeed(make([]byte, 32)))
	require.Error(t, err)
	_, err = NewEd25519Signer("ab", make([]byte, 32))
	require.ErrorContains(t, err, "64")
	_, err = NewEd25519Verifier("ab", make([]byte, 31))
	require.Error(t, err)
	_, err = NewEd25519Verifier("", make([]byte, 32))
	require.Error(t, err)
}

func FuzzParseCheckpoint(f *testing.F) {
	seeds(f, "FuzzParseCheckpoint", 8)
	f.Add(FormatCheckpoint("origin", 10, Hash{0xff}))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCheckpoint(text)
		if err != nil {
			return
		}
		if got := FormatCheckpoint(c.Origin, c.Size, c.Root); got != text {
			t.Fatalf("accepted %q, which is spelled %q", text, got)
		}
		s, v := testKey(t, c.Origin, 1)
		signed, err := s.Sign(c.Size, c.Root)
		if err != nil {
			t.Fatalf("parsed %q but can't sign it: %v", text, err)
		}
		if _, err := OpenCheckpoint(signed.Note, c.Origin, note.VerifierList(v)); err != nil {
			t.Fatalf("signed %q but can't open it: %v", text, err)
		}
	})
}

func FuzzOpenCheckpoint(f *testing.F) {
	seeds(f, "FuzzOpenCheckpoint", 4)
	s, v := testKey(f, "baildock/x", 1)
	c, err := s.Sign(7, Hash{7})
	require.NoError(f, err)
	f.Add(c.Note)
	f.Fuzz(func(t *testing.T, msg []byte) {
		got, err := OpenCheckpoint(msg, "baildock/x", note.VerifierList(v))
		if err == nil && (got.Size != 7 || got.Root != Hash{7}) {
			t.Fatalf("opened what was never signed: %q", msg)
		}
	})
}
