package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hostile bytes stay text: req T7, as far as the command line itself prints them.
func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain text é 漢":      "plain text é 漢",
		"\x1b[31mred":         `\x1b[31mred`,
		"a\nb":                `a\nb`,
		"\u202eright":         `\u202eright`,
		"bad \xff byte":       `bad \xff byte`,
		`a quoted "\x1b" one`: `a quoted "\x1b" one`,
	} {
		require.Equal(t, want, visible(in))
	}
	require.Equal(t, "a\n\tb\\\\x1b\\x1b[0m\n", visibleLines("a\n\tb\\x1b\x1b[0m\n"))
}

// A terminal gets escapes, everybody else the bytes; characters split between writes stay whole.
func TestTee(t *testing.T) {
	hostile := []byte("\x1b[2J é漢😀 \xff\xfe \u202e end \xe6\xbc")
	for cut := range len(hostile) {
		var plain, shown bytes.Buffer
		for _, w := range []*tee{{to: &plain}, {to: &shown, term: true}} {
			for _, part := range [][]byte{hostile[:cut], hostile[cut:]} {
				n, err := w.Write(part)
				require.NoError(t, err)
				require.Equal(t, len(part), n)
			}
			require.NoError(t, w.Close())
		}
		require.Equal(t, hostile, plain.Bytes())
		require.Equal(t, `\x1b[2J é漢😀 \xff\xfe \u202e end \xe6\xbc`, shown.String(), "cut at %d", cut)
	}
}

func TestStages(t *testing.T) {
	var err bytes.Buffer
	u := &ui{err: &err}
	u.stage("probe", "")
	u.stage("isolation", "41/41")
	u.progressDone()
	require.Equal(t, "baildock: probe\nbaildock: isolation 41/41\n", err.String())

	err.Reset()
	u = &ui{err: &err, errTerm: true}
	u.stage("probe", "")
	u.stage("isolation", "41/41")
	u.stage("exit", "0")
	u.progressDone()
	u.progressDone()
	require.Equal(t, "probe … isolation 41/41 … exit 0\n", err.String())

	err.Reset()
	u = &ui{err: &err, quiet: true, errTerm: true}
	u.stage("probe", "")
	u.progressDone()
	u.bar("nothing")(1, 2)
	require.Empty(t, err.String())
}

func TestErrorsAreHarmless(t *testing.T) {
	var errOut bytes.Buffer
	u := &ui{err: &errOut}
	require.Equal(t, exitUsage, u.exit(usage("bad %s", "\x1b[31m").hint("try \u202e")))
	require.Equal(t, "baildock: bad \\x1b[31m [usage]\n  hint: try \\u202e\n", errOut.String())
	errOut.Reset()
	u.json = true
	require.Equal(t, exitUsage, u.exit(usage("bad \x1b")))
	require.Equal(t, 1, strings.Count(errOut.String(), "\n"))
	require.NotContains(t, errOut.String(), "\x1b")
}
