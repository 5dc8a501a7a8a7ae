package arch

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	row   = regexp.MustCompile(`(?m)^\| ([A-U][0-9]+) \|`)
	named = regexp.MustCompile(`\breq ([A-U][0-9]+)\b`) // as `grep "req A3"` finds it: each row has its own "req"
)

// update writes the list of open rows anew: go test ./test/arch -run Rows -args -update
var update = flag.Bool("update", false, "write open.txt anew")

// Every `req X1` points at a row of the requirements, and every row is named by a test or stands
// in open.txt, the list of rows that no test shows yet. A row leaves that list with its test.
func TestRequirementRows(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "requirements.md"))
	require.NoError(t, err)
	rows := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		require.False(t, rows[m[1]], "row %s is repeated", m[1])
		rows[m[1]] = true
	}
	require.Greater(t, len(rows), 100)

	shown := map[string]bool{}
	for _, suffix := range []string{".go", ".txtar", ".sh"} {
		files(t, suffix, func(path string, content []byte) {
			for _, m := range named.FindAllStringSubmatch(string(content), -1) {
				// The examples of this package's own comments name no row, and show none.
				if filepath.Dir(path) == filepath.Join("test", "arch") {
					continue
				}
				require.True(t, rows[m[1]], "%s names req %s, which is no row", path, m[1])
				if strings.HasSuffix(path, "_test.go") || suffix != ".go" {
					shown[m[1]] = true
				}
			}
		})
	}

	if *update {
		var open []string
		for name := range rows {
			if !shown[name] {
				open = append(open, name)
			}
		}
		slices.SortFunc(open, compareRows)
		require.NoError(t, os.WriteFile("open.txt", []byte(strings.Join(open, "\n")+"\n"), 0o644))
	}
	list, err := os.ReadFile("open.txt")
	require.NoError(t, err)
	open := strings.Fields(string(list))
	require.True(t, slices.IsSortedFunc(open, compareRows), "open.txt is not sorted")
	for _, name := range open {
		require.True(t, rows[name], "open.txt names %s, which is no row", name)
		require.False(t, shown[name], "a test names req %s: take it out of open.txt", name)
	}
	for name := range rows {
		require.True(t, shown[name] || slices.Contains(open, name), "no test names req %s", name)
	}
}

// compareRows orders row names by letter, then number.
func compareRows(a, b string) int {
	if a[0] != b[0] {
		return int(a[0]) - int(b[0])
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
