package source

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/candidate"
)

var origin = Origin{Attempt: "agent-1", Record: evidence.RecordDigest{1}}

// propose makes a candidate: "-" deletes.
func propose(t testing.TB, changes ...string) candidate.Candidate {
	t.Helper()
	var parts []string
	for i := 0; i < len(changes); i += 2 {
		content := "null"
		if changes[i+1] != "-" {
			content = `"` + hex.EncodeToString([]byte(changes[i+1])) + `"`
		}
		parts = append(parts, fmt.Sprintf(`{"path":%q,"hex":%s}`, changes[i], content))
	}
	c, err := candidate.Parse([]byte(`{"version":1,"changes":[` + strings.Join(parts, ",") + `]}`))
	require.NoError(t, err)
	return c
}

func requireRefused(t testing.TB, err error, code candidate.Code) {
	t.Helper()
	var refused *candidate.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.Code, "%v", err)
}

// req I3: the candidate's parent is exactly the subject; the same record gives the same revision in
// another clone; nothing is checked out and no reference moves.
func TestDeriveCommit(t *testing.T) {
	r := newGitRepo(t)
	subject := r.commitFiles(map[string]string{"a.txt": "one", "bin/run": "#!run", "d/only": "x", "l": "-> a.txt", "keep/deep/f": "same"})
	r.setRef("refs/heads/main", subject)
	clone := filepath.Join(realTemp(t), "clone")
	runGit(t, filepath.Dir(clone), "clone", "-q", "--bare", r.dir, clone)
	before := runGit(t, r.dir, "for-each-ref")
	c := propose(t, "a.txt", "two", "bin/run", "#!ran", "d/only", "-", "new/x/y", "fresh")
	got, err := DeriveCommit(context.Background(), r.subject(subject), c, origin)
	require.NoError(t, err)
	again, err := DeriveCommit(context.Background(), r.subject(subject), c, origin)
	require.NoError(t, err)
	require.Equal(t, got, again)
	elsewhere, err := DeriveCommit(context.Background(), commitSubject(clone, subject.String()), c, origin)
	require.NoError(t, err)
	require.Equal(t, got, elsewhere)
	require.Equal(t, before, runGit(t, r.dir, "for-each-ref"))
	require.NoFileExists(t, filepath.Join(r.dir, "new/x/y"))

	require.Equal(t, subject.String(), runGit(t, r.dir, "rev-parse", got+"^"))
	require.Equal(t, strings.Join([]string{"100644 a.txt", "100755 bin/run", "100644 keep/deep/f", "120000 l", "100644 new/x/y"}, "\n"),
		runGit(t, r.dir, "ls-tree", "-r", "--format=%(objectmode) %(path)", got), "changed files keep their mode")
	require.Equal(t, "two", runGit(t, r.dir, "show", got+":a.txt"))
	require.Equal(t, "Baildock candidate|candidate@baildock.invalid|0|Candidate of attempt agent-1", runGit(t, r.dir, "log", "-1", "--format=%an|%ae|%ct|%s", got))
	require.Contains(t, runGit(t, r.dir, "log", "-1", "--format=%b", got), "Baildock-Record: "+origin.Record.String())
	runGit(t, r.dir, "fsck", "--strict", got)

	other, err := DeriveCommit(context.Background(), r.subject(subject), c, Origin{Attempt: "agent-2", Record: origin.Record})
	require.NoError(t, err)
	require.NotEqual(t, got, other)

	// A candidate is a source like any other, and what it touches is what it says.
	d, err := Differ(context.Background(), r.dir, got)
	require.NoError(t, err)
	require.Equal(t, Difference{Parent: subject.String(), Touched: []string{"a.txt", "bin/run", "d/only", "new/x/y"}}, d)
	_, err = measure(t, r.subject(plumbing.NewHash(got)))
	require.NoError(t, err)
}

