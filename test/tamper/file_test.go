package tamper_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// contents is all that a ledger's readers can get out of a store.
type contents struct {
	events      []ledger.StoredEvent
	checkpoints []ledger.StoredCheckpoint
	streams     map[ledger.StreamID][]ledger.Event
	blobs       map[ledger.BlobKey]ledger.BlobFacts
}

func read(t *testing.T, a *audited, path string) (contents, error) {
	t.Helper()
	c := contents{streams: map[ledger.StreamID][]ledger.Event{}, blobs: map[ledger.BlobKey]ledger.BlobFacts{}}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{MustExist: true})
	if err != nil {
		return c, err
	}
	defer s.Close()
	for e, err := range s.Stored(t.Context(), ledger.Index(a.size()+10)) {
		if err != nil {
			return c, err
		}
		c.events = append(c.events, e)
	}
	for k, err := range s.StoredCheckpoints(t.Context()) {
		if err != nil {
			return c, err
		}
		c.checkpoints = append(c.checkpoints, k)
	}
	for _, e := range a.events {
		if e.Version > 0 {
			continue
		}
		for e, err := range s.ReadStream(t.Context(), e.Stream, 0) {
			if err != nil {
				return c, err
			}
			c.streams[e.Stream] = append(c.streams[e.Stream], e)
		}
	}
	for key := range a.namedAt {
		facts, err := s.BlobFacts(t.Context(), key)
		var absent *ledger.BlobAbsentError
		if errors.As(err, &absent) {
			continue
		}
		if err != nil {
			return c, err
		}
		c.blobs[key] = facts
	}
	return c, nil
}

// fileFlips is how many bits of the file are flipped, one at a time.
const fileFlips = 200

// A flipped bit anywhere in the file is found, unless nobody who reads the ledger can tell the
// difference: a bit of unused space, or of a blob that is then said to be absent.
//
// req R5
func TestAuditOfADamagedFile(t *testing.T) {
	a := newAudited(t)
	good, err := os.ReadFile(a.path)
	require.NoError(t, err)
	want, err := read(t, a, a.path)
	require.NoError(t, err)
	require.Len(t, want.events, int(a.size()))
	before := audit(t, a.path)

	r := rand.New(rand.NewPCG(4, 2))
	found, unseen, absent := 0, 0, 0
	dir := t.TempDir()
	for range fileFlips {
		bit := r.IntN(8 * len(good))
		path := filepath.Join(dir, "flipped.db")
		bad := append([]byte(nil), good...)
		bad[bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		report, err := tryAudit(t, path)
		switch {
		case err != nil || report.Verdict == journal.AuditInvalid:
			found++
		case report.Blobs != before.Blobs:
			require.Less(t, report.Blobs.Checked, before.Blobs.Checked, "byte %d", bit/8)
			absent++
		default:
			got, err := read(t, a, path)
			require.NoError(t, err, "byte %d: audited as valid, and can't be read", bit/8)
			require.Equal(t, want, got, "byte %d: audited as valid, and reads otherwise", bit/8)
			unseen++
		}
		for _, beside := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + beside); err != nil {
				require.ErrorIs(t, err, os.ErrNotExist)
			}
		}
	}
	require.Equal(t, fileFlips, found+unseen+absent)
	require.Greater(t, found, fileFlips/2)
	t.Logf("count: %d flipped bits of a file of %d bytes: %d found, %d in blobs said to be absent, %d without any effect", fileFlips, len(good), found, absent, unseen)
}

// tryAudit is audit of a file that may not even open.
func tryAudit(t *testing.T, path string) (journal.AuditReport, error) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{MustExist: true})
	if err != nil {
		return journal.AuditReport{}, err
	}
	r, err := journal.Audit{Exhibit: store, Mentions: mentions}.Run(t.Context())
	return r, errors.Join(err, store.Close())
}
