package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's, seen from this package.
const root = "../.."

const module = "github.com/baildock/baildock"

// pkg is what `go list` says of one package.
type pkg struct {
	ImportPath   string
	Dir          string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// name is the path inside the module; empty for the root.
func (p pkg) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// packages lists every package of the module, whatever build tags hide of their files.
func packages(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Standard,Imports,TestImports,XTestImports"}, args...)...)
	cmd.Dir = root
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	require.NoError(t, err, errOut.String())
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

// files calls fn with every file of the working tree that git tracks or would track and whose name
// ends so, and fails when there is none.
func files(t *testing.T, suffix string, fn func(path string, content []byte)) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch name := d.Name(); {
			case name == ".git", strings.HasPrefix(name, ".baildock"), path == filepath.Join(root, "bin"), path == filepath.Join(root, "demo"):
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !strings.HasSuffix(d.Name(), suffix) {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		seen++
		fn(rel, b)
		return nil
	})
	require.NoError(t, err)
	require.Positive(t, seen, "no file ends in %s", suffix)
}

// Every package has one comment, its manual.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t, "./...") {
		set := token.NewFileSet()
		entries, err := os.ReadDir(p.Dir)
		require.NoError(t, err)
		var holders []string
		sources := 0
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			sources++
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, e.Name()), nil, parser.PackageClauseOnly|parser.ParseComments)
			require.NoError(t, err)
			if documents(f) {
				holders = append(holders, e.Name())
			}
		}
		if sources > 0 {
			require.Len(t, holders, 1, "%s: the package comment stands in exactly one file", p.ImportPath)
		}
	}
}

func documents(f *ast.File) bool { return f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != "" }

// A file longer than this wants a split by concept.
const maxLines = 600

func TestFileLength(t *testing.T) {
	files(t, ".go", func(path string, content []byte) {
		lines := bytes.Count(content, []byte("\n"))
		require.LessOrEqual(t, lines, maxLines, "%s has %d lines", path, lines)
	})
}

// A test that can't run fails and says what is missing; it never passes by skipping.
func TestNoSkips(t *testing.T) {
	// Written apart, or this file would be found.
	calls := []string{".Skip" + "(", ".Skip" + "f(", ".Skip" + "Now("}
	files(t, "_test.go", func(path string, content []byte) {
		for _, call := range calls {
			require.NotContains(t, string(content), call, "%s skips: a missing prerequisite must fail", path)
		}
	})
}
