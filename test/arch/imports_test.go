package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Libraries, by the short name the table uses.
var libraries = map[string]string{
	"cbor":      "github.com/fxamacker/cbor/v2",
	"sumdb":     "golang.org/x/mod/sumdb",
	"x/sys":     "golang.org/x/sys",
	"x/sync":    "golang.org/x/sync",
	"sqlite":    "github.com/ncruces/go-sqlite3",
	"docker":    "github.com/docker/docker",
	"go-billy":  "github.com/go-git/go-billy/v5",
	"reference": "github.com/distribution/reference",
	"go-git":    "github.com/go-git/go-git/v5",
	"go-cose":   "github.com/veraison/go-cose",
	"sigstore":  "github.com/sigstore/sigstore",
	"testify":   "github.com/stretchr/testify",
	"formats":   "github.com/transparency-dev/formats",
	"diff":      "github.com/rogpeppe/go-internal/diff",
	"esdb":      "github.com/EventStore/EventStore-Client-Go/v4",
	"grpc":      "google.golang.org/grpc",
	"uuid":      "github.com/google/uuid",
	"yaml":      "go.yaml.in/yaml/v3",
}

// mayImport says what each package may import beside the standard library and packages below
// itself: contracts know no technology, each technology stays in one package, and nothing knows
// what uses it. Names are packages of this module, or libraries.
var mayImport = map[string][]string{
	"ledger":            {"sumdb", "cbor"},
	"ledger/sqlite":     {"ledger", "sqlite", "sumdb", "x/sys"},
	"ledger/witness":    {"ledger", "sumdb", "formats"},
	"ledger/ledgertest": {"ledger", "sumdb", "testify"},

	"ledger/kurrentdb":      {"ledger", "esdb", "grpc", "uuid", "sqlite"},
	"ledger/kurrentdb/peer": {"esdb", "grpc", "uuid"},

	"evidence":                        {"cbor"},
	"evidence/evidencetest":           {"evidence"},
	"evidence/evidencetest/spelltest": {},
	"evidence/candidate":              {"evidence"},
	"evidence/containment":            {"evidence"},
	"evidence/journal":                {"evidence", "ledger"},
	"evidence/redact":                 {},

	"evidence/journal/journaltest": {"evidence", "evidence/evidencetest", "evidence/journal", "ledger", "ledger/kurrentdb", "ledger/kurrentdb/peer", "ledger/ledgertest", "ledger/sqlite", "testify"},

	"executor":            {"evidence", "evidence/redact"},
	"executor/daemontest": {"testify"},
	"executor/canary":     {"evidence", "x/sys"},
	"executor/config":     {"evidence", "evidence/redact", "yaml"},
	"executor/drivertest": {"executor", "evidence", "testify"},
	"executor/docker":     {"executor", "evidence", "docker", "reference", "x/sys"},
	"executor/fakedaemon": {},
	"executor/source":     {"evidence", "evidence/candidate", "go-git", "go-billy", "x/sys"},
	"executor/workspace":  {"executor/source", "evidence", "diff", "x/sys"},
	"executor/warden":     {"executor", "executor/source", "executor/workspace", "evidence/journal", "evidence/redact", "evidence", "ledger", "x/sys"},

	"projections": {"evidence/journal", "evidence", "ledger", "sqlite"},

	"export/bundle":     {"evidence", "ledger", "cbor", "go-cose"},
	"export":            {"export/bundle", "evidence/journal", "evidence", "ledger", "schemas", "sigstore", "go-cose"},
	"export/verify":     {"export/bundle", "evidence/journal", "evidence", "evidence/containment", "ledger", "ledger/witness", "schemas", "go-cose"},
	"export/exporttest": {"export", "export/bundle", "evidence", "evidence/evidencetest", "evidence/journal", "ledger", "ledger/ledgertest"},
	"export/report":     {"export/verify", "evidence", "evidence/containment"},

	"cmd/baildock":   {"anything"},
	"examples/agent": {},
	"schemas":        {},
}

// TestImports holds the table of the architecture.
func TestImports(t *testing.T) {
	std := map[string]bool{}
	for _, p := range packages(t, "std") {
		std[p.ImportPath] = true
	}
	for _, p := range packages(t, "./...") {
		if strings.HasPrefix(p.name(), "test/") {
			continue
		}
		allowed, ok := mayImport[p.name()]
		require.True(t, ok, "package %s stands in no row of the import table", p.name())
		if slices.Contains(allowed, "anything") {
			continue
		}
		for _, imp := range p.Imports {
			if !std[imp] {
				require.True(t, permitted(imp, allowed), "%s may not import %s", p.name(), imp)
			}
		}
	}
}

// TestArchitecturePage holds the page's table to the one above: the same packages, what supports
// tests apart, with the same imports of ours.
func TestArchitecturePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "| package | imports of ours |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	shown := map[string][]string{}
	for line := range strings.Lines(table) {
		if f := strings.Split(line, "|"); len(f) > 2 && strings.Contains(f[1], "`") {
			imports := strings.Split(strings.TrimSpace(f[2]), ", ")
			shown[strings.Trim(f[1], " `")] = slices.Sorted(slices.Values(imports))
		}
	}
	for name, allowed := range mayImport {
		if name == "executor/fakedaemon" || strings.HasSuffix(name, "test") {
			continue
		}
		ours := slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return libraries[s] != "" })
		if len(ours) == 0 {
			ours = []string{"none"}
		}
		require.Equal(t, slices.Sorted(slices.Values(ours)), shown[name], "ARCHITECTURE.md, row %s", name)
		delete(shown, name)
	}
	require.Empty(t, shown, "rows of packages that the import table doesn't know")
}

func permitted(imp string, allowed []string) bool {
	if own, found := strings.CutPrefix(imp, module+"/"); found {
		return slices.Contains(allowed, own)
	}
	return slices.ContainsFunc(allowed, func(name string) bool {
		lib := libraries[name]
		return lib != "" && (imp == lib || strings.HasPrefix(imp, lib+"/"))
	})
}

// Nothing imports a command or a test.
func TestNothingImportsCommands(t *testing.T) {
	for _, p := range packages(t, "./...") {
		for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			own, found := strings.CutPrefix(imp, module+"/")
			require.False(t, found && (strings.HasPrefix(own, "cmd/") || strings.HasPrefix(own, "test/")),
				"%s imports %s", p.name(), imp)
		}
	}
}

// The verifier needs no network, no process, no database and no daemon: it can't reach the packages
// that would let it. The standard library's x509 pulls in net; nothing of ours names it.
func TestVerifierReachesNothing(t *testing.T) {
	forbidden := []string{"net/http", "os/exec", "database/sql", "github.com/ncruces/", "github.com/docker/", "github.com/go-git/",
		"google.golang.org/grpc", "github.com/sigstore/", "github.com/baildock/baildock/executor", "github.com/baildock/baildock/projections"}
	found := false
	for _, p := range packages(t, "-deps", "./export/verify") {
		found = found || p.name() == "export/verify"
		for _, bad := range forbidden {
			require.False(t, p.ImportPath == strings.TrimSuffix(bad, "/") || strings.HasPrefix(p.ImportPath, strings.TrimSuffix(bad, "/")+"/"),
				"the verifier reaches %s", p.ImportPath)
		}
		if !p.Standard && strings.HasPrefix(p.ImportPath, module) {
			require.NotContains(t, p.Imports, "net", "%s imports net", p.ImportPath)
		}
	}
	require.True(t, found)
}
