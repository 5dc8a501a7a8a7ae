package source

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// streamFrom is the size from which a packed object is inflated while it is read instead of
// being held in memory.
const streamFrom = 1 << 20

// objects reads a repository's objects: its own first, then borrowed ones.
type objects struct {
	dirs []objectDir
}

type objectDir struct {
	loose *dotgit.DotGit
	packs *filesystem.ObjectStorage
}

// openObjects opens an object directory and, through its `info/alternates`, all it borrows from.
func openObjects(dir string) (objects, error) {
	var o objects
	seen := map[string]bool{}
	for queue := []string{dir}; len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		if seen[dir] {
			continue
		}
		if seen[dir] = true; len(seen) > maxAlternates {
			return objects{}, refuse(CodeRepository, "", "the repository borrows objects from more than %d others", maxAlternates)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || filepath.Base(dir) != "objects" {
			return objects{}, refuse(CodeRepository, "", "the repository needs objects from a directory that can't be read: %q", dir)
		}
		dot := dotgit.NewWithOptions(ownObjects{osfs.New(filepath.Dir(dir))}, dotgit.Options{KeepDescriptors: true})
		o.dirs = append(o.dirs, objectDir{
			loose: dot,
			packs: filesystem.NewObjectStorageWithOptions(dot, cache.NewObjectLRUDefault(),
				filesystem.Options{KeepDescriptors: true, LargeObjectThreshold: streamFrom}),
		})
		more, err := alternates(dir)
		if err != nil {
			return objects{}, err
		}
		queue = append(queue, more...)
	}
	return o, nil
}

func (o objects) close() {
	for _, d := range o.dirs {
		d.packs.Close() //nolint:errcheck // read-only handles
	}
}

// alternates returns the object directories dir borrows from (gitrepository-layout(5)): one path
// a line, relative ones to dir.
func alternates(dir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, refuse(CodeRepository, "", "the list of borrowed objects can't be read: %v", err)
	}
	var dirs []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" && line[0] != '#' {
			dirs = append(dirs, absoluteFrom(dir, line))
		}
	}
	return dirs, nil
}

// ownObjects hides the list of alternates from go-git, which would open every one of them anew
// for each object.
type ownObjects struct{ billy.Filesystem }

func (f ownObjects) Open(name string) (billy.File, error) {
	if strings.HasSuffix(name, "info/alternates") {
		return nil, fs.ErrNotExist
	}
	return f.Filesystem.Open(name)
}

// size returns an object's size from its header, without reading the rest.
func (o objects) size(h plumbing.Hash) (uint64, error) {
	for _, d := range o.dirs {
		n, err := d.size(h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err == nil && n < 0 {
			err = objfile.ErrHeader
		}
		if err != nil {
			return 0, corrupt(h, err)
		}
		return uint64(n), nil
	}
	return 0, missing(h)
}

// size asks go-git only for packed objects: for a loose one it leaves the file open.
func (d objectDir) size(h plumbing.Hash) (int64, error) {
	f, err := d.loose.Object(h)
	if err != nil {
		if absent(err) {
			return d.packs.EncodedObjectSize(h)
		}
		return 0, err
	}
	obj, err := openLoose(f)
	if err != nil {
		return 0, err
	}
	return int64(obj.size), obj.Close()
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, plumbing.ErrObjectNotFound)
}

// object is an open object.
type object struct {
	kind plumbing.ObjectType
	size uint64
	io.ReadCloser
}

func (o objects) open(h plumbing.Hash) (object, error) {
	for _, d := range o.dirs {
		obj, err := d.open(h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return object{}, corrupt(h, err)
		}
		return obj, nil
	}
	return object{}, missing(h)
}

func (d objectDir) open(h plumbing.Hash) (object, error) {
	f, err := d.loose.Object(h)
	if err == nil {
		return openLoose(f)
	}
	if !absent(err) {
		return object{}, err
	}
	obj, err := d.packs.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return object{}, err
	}
	r, err := obj.Reader()
	if err != nil {
		return object{}, err
	}
	if obj.Size() < 0 {
		return object{}, errors.Join(errors.New("negative size"), r.Close())
	}
	return object{kind: obj.Type(), size: uint64(obj.Size()), ReadCloser: r}, nil
}

