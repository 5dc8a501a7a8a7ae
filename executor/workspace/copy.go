package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// job is files of one directory, by their place in the listing.
type job struct {
	dir   string
	files []int
}

func jobsOf(l *source.Listing) []job {
	at := map[string]int{}
	var jobs []job
	for i, e := range l.Entries {
		if e.Type != evidence.EntryFile {
			continue
		}
		dir, _ := evidence.SplitPath(e.Path)
		j, open := at[dir]
		if !open || len(jobs[j].files) == filesPerJob {
			j = len(jobs)
			at[dir] = j
			jobs = append(jobs, job{dir: dir})
		}
		jobs[j].files = append(jobs[j].files, i)
	}
	return jobs
}

// worker is what one goroutine uses again for each file.
type worker struct {
	buf []byte
	sum hash.Hash
}

// eachJob runs jobs in parallel. After a failure no more are begun; of several the first in the order of
// the jobs is returned.
func eachJob(ctx context.Context, jobs []job, do func(context.Context, *worker, job) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make([]error, len(jobs))
	next := make(chan int)
	var group sync.WaitGroup
	for range min(len(jobs), maxWorkers, max(2, runtime.GOMAXPROCS(0))) {
		group.Go(func() {
			w := &worker{buf: make([]byte, copyBuffer), sum: sha256.New()}
			for i := range next {
				if failed[i] = do(ctx, w, jobs[i]); failed[i] != nil {
					cancel()
				}
			}
		})
	}
	stopped := error(nil)
	for i := range jobs {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
			stopped = ctx.Err()
		}
		break
	}
	close(next)
	group.Wait()
	// What a failure cancelled is no cause of its own.
	var cancelled error
	for _, err := range failed {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		cancelled = errors.Join(cancelled, err)
	}
	return errors.Join(stopped, cancelled)
}

// copier copies a listing into a directory of ours.
type copier struct {
	listing  *source.Listing
	into     *os.File
	texts    *texts
	hooks    hooks
	entries  []evidence.WorkspaceEntry // as in the listing; each worker writes its own
	stripped int
}

func (c *copier) copy(ctx context.Context) error {
	root, err := os.OpenRoot(procPath(c.into))
	if err != nil {
		return fmt.Errorf("open the workspace: %w", err)
	}
	defer root.Close() //nolint:errcheck // a read-only handle
	// Parents come first in the order of paths.
	for i, e := range c.listing.Entries {
		s := stateOf(e)
		c.entries[i] = evidence.WorkspaceEntry{Path: e.Path, EntryState: s}
		if e.Mode&^0o777 != 0 {
			c.stripped++
		}
		switch e.Type {
		case evidence.EntryDirectory:
			err = root.Mkdir(e.Path, os.FileMode(s.Mode))
		case evidence.EntryLink:
			err = root.Symlink(e.Target, e.Path)
		}
		if err != nil {
			return fmt.Errorf("copy %q into the workspace: %w", e.Path, errors.Unwrap(err))
		}
	}
	if err := eachJob(ctx, jobsOf(c.listing), func(ctx context.Context, w *worker, j job) error { return c.files(ctx, root, w, j) }); err != nil {
		return err
	}
	// The umask may have taken bits away.
	for _, e := range c.entries {
		if e.Type == evidence.EntryDirectory {
			if err := root.Chmod(e.Path, os.FileMode(e.Mode)); err != nil {
				return fmt.Errorf("copy %q into the workspace: %w", e.Path, errors.Unwrap(err))
			}
		}
	}
	return nil
}

// procPath is an open directory's path for as long as it is open, so that nothing is looked up twice.
func procPath(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", dir.Fd()) }

// files copies the files of a job.
func (c *copier) files(ctx context.Context, root *os.Root, w *worker, j job) (err error) {
	from, err := c.listing.Open(j.dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			from.Abandon()
		} else {
			err = from.Close()
		}
	}()
	into, err := openUnder(root, j.dir)
	if err != nil {
		return err
	}
	defer into.Close() //nolint:errcheck // a read-only handle
	for _, i := range j.files {
		if err := c.file(ctx, from, into, w, i); err != nil {
			return err
		}
	}
	return nil
}

// openUnder opens a directory below a root; "" is the root itself.
func openUnder(root *os.Root, dir string) (*os.File, error) {
	if dir == "" {
		dir = "."
	}
	f, err := root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %q of the workspace: %w", dir, errors.Unwrap(err))
	}
	return f, nil
}

func (c *copier) file(ctx context.Context, from *source.Opened, into *os.File, w *worker, i int) error {
	e := c.listing.Entries[i]
	_, name := evidence.SplitPath(e.Path)
	if c.hooks.opened != nil {
		c.hooks.opened(e.Path)
	}
	f, err := createIn(into, name)
	if err != nil {
		return fmt.Errorf("copy %q: %w", e.Path, err)
	}
	w.sum.Reset()
	out := sink{file: f, sum: w.sum, keep: c.texts.place(e.Size), read: c.hooks.read, path: e.Path}
	err = from.Read(ctx, &out, name, w.buf)
	if err == nil {
		err = c.texts.settle(i, &out)
	}
	// Bits after bytes: writing would clear none we keep, and the umask has had its say.
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), c.entries[i].Mode)
	}
	if err == nil {
		err = unix.UtimesNanoAt(int(into.Fd()), name, timesOf(e.ModTime), unix.AT_SYMLINK_NOFOLLOW)
	}
	w.sum.Sum(c.entries[i].SHA256[:0])
	return errors.Join(err, f.Close())
}

// sink takes one file's bytes once: into its digest, its copy, and if it is a text into the texts kept.
type sink struct {
	file *os.File
	sum  hash.Hash
	keep kept
	read func(path string)
	path string
}

func (s *sink) Write(p []byte) (int, error) {
	s.sum.Write(p)
	if err := s.keep.write(p); err != nil {
		return 0, err
	}
	if n, err := s.file.Write(p); err != nil {
		return n, fmt.Errorf("write the copy: %w", err)
	}
	if s.read != nil {
		s.read(s.path)
	}
	return len(p), nil
}
