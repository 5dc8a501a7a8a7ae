package journal_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

func fileLedger(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// many appends n users' events in batches.
func many(t testing.TB, s *sqlite.Store, stream ledger.StreamID, n int) {
	t.Helper()
	for v := ledger.NoStream; n > 0; {
		batch := make([]ledger.Prepared, min(n, ledger.MaxBatch))
		for i := range batch {
			batch[i] = ledger.Prepared{Type: "Note", Media: "text/plain", Data: fmt.Appendf(nil, "%s %d", stream, n-i)}
		}
		_, err := s.Append(context.Background(), stream, v, batch...)
		require.NoError(t, err)
		v, n = v+ledger.Version(len(batch)), n-len(batch)
	}
}

func noBlobs(evidence.Payload) []journal.Mention { return nil }

// An audit reads, prepares and visits at the same time, while others append; it judges what was
// there when it began.
//
// req R5
func TestAuditWhileOthersAppend(t *testing.T) {
	s := fileLedger(t)
	j := journal.New(journal.Config{Ledger: s, Actor: "test"})
	require.NoError(t, j.Init(t.Context(), genesis()))
	many(t, s, "before", 3000)
	size, err := s.Size(t.Context())
	require.NoError(t, err)
	root, err := s.Root(t.Context(), size)
	require.NoError(t, err)

	told := uint64(0)
	appended := false
	r, err := journal.Audit{Exhibit: s, Mentions: noBlobs, Progress: func(done, total uint64) {
		require.Equal(t, size, total)
		require.Greater(t, done, told)
		told = done
		if !appended {
			appended = true
			many(t, s, "meanwhile", 500)
		}
	}}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, journal.AuditValid, r.Verdict, "%v", r.FirstBad)
	require.Equal(t, size, r.Events)
	require.Equal(t, size, told)
	require.Equal(t, root, r.Root)
	require.Equal(t, 3, r.Streams)
	require.True(t, appended)
}

// What this version can't read is not checked, which is never "valid" (req R7).
func TestAuditOfANewerLedgerIsNotChecked(t *testing.T) {
	s := fileLedger(t)
	j := journal.New(journal.Config{Ledger: s, Actor: "test"})
	require.NoError(t, j.Init(t.Context(), genesis()))
	newer := evidence.Marshal(evidence.Meta{Schema: evidence.SchemaVersion + 1, Actor: "tomorrow"})
	_, err := s.Append(t.Context(), "policy-main", 0, ledger.Prepared{Type: "EpochAdvanced", Media: evidence.Media, Meta: newer, Data: []byte{0xa0}})
	require.NoError(t, err)
	r, err := journal.Audit{Exhibit: s, Mentions: noBlobs}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, journal.AuditNotChecked, r.Verdict)
	require.Nil(t, r.FirstBad)
	require.Len(t, r.Unread, 1)
	require.Equal(t, ledger.Index(2), r.Unread[0].Index)
}

// An audit that can't be done is an error, never a verdict.
func TestAuditThatIsCancelled(t *testing.T) {
	s := fileLedger(t)
	j := journal.New(journal.Config{Ledger: s, Actor: "test"})
	require.NoError(t, j.Init(t.Context(), genesis()))
	many(t, s, "before", 3000)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := journal.Audit{Exhibit: s, Mentions: noBlobs, Progress: func(uint64, uint64) { cancel() }}.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.Verdict)

	_, err = journal.Audit{Exhibit: s, Mentions: noBlobs, Kept: []journal.KeptCheckpoint{{Name: "kept", Note: []byte("nonsense")}}}.Run(t.Context())
	require.ErrorContains(t, err, "kept: not a signed note")
}

// An empty ledger is no good ledger, and another one than expected isn't either.
func TestAuditOfAnotherLedger(t *testing.T) {
	s := fileLedger(t)
	r, err := journal.Audit{Exhibit: s, Mentions: noBlobs}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, journal.AuditInvalid, r.Verdict)
	require.Equal(t, "genesis", r.FirstBad.Field)

	g := genesis()
	require.NoError(t, journal.New(journal.Config{Ledger: s, Actor: "test"}).Init(t.Context(), g))
	other := g.Ledger
	other[len(other)-1] ^= 0x80
	r, err = journal.Audit{Exhibit: s, Mentions: noBlobs, Ledger: other}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, journal.AuditInvalid, r.Verdict)
	require.Equal(t, "ledger", r.FirstBad.Field)
	require.Equal(t, g.Ledger.String(), r.FirstBad.Found)
}

// shorter is a store that says first how many events it held before somebody appended the rest.
type shorter struct {
	*sqlite.Store
	first *uint64
}

func (s shorter) Size(ctx context.Context) (uint64, error) {
	if n := *s.first; n != 0 {
		*s.first = 0
		return n, nil
	}
	return s.Store.Size(ctx)
}

// A ledger cut below a kept checkpoint, rewritten, and grown past it while the audit runs: the kept
// checkpoint was compared with nothing, so the ledger isn't called valid.
//
// req R5
func TestAuditComparesEveryKeptCheckpointOrSaysSo(t *testing.T) {
	s := fileLedger(t)
	j := journal.New(journal.Config{Ledger: s, Actor: "test"})
	require.NoError(t, j.Init(t.Context(), genesis()))
	many(t, s, "notes", 3)
	size, err := s.Size(t.Context())
	require.NoError(t, err)
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	signer, err := ledger.NewEd25519Signer(genesis().Origin, key)
	require.NoError(t, err)
	another, err := ledger.CheckpointSigner{Origin: genesis().Origin, Signer: signer}.Sign(size, ledger.Hash{1})
	require.NoError(t, err)
	cut := size - 1
	r, err := journal.Audit{
		Exhibit: shorter{s, &cut}, Mentions: noBlobs,
		Kept: []journal.KeptCheckpoint{{Name: "kept", Note: another.Note}},
	}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, journal.AuditNotChecked, r.Verdict)
	require.Equal(t, uint64(1), r.Uncompared)
	require.Zero(t, r.Kept)
	require.Nil(t, r.FirstBad)
}
