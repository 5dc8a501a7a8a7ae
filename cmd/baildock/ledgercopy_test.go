package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/ledger/sqlite"
)

// toCopy is a ledger with a genesis, users' streams that alternate, batches, and a large event.
func toCopy(t *testing.T) ledger.Ledger {
	t.Helper()
	l := ledgertest.NewMem()
	require.NoError(t, journal.New(journal.Config{Ledger: l, Actor: "test"}).Init(t.Context(), journaltest.Genesis()))
	next := map[ledger.StreamID]ledger.Version{}
	for i := range 40 {
		stream := ledger.StreamID(fmt.Sprintf("s%d", i%3))
		batch := make([]ledger.Prepared, 1+i%4)
		for k := range batch {
			batch[k] = ledger.Prepared{Type: "T", Time: int64(i), Media: "a/b", Meta: fmt.Append(nil, i, k), Data: make([]byte, 100)}
		}
		if i == 20 {
			batch[0].Data = make([]byte, ledger.MaxData)
		}
		_, err := l.Append(t.Context(), stream, next[stream]-1, batch...)
		require.NoError(t, err)
		next[stream] += ledger.Version(len(batch))
	}
	return l
}

// req H6, req R3: a copy that fails at any append, in any way, goes on when it is run again, and both
// ledgers then have the same root.
func TestLedgerCopyResumes(t *testing.T) {
	from := toCopy(t)
	size, err := from.Size(t.Context())
	require.NoError(t, err)
	want, err := from.Root(t.Context(), size)
	require.NoError(t, err)
	quiet := func(uint64, uint64) {}
	c, err := peer.Start(peer.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for name, open := range map[string]func(n int) (ledger.Ledger, error){
		"file": func(n int) (ledger.Ledger, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", n)), sqlite.Options{})
		},
		"cluster": func(n int) (ledger.Ledger, error) {
			return kurrentdb.Open(t.Context(), c.URL(fmt.Sprintf("ledger=copy-%d", n)), kurrentdb.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, fault := range []ledgertest.Fault{ledgertest.NotStored, ledgertest.ReplyLost, ledgertest.CommitLost} {
				for _, at := range []int{0, 1, 2, 17, 30} {
					to, err := open(n)
					require.NoError(t, err)
					n++
					broken := ledgertest.NewFaulty(to, ledgertest.FaultAt(at, fault))
					_, err = copyLedger(t.Context(), from, broken, quiet)
					require.ErrorIs(t, err, ledgertest.ErrInjected, "append %d", at)
					v, err := copyLedger(t.Context(), from, to, quiet)
					require.NoError(t, err)
					require.Equal(t, size, v.Events)
					require.Equal(t, want.String(), v.Root)
					again, err := copyLedger(t.Context(), from, to, quiet)
					require.NoError(t, err)
					require.Equal(t, size, again.Before)
					require.NoError(t, to.Close())
				}
			}
		})
	}
}

// Somebody who writes to the target while it is copied to is noticed.
func TestLedgerCopyAlone(t *testing.T) {
	from, to := toCopy(t), ledgertest.NewMem()
	n := 0
	racing := &journaltest.Hooked{Ledger: to, Before: func(ledger.StreamID) {
		if n++; n == 5 {
			_, err := to.Append(context.Background(), "other", ledger.NoStream, ledger.Prepared{Type: "T", Media: "a/b"})
			require.NoError(t, err)
		}
	}}
	_, err := copyLedger(t.Context(), from, racing, func(uint64, uint64) {})
	var f *failure
	require.True(t, errors.As(err, &f))
	require.Equal(t, "not_a_prefix", f.Code)
	require.Equal(t, exitBadEvidence, f.Exit)
}
