package source

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req B1
func TestParseLocator(t *testing.T) {
	t.Chdir(realTemp(t))
	for _, dir := range []string{"plain", "with@sign", "a", "a@b", "a@b/repo"} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	for text, want := range map[string]Locator{
		"plain":            {Path: "plain"},
		"./plain/":         {Path: "./plain/"},
		"plain@main":       {Path: "plain", Rev: "main"},
		"plain@HEAD@{1}":   {Path: "plain", Rev: "HEAD@{1}"},
		"plain@@":          {Path: "plain", Rev: "@"},
		"plain@feat/a@b":   {Path: "plain", Rev: "feat/a@b"},
		"with@sign":        {Path: "with@sign"},
		"with@sign@v1~2":   {Path: "with@sign", Rev: "v1~2"},
		"a@b":              {Path: "a@b"},
		"a@b@c":            {Path: "a@b", Rev: "c"},
		"a@c":              {Path: "a", Rev: "c"},
		"a@b/repo@v1":      {Path: "a@b/repo", Rev: "v1"},
		"a@b/no-such-repo": {Path: "a", Rev: "b/no-such-repo"},
	} {
		got, err := ParseLocator(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, got.String())
	}
	for text, code := range map[string]Code{
		"":            CodeLocator,
		"plain\x00":   CodeLocator,
		"plain@":      CodeLocator,
		"nowhere":     CodeNotFound,
		"nowhere@rev": CodeNotFound,
		"@HEAD":       CodeNotFound,
	} {
		_, err := ParseLocator(text)
		requireCode(t, err, code)
	}
}

func TestResolveDirectory(t *testing.T) {
	dir := directoryOf(t, map[string]string{"tree/f": "x", "link": "-> tree"})
	s, err := Resolve(context.Background(), Locator{Path: filepath.Join(dir, "link")})
	require.NoError(t, err)
	require.Equal(t, directorySubject(filepath.Join(dir, "tree")), s)
	require.NoError(t, s.Check())
	require.Equal(t, evidence.SubjectDirectory, s.Kind)

	_, err = Resolve(context.Background(), Locator{Path: filepath.Join(dir, "tree", "f")})
	requireCode(t, err, CodeNotFound)
	_, err = Resolve(context.Background(), Locator{Path: filepath.Join(dir, "none")})
	requireCode(t, err, CodeNotFound)
	_, err = Resolve(context.Background(), Locator{Path: dir, Rev: "HEAD"})
	require.ErrorContains(t, err, "not the top of a git repository")
	requireCode(t, err, CodeRepository)
}
