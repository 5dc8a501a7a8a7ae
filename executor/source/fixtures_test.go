package source

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// gitRepo writes git objects as they are asked for, hostile ones included.
type gitRepo struct {
	t    *testing.T
	dir  string
	repo *git.Repository
}

func newGitRepo(t *testing.T) gitRepo {
	dir := realTemp(t)
	repo, err := git.PlainInit(dir, false)
	require.NoError(t, err)
	return gitRepo{t: t, dir: dir, repo: repo}
}

func (r gitRepo) object(kind plumbing.ObjectType, content string) plumbing.Hash {
	obj := r.repo.Storer.NewEncodedObject()
	obj.SetType(kind)
	w, err := obj.Writer()
	require.NoError(r.t, err)
	_, err = w.Write([]byte(content))
	require.NoError(r.t, err)
	require.NoError(r.t, w.Close())
	h, err := r.repo.Storer.SetEncodedObject(obj)
	require.NoError(r.t, err)
	return h
}

func (r gitRepo) blob(content string) plumbing.Hash { return r.object(plumbing.BlobObject, content) }

// entry is one line of a tree, written as given.
type entry struct {
	mode, name string
	hash       plumbing.Hash
}

// tree writes the entries in git's order.
func (r gitRepo) tree(entries ...entry) plumbing.Hash {
	slices.SortFunc(entries, func(a, b entry) int {
		return strings.Compare(treeEntry{mode: a.mode, name: a.name}.order(), treeEntry{mode: b.mode, name: b.name}.order())
	})
	return r.rawTree(entries...)
}

func (r gitRepo) rawTree(entries ...entry) plumbing.Hash {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.mode + " " + e.name + "\x00" + string(e.hash[:]))
	}
	return r.object(plumbing.TreeObject, b.String())
}

func (r gitRepo) commit(tree plumbing.Hash, parents ...plumbing.Hash) plumbing.Hash {
	text := "tree " + tree.String() + "\n"
	for _, p := range parents {
		text += "parent " + p.String() + "\n"
	}
	who := "A <a@example.org> 1700000000 +0000\n"
	return r.object(plumbing.CommitObject, text+"author "+who+"committer "+who+"\nmessage\n")
}

// commitFiles commits content: the key is a path; a value that starts with "-> " is a link, with
// "#!" an executable.
func (r gitRepo) commitFiles(content map[string]string) plumbing.Hash {
	return r.commit(r.treeOf(content))
}

func (r gitRepo) treeOf(content map[string]string) plumbing.Hash {
	below := map[string]map[string]string{}
	var entries []entry
	for path, text := range content {
		if dir, rest, nested := strings.Cut(path, "/"); nested {
			if below[dir] == nil {
				below[dir] = map[string]string{}
			}
			below[dir][rest] = text
			continue
		}
		e := entry{mode: gitFile, name: path}
		switch target, link := strings.CutPrefix(text, "-> "); {
		case link:
			e.mode, e.hash = gitLink, r.blob(target)
		case strings.HasPrefix(text, "#!"):
			e.mode, e.hash = gitExec, r.blob(text)
		default:
			e.hash = r.blob(text)
		}
		entries = append(entries, e)
	}
	for dir, content := range below {
		entries = append(entries, entry{gitTree, dir, r.treeOf(content)})
	}
	return r.tree(entries...)
}

func (r gitRepo) setRef(name string, h plumbing.Hash) {
	require.NoError(r.t, r.repo.Storer.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), h)))
}

func (r gitRepo) subject(h plumbing.Hash) Subject { return commitSubject(r.dir, h.String()) }

func commitSubject(dir, revision string) Subject {
	return Subject{Subject: evidence.Subject{Kind: evidence.SubjectCommit, Revision: revision}, Path: dir}
}

func directorySubject(dir string) Subject {
	return Subject{Subject: evidence.Subject{Kind: evidence.SubjectDirectory}, Path: dir}
}

// writeFiles writes the same content as commitFiles into a directory.
func writeFiles(t testing.TB, dir string, content map[string]string) {
	for path, text := range content {
		full := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if target, link := strings.CutPrefix(text, "-> "); link {
			require.NoError(t, os.Symlink(target, full))
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		require.NoError(t, os.WriteFile(full, []byte(text), mode))
	}
}

func directoryOf(t testing.TB, content map[string]string) string {
	dir := realTemp(t)
	writeFiles(t, dir, content)
	return dir
}

func realTemp(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

// privateDir is a parent for snapshots.
func privateDir(t testing.TB) string {
	dir := filepath.Join(realTemp(t), "execution")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// runGit runs the real git, apart from anybody's configuration.
func runGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	who := "A"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=" + who, "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=" + who, "GIT_COMMITTER_EMAIL=a@example.org",
		"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_ALLOW_PROTOCOL=file"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func requireCode(t testing.TB, err error, code Code) *RefusedError {
	t.Helper()
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.Code, "%v", err)
	require.NotEmpty(t, refused.Detail)
	return refused
}

func measure(t testing.TB, s Subject, reserved ...Reserved) (Content, error) {
	t.Helper()
	return Digest(context.Background(), s, reserved)
}

func digestOf(t testing.TB, s Subject) evidence.ManifestDigest {
	t.Helper()
	c, err := measure(t, s)
	require.NoError(t, err)
	d, err := c.Manifest.Digest()
	require.NoError(t, err)
	return d
}

func bounded(files int, bytes, fileBytes uint64) Limits {
	l := DefaultLimits
	l.Files, l.Bytes, l.FileBytes = files, bytes, fileBytes
	return l
}
