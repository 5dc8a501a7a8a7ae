package sqlite

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// rawExec changes a file behind the store's back.
func rawExec(t *testing.T, path, sql string) {
	t.Helper()
	db, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, db.Exec(sql))
	require.NoError(t, db.Close())
}

// made makes a closed ledger of a few events.
func made(t *testing.T, events int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "l.db")
	s, err := Open(testContext, path, Options{})
	require.NoError(t, err)
	for i := range events {
		_, err := s.Append(testContext, ledger.StreamID(fmt.Sprintf("s%d", i%5)), ledger.Version(i/5)-1, event(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	return path
}

func TestFilesArePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "l.db")
	for range 2 { // made, and opened again
		s, err := Open(testContext, path, Options{})
		require.NoError(t, err)
		_, err = s.Size(testContext)
		require.NoError(t, err)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(path + suffix)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode(), suffix)
		}
		require.NoError(t, s.Close())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "a closed ledger is one file")
}

func TestDurability(t *testing.T) {
	s := open(t, made(t, 1), Options{})
	require.NoError(t, s.submit(testContext, &job{do: func(w *writer) (error, error) {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "secure_delete": "1"} {
			_, err := w.conn.one(func(s *sqlite3.Stmt) error {
				require.Equal(t, want, s.ColumnText(0), pragma)
				return nil
			}, "PRAGMA "+pragma)
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}))
}

// What isn't a ledger is refused in one clear line, and left as it was.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		opts    Options
		want    string
	}{
		{"absent", func(*testing.T, string) {}, Options{MustExist: true}, "there is no ledger at"},
		{"a directory", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, Options{}, "is a directory"},
		{"a text", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("text "), 1000), 0o600))
		}, Options{}, "isn't a SQLite file"},
		{"a short text", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		}, Options{}, "isn't a SQLite file"},
		{"zeros", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, make([]byte, 8192), 0o600))
		}, Options{}, "isn't a ledger at all"},
		{"somebody's database", func(t *testing.T, path string) { rawExec(t, path, "CREATE TABLE t (x)") }, Options{}, "not a Baildock ledger"},
		{"another application's", func(t *testing.T, path string) {
			rawExec(t, path, "PRAGMA application_id=1; CREATE TABLE t (x)")
		}, Options{}, "not a Baildock ledger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "l.db")
			c.prepare(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(testContext, path, c.opts)
			require.ErrorContains(t, err, c.want)
			after, _ := os.ReadFile(path)
			require.Equal(t, before, after)
			entries, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.LessOrEqual(t, len(entries), 1, "something was left behind")
		})
	}
	_, err := Open(testContext, filepath.Join(t.TempDir(), "no", "such", "l.db"), Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// req R7
func TestNewerFormIsRefused(t *testing.T) {
	path := made(t, 3)
	rawExec(t, path, "PRAGMA user_version=2")
	_, err := Open(testContext, path, Options{})
	var newer *FormError
	require.ErrorAs(t, err, &newer)
	require.Equal(t, FormError{Path: path, Found: 2, Known: 1}, *newer)
}

func TestOpenThroughLink(t *testing.T) {
	path := made(t, 3)
	link := filepath.Join(t.TempDir(), "link.db")
	require.NoError(t, os.Symlink(path, link))
	s := open(t, link, Options{MustExist: true})
	require.Equal(t, uint64(3), sound(t, s).Size())
	direct := open(t, path, Options{}) // both share one log and one lock
	_, err := direct.Append(testContext, "a", ledger.NoStream, event("x"))
	require.NoError(t, err)
	require.Equal(t, uint64(4), sound(t, s).Size())
}

// Damage is an error of reading, or shows in the hashes. It is never silent.
func TestDamage(t *testing.T) {
	path := made(t, 400)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	root := sound(t, open(t, path, Options{})).Root()
	// found tells whether reading everything shows the damage. If it doesn't, all that was read must
	// be right.
	found := func(damaged []byte) bool {
		to := filepath.Join(t.TempDir(), "l.db")
		require.NoError(t, os.WriteFile(to, damaged, 0o600))
		s, err := Open(testContext, to, Options{})
		if err != nil {
			return true
		}
		defer s.Close()
		checker := ledger.NewChecker()
		for e, err := range s.ReadAll(testContext, 0) {
			if err == nil {
				_, err = checker.Check(e)
			}
			if err != nil {
				return true
			}
		}
		stored, err := s.Root(testContext, 400)
		if err != nil || stored != checker.Root() {
			return true
		}
		require.Equal(t, root, checker.Root(), "damage was read as if it were right")
		return false
	}
	require.False(t, found(whole))
	require.True(t, found(whole[:len(whole)/2]), "half a file")

	const page = 4096
	noticed := 0
	for at := 0; at < len(whole); at += page {
		damaged := bytes.Clone(whole)
		clear(damaged[at : at+page])
		if found(damaged) {
			noticed++
		}
	}
	// The index of places and the empty tables aren't needed to read everything.
	require.Greater(t, noticed, len(whole)/page/2)

	// Any change of an event's own bytes is found.
	tried := 0
	for _, needle := range []string{"Tested", "text/plain", "meta"} {
		seen := 0
		for at := range whole {
			if !bytes.HasPrefix(whole[at:], []byte(needle)) {
				continue
			}
			if seen++; seen%11 == 5 { // not every one, which would take long
				damaged := bytes.Clone(whole)
				damaged[at] ^= 1
				require.True(t, found(damaged), "%s at byte %d", needle, at)
				tried++
			}
		}
	}
	require.Greater(t, tried, 90)
}

func TestEventsNeverChange(t *testing.T) {
	path := made(t, 3)
	db, err := sqlite3.Open(path)
	require.NoError(t, err)
	defer db.Close()
	require.ErrorContains(t, db.Exec("UPDATE events SET data = x'00'"), "events never change")
	require.ErrorContains(t, db.Exec("DELETE FROM events"), "events are never removed")
}

// A ledger that was shortened or changed behind a checkpoint gets no other one.
func TestSignRefusesAnotherPast(t *testing.T) {
	for name, sql := range map[string]string{
		"shortened": "DROP TRIGGER events_last; DELETE FROM events WHERE idx > 5",
		"changed":   "DROP TRIGGER events_stay; UPDATE events SET nodes = zeroblob(length(nodes)) WHERE idx = 7",
	} {
		t.Run(name, func(t *testing.T) {
			path := made(t, 8)
			signer := testSigner(t)
			s, err := Open(testContext, path, Options{})
			require.NoError(t, err)
			_, err = s.SignCheckpoint(testContext, signer)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			rawExec(t, path, sql)
			s = open(t, path, Options{})
			_, err = s.SignCheckpoint(testContext, signer)
			require.Error(t, err)
			require.ErrorContains(t, err, "ledger")
		})
	}
}

// Forgotten bytes are in none of the files any more. req R6
func TestForgetLeavesNoBytes(t *testing.T) {
	path := made(t, 20)
	s := open(t, path, Options{})
	secret, salt := []byte("correct horse battery staple"), bytes.Repeat([]byte{0xa5}, ledger.SaltSize)
	blob := ledger.Blob{Salt: salt, Data: bytes.Repeat(secret, 100_000)}
	require.NoError(t, s.Put(testContext, blob))
	anywhere := func(what []byte) bool {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(path + suffix)
			require.NoError(t, err)
			if bytes.Contains(b, what) {
				return true
			}
		}
		return false
	}
	require.True(t, anywhere(secret))
	require.True(t, anywhere(salt))
	require.NoError(t, s.Forget(testContext, blob.Key()))
	require.False(t, anywhere(secret))
	require.False(t, anywhere(salt))
	key := blob.Key()
	require.True(t, anywhere(key[:]), "that it was here is remembered")
}

func TestDamagedBlob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.db")
	s, err := Open(testContext, path, Options{})
	require.NoError(t, err)
	b := ledger.Blob{Data: []byte("the bytes")}
	require.NoError(t, s.Put(testContext, b))
	require.NoError(t, s.Close())
	for _, sql := range []string{
		"UPDATE blob_chunks SET data = x'00'",
		"UPDATE blob_chunks SET data = zeroblob(100)",
		"UPDATE blobs SET size = -1",
		"UPDATE blobs SET size = 1 << 40",
		"UPDATE blobs SET size = 9; DELETE FROM blob_chunks",
	} {
		rawExec(t, path, sql)
		s, err := Open(testContext, path, Options{})
		require.NoError(t, err)
		_, err = s.Get(testContext, b.Key())
		require.ErrorContains(t, err, "damaged", sql)
		require.NoError(t, s.Close())
	}
}
