package source

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// repository reads a local git repository: its references, and its objects wherever they lie
// (loose, packed, borrowed from other repositories, shared between worktrees).
//
// go-git's storage layer parses packs and references. Its revision resolver isn't used, because
// it silently ignores forms it doesn't know and prefers an abbreviated hash to a branch of that
// name; neither is its lookup of borrowed objects, which ignores relative and nested ones.
type repository struct {
	refs    *filesystem.Storage
	objects objects
}

// openRepository opens the repository whose working tree, `.git` or bare directory path is.
func openRepository(path string) (*repository, error) {
	gitDir, err := findGitDir(path)
	if err != nil {
		return nil, err
	}
	common, err := commonDir(gitDir)
	if err != nil {
		return nil, err
	}
	var shared billy.Filesystem
	if common != gitDir {
		shared = osfs.New(common)
	}
	store := filesystem.NewStorage(dotgit.NewRepositoryFilesystem(osfs.New(gitDir), shared), cache.NewObjectLRUDefault())
	cfg, err := store.Config()
	if err != nil {
		return nil, refuse(CodeRepository, "", "the repository's configuration can't be read: %v", err)
	}
	if err := checkFormat(cfg); err != nil {
		return nil, err
	}
	objs, err := openObjects(filepath.Join(common, "objects"))
	if err != nil {
		return nil, err
	}
	return &repository{refs: store, objects: objs}, nil
}

func (r *repository) close() { r.objects.close() }

// findGitDir returns the directory with HEAD. It never looks in parent directories: the source
// would be larger than what was named.
func findGitDir(path string) (string, error) {
	dotGit := filepath.Join(path, ".git")
	info, err := os.Stat(dotGit)
	switch {
	case err == nil && info.IsDir():
		return dotGit, nil
	case err == nil:
		text, err := readOnePath(dotGit)
		if err != nil {
			return "", err
		}
		to, found := strings.CutPrefix(text, "gitdir:")
		if !found {
			return "", refuse(CodeRepository, "", "the file .git doesn't name a repository")
		}
		return absoluteFrom(path, strings.TrimSpace(to)), nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", refuse(CodeRepository, "", "the repository can't be read: %v", err)
	}
	for _, name := range []string{"HEAD", "objects"} {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil {
			return "", refuse(CodeRepository, "", "not the top of a git repository; name its top directory, or leave out @REV for the directory as it lies")
		}
	}
	return path, nil
}

// commonDir returns the directory a linked worktree shares with its repository, else gitDir.
func commonDir(gitDir string) (string, error) {
	file := filepath.Join(gitDir, "commondir")
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	text, err := readOnePath(file)
	if err != nil {
		return "", err
	}
	return absoluteFrom(gitDir, text), nil
}

func readOnePath(file string) (string, error) {
	info, err := os.Stat(file)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxGitFile) {
		return "", refuse(CodeRepository, "", "%s is not a file of one path", filepath.Base(file))
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return "", refuse(CodeRepository, "", "the repository can't be read: %v", err)
	}
	return string(bytes.TrimRight(b, "\r\n")), nil
}

func absoluteFrom(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// knownExtensions are the repository extensions that change nothing about reading, with the
// values accepted; an empty list accepts all.
var knownExtensions = map[string][]string{
	"noop":            nil,
	"noop-v1":         nil,
	"preciousobjects": nil,
	"partialclone":    nil, // an object that isn't here is refused when it is needed
	"worktreeconfig":  nil,
	"objectformat":    {"sha1"},
	"refstorage":      {"files"},
}

func checkFormat(cfg *config.Config) error {
	// Read raw: go-git's own field knows version 1 only and is empty for every other.
	switch version := cfg.Raw.Section("core").Options.Get("repositoryformatversion"); version {
	case "", "0", "1":
	default:
		return refuse(CodeRepository, "", "repository format %q is not understood", version)
	}
	for _, o := range cfg.Raw.Section("extensions").Options {
		accepted, known := knownExtensions[strings.ToLower(o.Key)]
		ok := known && accepted == nil
		for _, v := range accepted {
			ok = ok || strings.EqualFold(v, o.Value)
		}
		if !ok {
			return refuse(CodeRepository, "", "repository extension %s=%s is not understood; SHA-1 objects with references in files are", o.Key, o.Value)
		}
	}
	return nil
}

// reference returns the object a reference names, through symbolic ones, and whether it exists.
func (r *repository) reference(name string) (plumbing.Hash, bool, error) {
	for range maxPeel {
		ref, err := r.refs.Reference(plumbing.ReferenceName(name))
		if errors.Is(err, plumbing.ErrReferenceNotFound) || errors.Is(err, fs.ErrNotExist) {
			return plumbing.ZeroHash, false, nil
		}
		if err != nil {
			return plumbing.ZeroHash, false, refuse(CodeRevision, "", "reference %q can't be read: %v", name, err)
		}
		if ref.Type() == plumbing.HashReference {
			return ref.Hash(), true, nil
		}
		name = ref.Target().String()
	}
	return plumbing.ZeroHash, false, refuse(CodeRevision, "", "reference %q leads to itself", name)
}
