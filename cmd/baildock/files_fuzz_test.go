package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// inFile runs a reader of files over arbitrary bytes.
func inFile(f *testing.F, name string, read func(t *testing.T, dir string), seeds ...string) {
	f.Helper()
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
		read(t, dir)
	})
}

// FuzzLoadRecipe: a recipe file that loads has one recipe, and its view loads to the same.
func FuzzLoadRecipe(f *testing.F) {
	const good = `{"version": 1, "profile": "command/v1", "image": "sha256:0000000000000000000000000000000000000000000000000000000000000001",
		"argv": ["/bin/tool", "-l"], "env": {"A": "b"}, "nonce": "07000000000000000000000000000000",
		"limits": {"timeout": "60s", "output_limit": "256k", "memory": "256m", "scratch": "64m", "pids": 64, "cpus": "1"}}`
	inFile(f, "recipe.json", func(t *testing.T, dir string) {
		c, err := loadRecipe(filepath.Join(dir, "recipe.json"))
		if err != nil {
			return
		}
		require.NoError(t, c.recipe.Check())
		view, err := json.Marshal(c.file())
		require.NoError(t, err)
		again := filepath.Join(dir, "again.json")
		require.NoError(t, os.WriteFile(again, view, 0o600))
		same, err := loadRecipe(again)
		require.NoError(t, err)
		require.Equal(t, c.recipe.Digest(), same.recipe.Digest())
	}, good, good+"{}", `{}`, `{"version": 1, "version": 1}`, `{"contained_execution": {}}`, "", "[", "null")
}

// FuzzReadHomeFile: a home's identity is read whole or not at all.
func FuzzReadHomeFile(f *testing.F) {
	const good = `{"version": 1, "home": "01000000000000000000000000000000", "ledger": "02000000000000000000000000000000"}`
	inFile(f, identityName, func(t *testing.T, dir string) {
		h, err := readHomeFile(dir)
		if err == nil {
			require.EqualValues(t, 1, h.Version)
		}
	}, good, good+good, `{"version": 2}`, `{}`, "", "null", `{"version": 1, "version": 1}`)
}

// FuzzReadCheckpointFile: a checkpoint in a file is a note, or a request that holds one.
func FuzzReadCheckpointFile(f *testing.F) {
	inFile(f, "checkpoint", func(t *testing.T, dir string) {
		note, r, err := readCheckpointFile(filepath.Join(dir, "checkpoint"))
		if err == nil {
			require.NotEmpty(t, note)
			require.True(t, r == nil || string(r.Note) == string(note))
		}
	}, "a\n1\nAAAA\n\n— a AAAA\n", "old 0\n\na\n1\nAAAA\n\n— a AAAA\n", "old 0\n", "")
}

// FuzzReadPolicyFile: whatever lies in it, --policy is read as one of its two forms or refused.
func FuzzReadPolicyFile(f *testing.F) {
	inFile(f, "policy", func(t *testing.T, dir string) {
		p, err := readPolicy(filepath.Join(dir, "policy"))
		if err != nil {
			return
		}
		require.True(t, p.Witnesses == nil || p.Witnesses.Quorum > 0)
	}, `{"version": 1}`, "baildock-witness-policy/v1\nquorum: 1\nwitness: a+00000000+B\n", "# c\n", "")
}
