package conformance

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decoders are the functions that read bytes from outside, each with the fuzz target that drives it: package,
// function, target. Where the target is in another package than the function it says so with a slash.
var decoders = [][3]string{
	{"ledger", "UnmarshalLeaf", "FuzzUnmarshalLeaf"},
	{"ledger", "ParseCheckpoint", "FuzzParseCheckpoint"},
	{"ledger", "OpenCheckpoint", "FuzzOpenCheckpoint"},
	{"ledger", "ReadCheckpoint", "ledger/witness/FuzzParseRequest"},
	{"ledger/witness", "ParseKey", "FuzzParseKey"},
	{"ledger/witness", "ParsePolicy", "FuzzParsePolicy"},
	{"ledger/witness", "ParseRequest", "FuzzParseRequest"},
	{"ledger/witness", "load", "FuzzMemory"},
	{"evidence", "Decode", "FuzzDecode"},
	{"evidence", "Unmarshal", "FuzzDecode"},
	{"evidence", "Unmarshal", "FuzzEnvironment"},
	{"evidence", "Unmarshal", "FuzzContext"},
	{"evidence", "Unmarshal", "FuzzProfile"},
	{"evidence", "Unmarshal", "FuzzRecord"},
	{"evidence", "Unmarshal", "FuzzMeta"},
	{"evidence", "Unmarshal", "FuzzDescriptor"},
	{"evidence", "Unmarshal", "FuzzControlValues"},
	{"evidence", "ParseRecipe", "FuzzParseRecipe"},
	{"evidence", "UnmarshalManifest", "FuzzUnmarshalManifest"},
	{"evidence", "ParsePathList", "FuzzParsePathList"},
	{"evidence", "CheckGlob", "FuzzGlob"},
	{"evidence", "ParseMutations", "FuzzParseMutations"},
	{"evidence", "ParseWorkspaceManifest", "FuzzParseWorkspaceManifest"},
	{"evidence", "ParseWorkspacePolicy", "FuzzParseWorkspacePolicy"},
	{"evidence", "ParseBundleKey", "export/bundle/FuzzParseKey"},
	{"evidence", "ParseCheckpointKey", "export/bundle/FuzzParseIdentity"},
	{"evidence/candidate", "Parse", "FuzzParse"},
	{"evidence/containment", "Parse", "FuzzParse"},
	{"export/bundle", "Unmarshal", "FuzzUnmarshal"},
	{"export/bundle", "UnmarshalEnvelope", "FuzzUnmarshalEnvelope"},
	{"export/bundle", "ParseIdentity", "FuzzParseIdentity"},
	{"export/bundle", "ParseKey", "FuzzParseKey"},
	{"export/verify", "Verify", "FuzzVerify"},
	{"export/verify", "ParsePolicy", "FuzzParsePolicy"},
	{"export/verify", "ParseTrust", "FuzzParsePolicy"},
	{"export", "ParseBundleKey", "FuzzKeys"},
	{"export", "ParseCheckpointKey", "FuzzKeys"},
	{"executor/canary", "ParseReport", "FuzzParseReport"},
	{"executor/config", "Load", "FuzzLoad"},
	{"executor/docker", "parseInspection", "FuzzCompare"},
	{"cmd/baildock", "loadRecipe", "FuzzLoadRecipe"},
	{"cmd/baildock", "readHomeFile", "FuzzReadHomeFile"},
	{"cmd/baildock", "readCheckpointFile", "FuzzReadCheckpointFile"},
	{"cmd/baildock", "readPolicy", "FuzzReadPolicyFile"},
}

var (
	target  = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)
	decoder = regexp.MustCompile(`(?m)^func (Parse\w*|Unmarshal\w*|Decode\w*|Open\w*)\((\w+ \[\]byte|typ string, meta, data \[\]byte|msg \[\]byte)[,)]`)
	// one ends a target where the next function starts.
	function = regexp.MustCompile(`(?m)^func `)
)

// Every decoder of outside bytes has a fuzz target with seeds that are checked in.
func TestEveryDecoderIsFuzzed(t *testing.T) {
	root := filepath.Join("..", "..")
	targets, exported := map[string]int{}, map[string]bool{}
	sources := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		in, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if !strings.HasSuffix(path, "_test.go") {
			sources[in] += string(b)
			if strings.HasSuffix(in, "test") || strings.HasPrefix(in, "test") || in == "executor/fakedaemon" {
				return nil // support of tests
			}
			for _, m := range decoder.FindAllStringSubmatch(string(b), -1) {
				exported[in+"."+m[1]] = true
			}
			return nil
		}
		for _, m := range target.FindAllStringSubmatchIndex(string(b), -1) {
			name := string(b[m[2]:m[3]])
			body := string(b[m[1]:])
			if end := function.FindStringIndex(body); end != nil {
				body = body[:end[0]]
			}
			stored, err := filepath.Glob(filepath.Join(filepath.Dir(path), "testdata", "fuzz", name, "*"))
			if err != nil {
				return err
			}
			// Seeds of a table or a helper count once: at least one is there.
			added := strings.Count(body, ".Add(") + strings.Count(body, "fuzzed(f") + strings.Count(body, "inFile(f")
			targets[in+"/"+name] = len(stored) + added
		}
		return nil
	})
	require.NoError(t, err)
	covered, seeds := map[string]bool{}, 0
	for _, d := range decoders {
		require.Regexp(t, `(?m)^func (\([^)]*\) )?`+d[1]+`\(`, sources[d[0]], "%s.%s is gone", d[0], d[1])
		name := d[2]
		if !strings.Contains(name, "/") {
			name = d[0] + "/" + name
		}
		require.Contains(t, targets, name, "%s.%s has no target", d[0], d[1])
		require.Positive(t, targets[name], "%s has no seeds", name)
		covered[d[0]+"."+d[1]] = true
	}
	for name := range exported {
		switch name {
		case "evidence.ParseMachineID", "evidence.ParseBootID": // a line of the kernel's own, compared by its hash
			continue
		case "evidence/journal.OpenCheckpoint": // ledger.OpenCheckpoint under a keyring
			continue
		}
		require.True(t, covered[name], "%s reads bytes and is not in the table of decoders: give it a fuzz target", name)
	}
	for _, n := range targets {
		seeds += n
	}
	t.Logf("count: %d decoders, %d fuzz targets, at least %d seeds and seed tables", len(decoders), len(targets), seeds)
	require.GreaterOrEqual(t, len(targets), 35)
}
