package warden

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// CustodyFiles is a directory that keeps custody of daemon objects which no attempt of a ledger has:
// those of a standalone preflight (req E8). Each object has one file, synced before its create is sent
// and at every step after it, and removed once its absence is confirmed. A file holds the custody
// events themselves, so the code that closes an attempt's custody closes it.
//
//	files, err := warden.OpenCustodyFiles(dir, sqlite.RefuseNetwork)
//	rec := files.Recorder(next) // next takes everything that is recorded, too; may be nil
//	defer rec.Close()           // what is open by then is a supervisor's
//	err = executor.Run(ctx, executor.Config{Driver: d, Recorder: rec, Watchdog: w}, job)
//
// or, for an object that is only made and looked at:
//
//	err = rec.Record(ctx, evidence.CustodyTaken{Handle: h, Kind: …, Name: …, Request: …, Daemon: …})
//	made, err := d.Create(ctx, plan) // its labels name handle and request
//	err = rec.Record(ctx, evidence.ContainerCreated{Handle: h, Container: made.ID})
//	…
//	err = executor.Reconciler{Driver: d, Recorder: rec}.Reconcile(ctx, rec.Open()...)
//
// A process that dies leaves its files, and their locks are free: Supervise with Pass.Custody closes
// them by the rules of req E3 to E5. Custody that nothing can prove closed is given up by removing its
// file, which is an operator's decision.
type CustodyFiles struct {
	dir   string
	local func(dir string) error
}

// Suffixes of what lies beside each other under one handle.
const (
	custodySuffix = ".custody" // the document
	draftSuffix   = ".draft"   // the next one while it is written: its writer died if nobody holds the lock
	holdSuffix    = ".lock"    // held by the process that made the object, or that closes its custody
)

// OpenCustodyFiles opens the directory. It is made when the first custody is taken; one that is there
// must be this user's own and private, and must not lie on a network filesystem, where a lock says
// nothing: local refuses those, nil if the caller did.
func OpenCustodyFiles(dir string, local func(dir string) error) (*CustodyFiles, error) {
	f := &CustodyFiles{dir: dir, local: local}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("custody directory %q is not an absolute path", dir)
	}
	if err := f.check(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return f, nil
}

func (f *CustodyFiles) check() error {
	st, err := os.Lstat(f.dir)
	if err != nil {
		return fmt.Errorf("look at the custody directory: %w", err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || !ok || int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("custody directory %q is not a directory that only its owner, this user, may use: give it mode 0700, or move it away", f.dir)
	}
	if f.local != nil {
		return f.local(f.dir)
	}
	return nil
}

// make makes the directory, durably.
func (f *CustodyFiles) make() error {
	made, err := unmade(f.dir)
	if err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("make the custody directory: %w", err)
	}
	if err := f.check(); err != nil {
		return err
	}
	// A directory is durable once its parent is synced; each that was missing has one. The custody
	// directory's own is synced in any case: another process may have made it and died.
	for _, dir := range made {
		if err := syncDirectory(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return syncDirectory(filepath.Dir(f.dir))
}

// unmade lists a directory and those above it that don't exist, the lowest first.
func unmade(dir string) (out []string, err error) {
	for {
		_, err := os.Lstat(dir)
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		out = append(out, dir)
		dir = filepath.Dir(dir)
	}
}

func (f *CustodyFiles) path(h evidence.HandleKey, suffix string) string {
	return filepath.Join(f.dir, h.String()+suffix)
}

// handles lists what lies in the directory, by whatever file of it.
func (f *CustodyFiles) handles() ([]evidence.HandleKey, error) {
	dir, err := os.Open(f.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the custody files: %w", err)
	}
	names, err := dir.Readdirnames(maxCustodyNames + 1)
	if err = errors.Join(err, dir.Close()); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list the custody files: %w", err)
	}
	if len(names) > maxCustodyNames {
		return nil, fmt.Errorf("custody directory %q holds more than %d files: see what leaves them", f.dir, maxCustodyNames)
	}
	slices.Sort(names)
	var out []evidence.HandleKey
	for _, name := range names {
		text, suffix, _ := strings.Cut(name, ".")
		var h evidence.HandleKey
		known := slices.Contains([]string{custodySuffix, draftSuffix, holdSuffix}, "."+suffix)
		// Whatever else lies there is nobody's custody.
		if known && h.UnmarshalText([]byte(text)) == nil && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out, nil
}

// read reads one custody; os.ErrNotExist where there is none.
func (f *CustodyFiles) read(h evidence.HandleKey) (keptCustody, error) {
	path := f.path(h, custodySuffix)
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return keptCustody{}, fmt.Errorf("open a custody file: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(file, maxCustodyFile+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return keptCustody{}, fmt.Errorf("read a custody file: %w", err)
	}
	if len(b) > maxCustodyFile {
		return keptCustody{}, fmt.Errorf("custody file %q is longer than %d bytes", path, maxCustodyFile)
	}
	k, err := decodeCustody(h, b)
	if err != nil {
		return keptCustody{}, fmt.Errorf("custody file %q can't be read: %w", path, err)
	}
	return k, nil
}

// write replaces a custody's file, durably, whole or not at all. The caller holds its lock.
func (f *CustodyFiles) write(h evidence.HandleKey, k keptCustody) error {
	draft := f.path(h, draftSuffix)
	file, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("write a custody file: %w", err)
	}
	_, err = file.Write(k.encode())
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(draft, f.path(h, custodySuffix))
	}
	if err == nil {
		err = syncDirectory(f.dir)
	}
	if err != nil {
		return fmt.Errorf("write a custody file: %w", err)
	}
	return nil
}

// remove removes a custody's file, durably, and what a dead writer left beside it.
func (f *CustodyFiles) remove(h evidence.HandleKey) error {
	for _, suffix := range []string{draftSuffix, custodySuffix} {
		if err := os.Remove(f.path(h, suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a custody file: %w", err)
		}
	}
	return syncDirectory(f.dir)
}

// fresh reports whether a custody is perhaps just being taken: it has no file yet, and its lock was made a
// moment ago. Whoever takes it must not find its lock held by somebody who only looks.
func (f *CustodyFiles) fresh(h evidence.HandleKey) bool {
	if _, err := os.Lstat(f.path(h, custodySuffix)); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	st, err := os.Lstat(f.path(h, holdSuffix))
	return err == nil && time.Since(st.ModTime()) < openingPatience
}

// lock takes the lock of one custody; unix.EWOULDBLOCK while another process has it.
func (f *CustodyFiles) lock(h evidence.HandleKey) (*Lock, error) {
	l, err := takeLock(f.path(h, holdSuffix))
	if err != nil {
		return nil, fmt.Errorf("lock custody %s: %w", h, err)
	}
	return l, nil
}

func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync a directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync directory %q: %w", path, err)
	}
	return nil
}
