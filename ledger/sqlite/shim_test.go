package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/stretchr/testify/require"
)

// operation is one call that SQLite makes to change a file.
type operation struct {
	kind string // write, sync, truncate, delete or open
	file string // "db", "wal", "shm" or "journal"
}

// shim is SQLite's file layer with a hook before every operation that changes a file. An error of
// the hook takes the operation's place; after says that it is done first.
type shim struct {
	vfs.VFS
	hook atomic.Pointer[func(operation) (err error, after bool)]
}

var shims atomic.Int64

// newShim registers a file layer and returns its name for Options.
func newShim(t testing.TB) (*shim, string) {
	t.Helper()
	name := fmt.Sprintf("shim-%d", shims.Add(1))
	s := &shim{VFS: vfs.Find("os")}
	vfs.Register(name, s)
	t.Cleanup(func() { vfs.Unregister(name) })
	return s, name
}

func (s *shim) on(f func(operation) (err error, after bool)) {
	if f == nil {
		s.hook.Store(nil)
		return
	}
	s.hook.Store(&f)
}

func (s *shim) do(op operation, f func() error) error {
	hook := s.hook.Load()
	if hook == nil {
		return f()
	}
	err, after := (*hook)(op)
	if err != nil && !after {
		return err
	}
	if done := f(); done != nil {
		return done
	}
	return err
}

func fileKind(name string) string {
	switch ext := name[strings.LastIndexByte(name, '.'):]; {
	case strings.HasSuffix(ext, "-wal"):
		return "wal"
	case strings.HasSuffix(ext, "-journal"):
		return "journal"
	default:
		return "db"
	}
}

func (s *shim) Delete(name string, syncDir bool) error {
	return s.do(operation{"delete", fileKind(name)}, func() error { return s.VFS.Delete(name, syncDir) })
}

func (s *shim) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (f vfs.File, out vfs.OpenFlag, err error) {
	kind := "temporary"
	if name != nil {
		kind = fileKind(name.String())
	}
	f, out, err = s.VFS.(vfs.VFSFilename).OpenFilename(name, flags)
	if err != nil {
		return nil, out, err
	}
	return &shimFile{File: f, s: s, kind: kind}, out, nil
}

// shimFile passes everything on but what it counts as an operation.
type shimFile struct {
	vfs.File
	s    *shim
	kind string
}

func (f *shimFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.s.do(operation{"write", f.kind}, func() error { n, err = f.File.WriteAt(p, off); return err })
	return n, err
}

func (f *shimFile) Sync(flags vfs.SyncFlag) error {
	return f.s.do(operation{"sync", f.kind}, func() error { return f.File.Sync(flags) })
}

func (f *shimFile) Truncate(size int64) error {
	return f.s.do(operation{"truncate", f.kind}, func() error { return f.File.Truncate(size) })
}

func (f *shimFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *shimFile) SizeHint(size int64) error { return f.File.(vfs.FileSizeHint).SizeHint(size) }

func (f *shimFile) LockState() vfs.LockLevel { return f.File.(vfs.FileLockState).LockState() }

func (f *shimFile) HasMoved() (bool, error) { return f.File.(vfs.FileHasMoved).HasMoved() }

// count counts the operations that match while f runs.
func (s *shim) count(match operation, f func()) int {
	var n atomic.Int64
	s.on(func(op operation) (error, bool) {
		if op == match {
			n.Add(1)
		}
		return nil, false
	})
	f()
	s.on(nil)
	return int(n.Load())
}

// fault makes the n-th operation fail, counted from 1, and those behind it when it sticks.
type fault struct {
	mu     sync.Mutex
	n      int
	sticks bool
	after  bool
	err    func(operation) error
	seen   int
	hit    operation
}

func (f *fault) hook(op operation) (error, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if f.seen == f.n || f.sticks && f.seen > f.n {
		if f.seen == f.n {
			f.hit = op
		}
		return f.err(op), f.after
	}
	return nil, false
}

// crashed copies what a machine would find after kill -9 at this instant: the file and its log,
// without the shared memory.
func crashed(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "crashed.db")
	for _, suffix := range []string{"", "-wal", "-journal"} {
		b, err := os.ReadFile(path + suffix)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to+suffix, b, 0o600))
	}
	return to
}
