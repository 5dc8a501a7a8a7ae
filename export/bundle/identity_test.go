package bundle_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares with a checked-in file.
func golden(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func ledgerPub(t testing.TB) string {
	text, err := bundle.FormatIdentity(exporttest.New(t).Identity)
	require.NoError(t, err)
	return text
}

func TestIdentityRoundTrip(t *testing.T) {
	text := ledgerPub(t)
	golden(t, "testdata/ledger.pub", []byte(text))
	i, err := bundle.ParseIdentity([]byte(text))
	require.NoError(t, err)
	require.True(t, i.Equal(exporttest.New(t).Identity))
	require.True(t, bundle.IsIdentity([]byte(text)))
}

// Any deviation from the one text is refused.
func TestIdentityIsStrict(t *testing.T) {
	text := ledgerPub(t)
	lines := strings.SplitAfter(text, "\n")
	swapped := lines[0] + lines[2] + lines[1] + strings.Join(lines[3:], "")
	blocks := strings.SplitAfter(text, "-----END PUBLIC KEY-----\n")
	head := strings.Join(lines[:3], "")
	for name, bad := range map[string]string{
		"empty":               "",
		"header only":         lines[0],
		"other version":       strings.Replace(text, "/v1", "/v2", 1),
		"upper case ID":       strings.Replace(text, "id: ba", "id: BA", 1),
		"short ID":            strings.Replace(text, "id: ba", "id: ", 1),
		"zero ID":             strings.Replace(text, "id: ba000000000000000000000000000001", "id: "+strings.Repeat("0", 32), 1),
		"no origin":           strings.Replace(text, "origin: baildock/ba", "origin: ", 1)[:60],
		"origin with space":   strings.Replace(text, "origin: baildock", "origin: bail dock", 1),
		"empty origin":        lines[0] + lines[1] + "origin: \n" + strings.Join(lines[3:], ""),
		"lines swapped":       swapped,
		"carriage returns":    strings.ReplaceAll(text, "\n", "\r\n"),
		"trailing byte":       text + "\n",
		"leading space":       " " + text,
		"trailing space":      strings.Replace(text, "v1\n", "v1 \n", 1),
		"no last newline":     strings.TrimSuffix(text, "\n"),
		"one key":             blocks[0],
		"keys swapped":        head + strings.TrimPrefix(blocks[1], "") + strings.TrimPrefix(blocks[0], head),
		"same key twice":      blocks[0] + strings.TrimPrefix(blocks[0], head),
		"three keys":          text + blocks[1],
		"PEM header":          strings.Replace(text, "KEY-----\n", "KEY-----\nA: b\n\n", 1),
		"text between":        blocks[0] + "hello\n" + blocks[1],
		"private type":        strings.ReplaceAll(text, "PUBLIC KEY", "PRIVATE KEY"),
		"longer than allowed": text + strings.Repeat("\n", bundle.MaxIdentity),
	} {
		_, err := bundle.ParseIdentity([]byte(bad))
		require.Error(t, err, name)
	}
	for i := range len(text) * 8 {
		b := []byte(text)
		b[i/8] ^= 1 << (i % 8)
		got, err := bundle.ParseIdentity(b)
		if err != nil {
			continue
		}
		// A flip may make another ledger, in its one form; never this one in another form.
		again, err := bundle.FormatIdentity(got)
		require.NoError(t, err)
		require.Equal(t, string(b), again)
		require.False(t, got.Equal(exporttest.New(t).Identity))
	}
}

func TestParseKey(t *testing.T) {
	f := exporttest.New(t)
	pem := bundle.FormatKey(f.Identity.Bundle)
	spki, err := bundle.ParseKey(pem)
	require.NoError(t, err)
	require.Equal(t, f.Identity.Bundle, spki)
	for name, bad := range map[string][]byte{
		"ed25519": bundle.FormatKey(f.Identity.Checkpoint), "empty": nil, "trailing": append(pem, '\n'), "two": append(append([]byte{}, pem...), pem...),
		"identity": []byte(ledgerPub(t)), "der": f.Identity.Bundle,
	} {
		_, err := bundle.ParseKey(bad)
		require.Error(t, err, name)
	}
}

func FuzzParseIdentity(f *testing.F) {
	text := ledgerPub(f)
	seeds := []string{text, strings.Replace(text, "id", "ID", 1), text[:100], strings.ReplaceAll(text, "\n", "\r\n"), ""}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	require.Len(f, seeds, 5)
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := bundle.ParseIdentity(b)
		if err != nil {
			return
		}
		again, err := bundle.FormatIdentity(i)
		require.NoError(t, err)
		require.Equal(t, string(b), again)
	})
}
