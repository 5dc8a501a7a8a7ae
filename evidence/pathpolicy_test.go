package evidence_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req H4
func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		glob     string
		yes, not []string
	}{
		{"a.txt", []string{"a.txt"}, []string{"A.txt", "a.txt2", "d/a.txt", "aXtxt"}},
		{"src/**", []string{"src/a", "src/a/b/c"}, []string{"src", "srcs/a", "x/src/a"}},
		{"**", []string{"a", "a/b"}, nil},
		{"**/a.go", []string{"a.go", "x/a.go", "x/y/a.go"}, []string{"x/a.go/y", "xa.go"}},
		{"src/**/a", []string{"src/a", "src/x/a", "src/x/y/a"}, []string{"src", "src/x", "a"}},
		{"*.go", []string{"a.go", ".go"}, []string{"d/a.go", "a.goo"}},
		{"d/*", []string{"d/a", "d/.hidden"}, []string{"d", "d/a/b"}},
		{"?.c", []string{"a.c"}, []string{"ab.c", ".c"}},
		{"a*b*c", []string{"abc", "axxbyyc", "abbcc"}, []string{"ab", "abcd"}},
		{"*", []string{"a"}, []string{"a/b"}},
		{"**/x/**", []string{"x/a", "a/x/b", "x/x/x"}, []string{"x", "a/x"}},
	} {
		require.NoError(t, evidence.CheckGlob(c.glob))
		for _, p := range c.yes {
			require.True(t, evidence.MatchGlob(c.glob, p), "%s should match %s", c.glob, p)
		}
		for _, p := range c.not {
			require.False(t, evidence.MatchGlob(c.glob, p), "%s should not match %s", c.glob, p)
		}
	}
	for _, bad := range []string{"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/**b", "***", "[a]", `a\b`, "a\x00", strings.Repeat("a", 300)} {
		require.Error(t, evidence.CheckGlob(bad), "%q", bad)
	}
}

// No pattern takes long on a hostile path.
func TestGlobsAreBounded(t *testing.T) {
	done := make(chan bool, 1)
	go func() {
		glob := strings.Repeat("a*", 120)
		for range 50 {
			evidence.MatchGlob(glob+"b", strings.Repeat("a", 255))
			evidence.MatchGlob(strings.Repeat("**/", 60)+"b", strings.Repeat("a/", 120)+"c")
		}
		done <- true
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("a pattern took exponential time")
	}
}

func TestPathLists(t *testing.T) {
	l := evidence.PathList{"a\xff", "b/c"}
	b, err := l.Marshal()
	require.NoError(t, err)
	got, err := evidence.ParsePathList(b)
	require.NoError(t, err)
	require.Equal(t, l, got)
	for _, bad := range []evidence.PathList{{"b", "a"}, {"a", "a"}, {"../a"}, {""}, {"/a"}} {
		_, err := bad.Marshal()
		require.Error(t, err, "%q", bad)
	}
	e, list, err := evidence.CheckPaths("", strings.Repeat("a", 40), []string{"b/*"}, l)
	require.NoError(t, err)
	require.EqualValues(t, 1, e.Outside)
	require.NoError(t, e.Redecide(list))
	e.Outside = 0
	require.ErrorContains(t, e.Redecide(list), "outside")
	e.Touched = 3
	require.ErrorContains(t, e.Redecide(list), "the event says 3")
}

func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"src/**", "src/a"}, {"*a*", "bab"}, {"**/a", "a"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		if evidence.CheckGlob(glob) != nil || evidence.CheckPath(path) != nil {
			return
		}
		if !strings.ContainsAny(glob, "*?") {
			require.Equal(t, glob == path, evidence.MatchGlob(glob, path))
		}
		require.True(t, evidence.MatchGlob("**", path))
		evidence.MatchGlob(glob, path)
	})
}
