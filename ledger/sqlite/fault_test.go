package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

func event(data string) ledger.Prepared {
	return ledger.Prepared{Type: "Tested", Time: 1, Media: "text/plain", Meta: []byte("meta"), Data: []byte(data)}
}

// versions returns how many events the stream has.
func versions(s *Store, stream ledger.StreamID) (int, error) {
	n := 0
	for _, err := range s.ReadStream(testContext, stream, 0) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// sound recomputes chains and root of a whole ledger.
func sound(t testing.TB, s *Store) *ledger.Checker {
	t.Helper()
	check := ledger.NewChecker()
	for e, err := range s.ReadAll(testContext, 0) {
		require.NoError(t, err)
		_, err := check.Check(e)
		require.NoError(t, err)
	}
	root, err := s.Root(testContext, check.Size())
	require.NoError(t, err)
	require.Equal(t, check.Root(), root)
	return check
}

func onLogSync(f func() error) func(operation) (error, bool) {
	return func(op operation) (error, bool) {
		if op == (operation{"sync", "wal"}) {
			return f(), false
		}
		return nil, false
	}
}

// An error after COMMIT was issued is "unknown", and what a later read shows stays true even if
// the machine stops at once. req R2
func TestCommitErrorOnce(t *testing.T) {
	shim, name := newShim(t)
	path := filepath.Join(t.TempDir(), "l.db")
	s := open(t, path, Options{vfs: name})
	_, err := s.Append(testContext, "a", ledger.NoStream, event("before"))
	require.NoError(t, err)

	failed := 0
	shim.on(onLogSync(func() error {
		if failed++; failed == 1 {
			return syscall.EIO
		}
		return nil
	}))
	_, err = s.Append(testContext, "a", 0, event("x"), event("y"))
	require.ErrorIs(t, err, ledger.ErrUnknownOutcome)
	require.ErrorIs(t, err, sqlite3.IOERR_FSYNC)
	var conflict *ledger.ConflictError
	require.False(t, errors.As(err, &conflict))
	require.GreaterOrEqual(t, failed, 2, "the outcome was settled by another commit")
	shim.on(nil)

	n, err := versions(s, "a")
	require.NoError(t, err)
	after := open(t, crashed(t, path), Options{})
	m, err := versions(after, "a")
	require.NoError(t, err)
	require.Equal(t, n, m, "a crash changed what had been read")
	sound(t, after)

	done, err := s.Append(testContext, "a", 0, event("x"), event("y")) // the same bytes
	require.NoError(t, err)
	require.Equal(t, ledger.Version(2), done.Last().Version)
	require.Equal(t, uint64(3), sound(t, s).Size())
}

// While the disk keeps failing nothing can be read: after a crash the events could be there.
// req R2
func TestCommitErrorUnsettled(t *testing.T) {
	shim, name := newShim(t)
	path := filepath.Join(t.TempDir(), "l.db")
	s := open(t, path, Options{vfs: name})
	_, err := s.Append(testContext, "a", ledger.NoStream, event("before"))
	require.NoError(t, err)

	shim.on(onLogSync(func() error { return syscall.EIO }))
	_, err = s.Append(testContext, "a", 0, event("x"))
	require.ErrorIs(t, err, ledger.ErrUnknownOutcome)
	_, err = versions(s, "a")
	require.ErrorContains(t, err, "settled")
	_, err = s.Append(testContext, "a", 0, event("x"))
	require.Error(t, err)
	_, err = s.Size(testContext)
	require.Error(t, err)

	shim.on(nil)
	n, err := versions(s, "a")
	require.NoError(t, err, "reading settles the outcome once the disk works again")
	after := open(t, crashed(t, path), Options{})
	m, err := versions(after, "a")
	require.NoError(t, err)
	require.Equal(t, n, m)
	_, err = s.Append(testContext, "a", 0, event("x"))
	require.NoError(t, err)
	require.Equal(t, uint64(2), sound(t, s).Size())
}

// This is what settling is for: without it, events that were invisible come back.
func TestFailedCommitMayComeBack(t *testing.T) {
	shim, name := newShim(t)
	path := filepath.Join(t.TempDir(), "l.db")
	s := open(t, path, Options{vfs: name})
	_, err := s.Append(testContext, "a", ledger.NoStream, event("before"))
	require.NoError(t, err)
	var atFailure string
	shim.on(onLogSync(func() error {
		if atFailure == "" {
			atFailure = crashed(t, path)
		}
		return syscall.EIO
	}))
	_, err = s.Append(testContext, "a", 0, event("ghost"))
	require.ErrorIs(t, err, ledger.ErrUnknownOutcome)
	shim.on(nil)
	n, err := versions(open(t, atFailure, Options{}), "a")
	require.NoError(t, err)
	require.Equal(t, 2, n, "the failed commit was whole on the disk")
}

func ioError(operation) error { return syscall.EIO }

// diskFull is how the engine's own file layer reports ENOSPC.
func diskFull(op operation) error {
	if op.kind == "write" {
		return sqlite3.FULL
	}
	return syscall.ENOSPC
}

func TestDiskFull(t *testing.T) {
	shim, name := newShim(t)
	path := filepath.Join(t.TempDir(), "l.db")
	s := open(t, path, Options{vfs: name})
	_, err := s.Append(testContext, "a", ledger.NoStream, event("before"))
	require.NoError(t, err)
	shim.on(func(op operation) (error, bool) {
		if op.kind == "write" {
			return diskFull(op), false
		}
		return nil, false
	})
	_, err = s.Append(testContext, "a", 0, event("x"))
	require.ErrorContains(t, err, "disk is full")
	// Reading must go on: it is how one gets out of this.
	n, err := versions(s, "a")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	m, err := versions(open(t, crashed(t, path), Options{}), "a")
	require.NoError(t, err)
	require.Equal(t, 1, m)
	shim.on(nil)
	_, err = s.Append(testContext, "a", 0, event("x"))
	require.NoError(t, err)
	sound(t, s)
}

// workStreams is how many streams the workload appends to.
const workStreams = 5

// history is what one run of the workload was told.
type history struct {
	acknowledged map[ledger.StreamID]bool
	refused      map[ledger.StreamID]bool
	read         map[ledger.StreamID]int // what was read again after an unknown outcome
	blobs        []ledger.Blob
}

// workload appends to its streams, keeps a blob, forgets another, and closes. Every step may fail.
func workload(path string, opts Options) (h history) {
	h = history{map[ledger.StreamID]bool{}, map[ledger.StreamID]bool{}, map[ledger.StreamID]int{}, nil}
	s, err := Open(testContext, path, opts)
	if err != nil {
		return h
	}
	defer s.Close() // its error says only that the log wasn't folded back
	for i := range workStreams {
		stream := ledger.StreamID(fmt.Sprintf("s%d", i))
		_, err := s.Append(testContext, stream, ledger.NoStream, event("one"), event(fmt.Sprintf("%0*d", i*900, i)))
		switch {
		case err == nil:
			h.acknowledged[stream] = true
		case errors.Is(err, ledger.ErrUnknownOutcome):
			if n, err := versions(s, stream); err == nil {
				h.read[stream] = n
			}
		default:
			h.refused[stream] = true
		}
		switch i {
		case 1:
			b := ledger.Blob{Data: make([]byte, 9_000)}
			if s.Put(testContext, b) == nil {
				h.blobs = append(h.blobs, b)
			}
		case 2:
			b := ledger.Blob{Data: []byte("to be forgotten")}
			if s.Put(testContext, b) == nil {
				_ = s.Forget(testContext, b.Key()) // empties the log in the middle of it all
			}
		}
	}
	return h
}

func (h history) check(t *testing.T, path, when string) {
	t.Helper()
	s, err := Open(testContext, path, Options{})
	require.NoError(t, err, when)
	defer func() { require.NoError(t, s.Close(), when) }()
	sound(t, s)
	for i := range workStreams {
		stream := ledger.StreamID(fmt.Sprintf("s%d", i))
		n, err := versions(s, stream)
		require.NoError(t, err, when)
		require.True(t, n == 0 || n == 2, "%s: half a batch", when)
		if h.acknowledged[stream] {
			require.Equal(t, 2, n, "%s: %s was acknowledged", when, stream)
		}
		if h.refused[stream] {
			require.Equal(t, 0, n, "%s: %s was refused", when, stream)
		}
		if read, ok := h.read[stream]; ok {
			require.Equal(t, read, n, "%s: %s was read differently before", when, stream)
		}
	}
	for _, b := range h.blobs {
		_, err := s.Get(testContext, b.Key())
		require.NoError(t, err, when)
	}
}

// Each operation on each file fails in turn, before or after it is done, once or for good. Then
// the machine stops, or the process just ends. Nothing acknowledged may be lost, nothing refused
// may be there, and what was read must stay. req R2
func TestEveryFault(t *testing.T) {
	var total atomic.Int64
	t.Cleanup(func() { require.Greater(t, int(total.Load()), 300) })
	for _, mode := range []struct {
		name          string
		sticks, after bool
		err           func(operation) error
	}{
		{"fails once", false, false, ioError},
		{"done but fails once", false, true, ioError},
		{"fails for good", true, false, ioError},
		{"done but fails for good", true, true, ioError},
		{"disk full for good", true, false, diskFull},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			shim, name := newShim(t)
			for n := 1; ; n++ {
				dir := t.TempDir()
				path := filepath.Join(dir, "l.db")
				f := &fault{n: n, sticks: mode.sticks, after: mode.after, err: mode.err}
				shim.on(f.hook)
				h := workload(path, Options{vfs: name})
				shim.on(nil)
				if f.seen < n { // the workload has fewer operations
					require.Len(t, h.acknowledged, workStreams)
					require.Greater(t, n, 60)
					return
				}
				when := fmt.Sprintf("operation %d: %s of the %s", n, f.hit.kind, f.hit.file)
				h.check(t, crashed(t, path), when+", then a crash")
				h.check(t, path, when)
				total.Add(1)
			}
		})
	}
}
