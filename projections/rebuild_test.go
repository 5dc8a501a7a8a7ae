package projections_test

import (
	"bytes"
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/projections"
)

// edit changes the closed file behind the program's back.
func edit(t *testing.T, path, sql string) {
	t.Helper()
	db, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, db.Exec(sql))
	require.NoError(t, db.Close())
}

// req S3
func TestABadFileRebuildsByItself(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, w *world)
	}{
		{"missing", func(t *testing.T, w *world) { require.NoError(t, os.Remove(w.path)) }},
		{"empty", func(t *testing.T, w *world) { require.NoError(t, os.Truncate(w.path, 0)) }},
		{"no database", func(t *testing.T, w *world) {
			require.NoError(t, os.WriteFile(w.path, bytes.Repeat([]byte("junk"), 4096), 0o600))
		}},
		{"cut short", func(t *testing.T, w *world) { require.NoError(t, os.Truncate(w.path, 8192)) }},
		{"other form", func(t *testing.T, w *world) { edit(t, w.path, "UPDATE position SET form = 'older'") }},
		{"no position", func(t *testing.T, w *world) { edit(t, w.path, "DELETE FROM position") }},
		{"no tables", func(t *testing.T, w *world) { edit(t, w.path, "DROP TABLE position") }},
		{"other program's", func(t *testing.T, w *world) { edit(t, w.path, "PRAGMA application_id=7") }},
		{"ahead of the ledger", func(t *testing.T, w *world) { edit(t, w.path, "UPDATE position SET next = next + 5") }},
		{"of another ledger", func(t *testing.T, w *world) { edit(t, w.path, "UPDATE position SET leaf = zeroblob(32)") }},
		{"leftovers of a crash", func(t *testing.T, w *world) {
			require.NoError(t, os.Remove(w.path))
			for _, s := range []string{".rebuild", ".rebuild-journal", "-journal", "-wal"} {
				require.NoError(t, os.WriteFile(w.path+s, bytes.Repeat([]byte("old"), 1000), 0o600))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, ledgertest.NewMem())
			for i := range 5 {
				end(t, w.begin(t, evidence.AttemptID(fmt.Sprint("a", i))), exits(int64(i%2)))
			}
			p, err := projections.Open(t.Context(), w.path, w.led, nil)
			require.NoError(t, err)
			want, err := p.Digests(t.Context())
			require.NoError(t, err)
			require.NoError(t, p.Close())
			held, err := os.Open(w.path) // as long as it is open, no other file gets its inode number
			require.NoError(t, err)
			defer func() { require.NoError(t, held.Close()) }()
			old, err := held.Stat()
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), old.Mode().Perm())

			c.spoil(t, w)
			got, err := w.open(t).Digests(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got)
			now, err := os.Stat(w.path)
			require.NoError(t, err)
			require.False(t, os.SameFile(old, now), "rebuilt beside and swapped")
			require.Equal(t, os.FileMode(0o600), now.Mode().Perm())
		})
	}
}

// Whatever byte changes, the answers stay right: the page's checksum tells, or nothing reads it.
//
// req S3
func TestAnyFlippedByteIsNoticedOrHarmless(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	for i := range 40 {
		end(t, w.begin(t, evidence.AttemptID(fmt.Sprint("a", i))), as)
	}
	p, err := projections.Open(t.Context(), w.path, w.led, nil)
	require.NoError(t, err)
	want, err := p.Digests(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Close())
	good, err := os.ReadFile(w.path)
	require.NoError(t, err)
	rng := mathrand.New(mathrand.NewPCG(1, 1))
	rebuilt := 0
	for range 40 {
		at := rng.IntN(len(good))
		bad := bytes.Clone(good)
		bad[at] ^= 1 << rng.IntN(8)
		require.NoError(t, os.WriteFile(w.path, bad, 0o600))
		p, err := projections.Open(t.Context(), w.path, w.led, nil)
		require.NoError(t, err, "byte %d", at)
		got, err := p.Digests(t.Context())
		require.NoError(t, err, "byte %d", at)
		require.Equal(t, want, got, "byte %d", at)
		require.NoError(t, p.Close())
		now, err := os.ReadFile(w.path)
		require.NoError(t, err)
		if !bytes.Equal(now, bad) {
			rebuilt++
		}
	}
	require.Greater(t, rebuilt, 10)
}

// Several processes share the file, one of them rebuilds it again and again.
//
// req S1 req S3
func TestManyHoldersAndARebuilder(t *testing.T) {
	for name, backend := range journaltest.Backends() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, backend(t))
			const holders, attempts = 4, 25
			var all sync.WaitGroup
			stop := make(chan struct{})
			for range holders {
				p := w.open(t)
				all.Go(func() {
					seen := 0
					for {
						rows, err := p.Attempts(context.Background(), projections.Query{})
						if err != nil || len(rows) < seen {
							t.Errorf("%d rows after %d: %v", len(rows), seen, err)
							return
						}
						seen = len(rows)
						select {
						case <-stop:
							return
						case <-time.After(time.Millisecond):
						}
					}
				})
			}
			rebuilder := w.open(t)
			for i := range attempts {
				end(t, w.begin(t, evidence.AttemptID(fmt.Sprint("a", i))), as)
				if i%5 == 0 {
					require.NoError(t, rebuilder.Rebuild(t.Context()))
				}
			}
			close(stop)
			all.Wait()
			shared, err := w.open(t).Digests(t.Context())
			require.NoError(t, err)
			require.NoError(t, rebuilder.Rebuild(t.Context()))
			alone, err := rebuilder.Digests(t.Context())
			require.NoError(t, err)
			require.Equal(t, alone, shared)
		})
	}
}

// req S3
func TestProgressAndCancel(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	for i := range 500 {
		events := make([]ledger.Prepared, 20)
		for k := range events {
			events[k] = ledger.Prepared{Type: "Note", Media: "text/plain"}
		}
		_, err := w.led.Append(t.Context(), ledger.StreamID(fmt.Sprint("notes", i)), ledger.NoStream, events...)
		require.NoError(t, err)
	}
	size, err := w.led.Size(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = projections.Open(ctx, w.path, w.led, func(done, total uint64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	_, err = os.Stat(w.path)
	require.ErrorIs(t, err, os.ErrNotExist, "a rebuild that was cut short leaves nothing in place")
	_, err = os.Stat(w.path + ".rebuild")
	require.ErrorIs(t, err, os.ErrNotExist)

	var told []uint64
	p, err := projections.Open(t.Context(), w.path, w.led, func(done, total uint64) {
		require.Equal(t, size, total)
		told = append(told, done)
	})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.Greater(t, len(told), 1)
	require.Equal(t, size, told[len(told)-1])
}