// openLoose streams a loose object: go-git would inflate it whole, whatever its header says.
func openLoose(f billy.File) (object, error) {
	r, err := objfile.NewReader(f)
	if err != nil {
		return object{}, errors.Join(err, f.Close())
	}
	kind, size, err := r.Header()
	if err == nil && size < 0 {
		err = objfile.ErrHeader
	}
	if err != nil {
		return object{}, errors.Join(err, r.Close(), f.Close())
	}
	return object{kind: kind, size: uint64(size), ReadCloser: closers{r, r, f}}, nil
}

type closers struct {
	io.Reader
	first, second io.Closer
}

func (c closers) Close() error { return errors.Join(c.first.Close(), c.second.Close()) }

// copyTo writes an object of the given kind and size and proves that it hashes to its name
// (gitformat-loose: SHA-1 over "<kind> <size>\0" and the bytes); go-git checks neither.
func (o objects) copyTo(ctx context.Context, w io.Writer, h plumbing.Hash, kind plumbing.ObjectType, size uint64, buf []byte) (err error) {
	obj, err := o.open(h)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := obj.Close(); err == nil && closeErr != nil {
			err = corrupt(h, closeErr)
		}
	}()
	if obj.kind != kind || obj.size != size {
		return refuse(CodeCorruptObject, "", "git object %s is a %s of %d bytes where a %s of %d is expected", h, obj.kind, obj.size, kind, size)
	}
	hasher := plumbing.NewHasher(kind, int64(size))
	n, err := copyExactly(ctx, io.MultiWriter(hasher, w), obj, size, buf)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return corrupt(h, err)
	case n != size:
		return refuse(CodeCorruptObject, "", "git object %s is not as long as its header says; run git fsck", h)
	case hasher.Sum() != h:
		return refuse(CodeCorruptObject, "", "git object %s doesn't hash to its name; run git fsck", h)
	}
	return nil
}

// read returns a small object whole.
func (o objects) read(ctx context.Context, h plumbing.Hash, kind plumbing.ObjectType, most uint64) ([]byte, error) {
	size, err := o.size(h)
	if err != nil {
		return nil, err
	}
	if size > most {
		return nil, refuse(CodeTooLarge, "", "git object %s of %d bytes, at most %d: %s", h, size, most, notLarge)
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	err = o.copyTo(ctx, b, h, kind, size, make([]byte, min(size+1, copyBuffer)))
	return b.Bytes(), err
}

// kind returns an object's kind.
func (o objects) kind(h plumbing.Hash) (plumbing.ObjectType, error) {
	obj, err := o.open(h)
	if err != nil {
		return plumbing.InvalidObject, err
	}
	return obj.kind, obj.Close()
}

// withPrefix returns the objects whose hexadecimal name starts with prefix.
func (o objects) withPrefix(prefix string) ([]plumbing.Hash, error) {
	even, err := hex.DecodeString(prefix[:len(prefix)&^1])
	if err != nil {
		return nil, err
	}
	var found []plumbing.Hash
	for _, d := range o.dirs {
		hashes, err := d.packs.HashesWithPrefix(even)
		if err != nil {
			return nil, refuse(CodeRepository, "", "the repository's objects can't be listed: %v", err)
		}
		for _, h := range hashes {
			if strings.HasPrefix(h.String(), prefix) && !slices.Contains(found, h) {
				found = append(found, h)
			}
		}
	}
	return found, nil
}

func missing(h plumbing.Hash) error {
	return refuse(CodeMissingObject, "", "git object %s is not in the repository; fetch it (a shallow or partial clone leaves objects out)", h)
}

func corrupt(h plumbing.Hash, err error) error {
	return refuse(CodeCorruptObject, "", "git object %s can't be read: %v; run git fsck", h, err)
}
