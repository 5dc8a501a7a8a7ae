package witness_test

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/witness"
)

func TestPolicyText(t *testing.T) {
	bob, carol := keyOf(t, "bob.example"), keyOf(t, "carol.example")
	p := witness.Policy{Witnesses: []witness.Key{bob, carol}, Quorum: 2}
	text, err := p.Format()
	require.NoError(t, err)
	again, err := witness.ParsePolicy([]byte(text))
	require.NoError(t, err)
	require.Equal(t, p, again)
	commented, err := witness.ParsePolicy([]byte("# ours\n" + strings.Replace(text, "witness:", "# one\nwitness:", 1)))
	require.NoError(t, err)
	require.Equal(t, p, commented)

	head := "baildock-witness-policy/v1\n"
	alias := "alias.example" + bob.String()[len("bob.example"):]
	for name, text := range map[string]string{
		"empty":                "",
		"no header":            "quorum: 1\nwitness: " + bob.String() + "\n",
		"no quorum":            head + "witness: " + bob.String() + "\n",
		"no witness":           head + "quorum: 1\n",
		"quorum 0":             head + "quorum: 0\nwitness: " + bob.String() + "\n",
		"quorum above":         head + "quorum: 2\nwitness: " + bob.String() + "\n",
		"quorum with a sign":   head + "quorum: +1\nwitness: " + bob.String() + "\n",
		"quorum with a zero":   head + "quorum: 01\nwitness: " + bob.String() + "\n",
		"one twice":            head + "quorum: 2\nwitness: " + bob.String() + "\nwitness: " + bob.String() + "\n",
		"another's key ID":     head + "quorum: 1\nwitness: " + alias + "\n",
		"an unknown line":      head + "quorum: 1\nwitness: " + bob.String() + "\nurl: x\n",
		"an empty line":        head + "quorum: 1\n\nwitness: " + bob.String() + "\n",
		"trailing space":       head + "quorum: 1\nwitness: " + bob.String() + " \n",
		"a ledger's key":       head + "quorum: 1\nwitness: PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\n",
		"an ML-DSA key's type": head + "quorum: 1\nwitness: " + strings.Replace(bob.String(), "+B", "+C", 1) + "\n",
		"too long":             head + "quorum: 1\n" + strings.Repeat("#\n", witness.MaxPolicy),
	} {
		_, err := witness.ParsePolicy([]byte(text))
		require.Error(t, err, name)
	}

	// One key under two names would count twice.
	same, err := witness.NewKey("alias.example", private("bob.example").Public().(ed25519.PublicKey))
	require.NoError(t, err)
	_, err = witness.Policy{Witnesses: []witness.Key{bob, same}, Quorum: 2}.Format()
	require.ErrorContains(t, err, "twice")
}

func TestRequestText(t *testing.T) {
	h := newHistory(t)
	h.grow(t, 3, "")
	r := h.ask(t, 3, h.grow(t, 9, ""))
	require.NotEmpty(t, r.Proof)
	for _, r := range []witness.Request{r, {Note: r.Note}} {
		again, err := witness.ParseRequest(r.Format())
		require.NoError(t, err)
		require.Equal(t, r, again)
	}
	text := string(r.Format())
	lines := strings.SplitAfter(text, "\n")
	many := r
	many.Proof = make([]ledger.Hash, witness.MaxProof+1)
	for name, bad := range map[string]string{
		"a bare note":         string(r.Note),
		"no old":              strings.Join(lines[1:], ""),
		"a sign":              strings.Replace(text, "old 3", "old +3", 1),
		"a leading zero":      strings.Replace(text, "old 3", "old 03", 1),
		"beyond range":        strings.Replace(text, "old 3", "old 18446744073709551615", 1),
		"carriage return":     strings.Replace(text, "old 3\n", "old 3\r\n", 1),
		"a short hash":        strings.Replace(text, lines[1], "AAAA\n", 1),
		"not base64":          strings.Replace(text, lines[1], "*"+lines[1][1:], 1),
		"too many hashes":     string(many.Format()),
		"nothing but the top": "old 3\n",
		"too long":            "old 3\n\n" + strings.Repeat("x", witness.MaxRequest),
	} {
		_, err := witness.ParseRequest([]byte(bad))
		require.Error(t, err, name)
	}
}

func FuzzParseRequest(f *testing.F) {
	seeds(f, "FuzzParseRequest", 6)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := witness.ParseRequest(text)
		if err == nil {
			require.Equal(t, text, r.Format())
		}
	})
}

func FuzzParsePolicy(f *testing.F) {
	seeds(f, "FuzzParsePolicy", 6)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := witness.ParsePolicy(text)
		if err != nil {
			return
		}
		again, err := p.Format()
		require.NoError(t, err)
		same, err := witness.ParsePolicy([]byte(again))
		require.NoError(t, err)
		require.Equal(t, p, same)
	})
}

// seeds asserts that the checked-in seeds of a fuzz target are there: the tool reads them itself.
func seeds(f *testing.F, target string, atLeast int) {
	f.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", "fuzz", target))
	require.NoError(f, err)
	require.GreaterOrEqual(f, len(entries), atLeast, fmt.Sprintf("seeds of %s", target))
}
