package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTally(t *testing.T) {
	for _, c := range []struct {
		name, in string
		exit     int
		last     string
		says     string
	}{
		{"nothing ran", ``, 1, "0 passed, 0 failed", ""},
		{"a package without tests", `{"Action":"skip","Package":"p"}`, 1, "0 passed, 0 failed", ""},
		{"pass", `{"Action":"pass","Package":"p","Test":"T"}
{"Action":"pass","Package":"p"}`, 0, "1 passed, 0 failed", "ok    p"},
		{"fail shows its output", `{"Action":"output","Package":"p","Test":"T","Output":"why\n"}
{"Action":"fail","Package":"p","Test":"T"}
{"Action":"fail","Package":"p"}`, 1, "0 passed, 1 failed", "why"},
		{"a count is shown of what passed", `{"Action":"output","Package":"p","Test":"T/a","Output":"    x_test.go:12: noise\n    x_test.go"}
{"Action":"output","Package":"p","Test":"T/a","Output":":13: count: 12 cells; ok 12\n"}
{"Action":"pass","Package":"p","Test":"T/a"}
{"Action":"pass","Package":"p"}`, 0, "1 passed, 0 failed", "count 12 cells; ok 12 (T/a)\nok    p"},
		{"build failure", `{"ImportPath":"p","Action":"build-output","Output":"no such thing\n"}
{"Action":"pass","Package":"q","Test":"T"}
{"Action":"fail","Package":"p"}`, 1, "1 passed, 0 failed", "no such thing"},
		{"a skip fails", `{"Action":"pass","Package":"p","Test":"T"}
{"Action":"skip","Package":"p","Test":"U"}`, 1, "1 passed, 0 failed", "SKIP  p U"},
		{"other words are passed on", `go: no module
{"Action":"pass","Package":"p","Test":"T"}`, 0, "1 passed, 0 failed", "go: no module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			require.Equal(t, c.exit, tally(strings.NewReader(c.in), &out))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			require.Equal(t, c.last, lines[len(lines)-1])
			require.Contains(t, out.String(), c.says)
		})
	}
}