// req I2: what doesn't fit the subject, or would make a source that no snapshot accepts.
func TestDeriveCommitRefuses(t *testing.T) {
	r := newGitRepo(t)
	subject := r.subject(r.commitFiles(map[string]string{"a.txt": "one", "d/f": "x", "l": "-> a.txt"}))
	for name, c := range map[string]struct {
		code candidate.Code
		made candidate.Candidate
	}{
		"unchanged":           {candidate.CodeUnchanged, propose(t, "a.txt", "one")},
		"absent":              {candidate.CodeAbsent, propose(t, "b", "-")},
		"a link as a file":    {candidate.CodeLink, propose(t, "l", "x")},
		"through a link":      {candidate.CodeLink, propose(t, "l/x", "x")},
		"file over directory": {candidate.CodeConflict, propose(t, "d", "x")},
		"below a file":        {candidate.CodeConflict, propose(t, "a.txt/b", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DeriveCommit(context.Background(), subject, c.made, origin)
			requireRefused(t, err, c.code)
		})
	}
	_, err := DeriveCommit(context.Background(), subject, propose(t, "a.txt", "-"), origin)
	requireCode(t, err, CodeLinkDangling)
	_, err = DeriveCommit(context.Background(), subject, propose(t, "ledger.db", "x", "keys/bundle.pem", "x"), origin)
	requireCode(t, err, CodeHoldsHome)
	sub := r.subject(r.commit(r.tree(entry{gitSubmodule, "sub", r.commitFiles(map[string]string{"a": "1"})}, entry{gitFile, "a", r.blob("1")})))
	_, err = DeriveCommit(context.Background(), sub, propose(t, "sub/x", "x"), origin)
	requireCode(t, err, CodeSubmodule)

	// A file that becomes a directory, and a tree left empty.
	got, err := DeriveCommit(context.Background(), subject, propose(t, "a.txt", "-", "l", "x"), origin)
	requireRefused(t, err, candidate.CodeLink)
	require.Empty(t, got)
	plainSubject := r.subject(r.commitFiles(map[string]string{"a": "1"}))
	got, err = DeriveCommit(context.Background(), plainSubject, propose(t, "a", "-", "a/b", "2"), origin)
	require.NoError(t, err)
	require.Equal(t, "a/b", runGit(t, r.dir, "ls-tree", "-r", "--name-only", got))
	got, err = DeriveCommit(context.Background(), plainSubject, propose(t, "a", "-"), origin)
	require.NoError(t, err)
	require.Empty(t, runGit(t, r.dir, "ls-tree", "-r", "--name-only", got))
}

// req I3: a directory subject gives a new manifest and a directory.
func TestDeriveDirectory(t *testing.T) {
	dir := directoryOf(t, map[string]string{"a.txt": "one", "bin/run": "#!run", "l": "-> a.txt", "old": "x"})
	subject := directorySubject(dir)
	ran := digestOf(t, subject)
	dest := filepath.Join(realTemp(t), "out")
	c := propose(t, "a.txt", "two", "old", "-", "n/m", "new")
	m, err := DeriveDirectory(context.Background(), subject, nil, ran, c, dest)
	require.NoError(t, err)
	want, err := m.Digest()
	require.NoError(t, err)
	require.Equal(t, want, digestOf(t, directorySubject(dest)), "the directory has the manifest that was returned")
	require.NotEqual(t, ran, want)
	require.Equal(t, want, digestOf(t, directorySubject(directoryOf(t, map[string]string{"a.txt": "two", "bin/run": "#!run", "l": "-> a.txt", "n/m": "new"}))))

	_, err = DeriveDirectory(context.Background(), subject, nil, ran, c, dest)
	requireCode(t, err, CodeExists)
	require.DirExists(t, dest)
	for name, bad := range map[string]candidate.Candidate{"unchanged": propose(t, "a.txt", "one"), "absent": propose(t, "none", "-"), "link": propose(t, "l", "x")} {
		other := filepath.Join(realTemp(t), "other")
		_, err = DeriveDirectory(context.Background(), subject, nil, ran, bad, other)
		var refused *candidate.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.NoDirExists(t, other, "nothing is left")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("later"), 0o644))
	_, err = DeriveDirectory(context.Background(), subject, nil, ran, c, filepath.Join(realTemp(t), "late"))
	requireCode(t, err, CodeChanged)
}
