package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// req R4
func TestInitOpensTheLedgerOnce(t *testing.T) {
	led := ledgertest.NewMem()
	j := open(led, "init")
	_, err := j.Genesis(t.Context())
	require.ErrorIs(t, err, journal.ErrNoLedger)

	require.NoError(t, j.Init(t.Context(), genesis()))
	require.EqualValues(t, 2, size(t, led))
	got, err := j.Genesis(t.Context())
	require.NoError(t, err)
	require.Equal(t, genesis(), got)
	p, err := j.Policy(t.Context(), evidence.DefaultPolicy)
	require.NoError(t, err)
	require.EqualValues(t, 1, p.Fold.Epoch)

	require.NoError(t, j.Init(t.Context(), genesis()), "the same genesis again")
	other := genesis()
	other.Ledger[0]++
	var taken *journal.OtherLedgerError
	require.ErrorAs(t, j.Init(t.Context(), other), &taken)
	require.Equal(t, genesis().Ledger, taken.Ledger)
	require.EqualValues(t, 2, size(t, led))
	requireSound(t, led)
}

// A crash between the two appends of init is mended by doing it again.
func TestInitCompletesWhatACrashLeft(t *testing.T) {
	led := ledgertest.NewFaulty(ledgertest.NewMem(), ledgertest.FaultAt(1, ledgertest.NotStored))
	j := open(led, "init")
	require.ErrorIs(t, j.Init(t.Context(), genesis()), ledgertest.ErrInjected)
	require.EqualValues(t, 1, size(t, led))
	require.NoError(t, j.Init(t.Context(), genesis()))
	requireSound(t, led)
}

func TestInitRefusesALedgerSomebodyUses(t *testing.T) {
	led := ledgertest.NewMem()
	_, err := led.Append(t.Context(), "notes", ledger.NoStream, ledger.Prepared{Type: "Note", Media: "text/plain"})
	require.NoError(t, err)
	require.ErrorContains(t, open(led, "init").Init(t.Context(), genesis()), "none of them opens it")
	require.EqualValues(t, 1, size(t, led))
}

func TestNothingIsWrittenWithoutGenesis(t *testing.T) {
	led := ledgertest.NewMem()
	j := open(led, "test")
	_, err := j.Register(t.Context(), registration("one"))
	require.ErrorIs(t, err, journal.ErrNoLedger)
	require.ErrorIs(t, j.OpenChange(t.Context(), "c", evidence.RepositoryID{1}), journal.ErrNoLedger)
	_, err = j.AdvanceEpoch(t.Context(), "p")
	require.ErrorIs(t, err, journal.ErrNoLedger)
	require.ErrorIs(t, j.Seal(t.Context(), 0, journal.GenesisStream), journal.ErrNoLedger)
	require.Zero(t, size(t, led))
}

// req J2 req H6
func TestProductNamesAreTheProducts(t *testing.T) {
	for _, s := range []ledger.StreamID{"ledger", "attempt-x", "change-x", "policy-main", "runtime-00", "trial-x", "attempt-"} {
		require.True(t, journal.IsProductStream(s), s)
	}
	for _, s := range []ledger.StreamID{"notes", "ledgers", "attempts", "my-attempt-x", "attempt"} {
		require.False(t, journal.IsProductStream(s), s)
	}
	require.NotEmpty(t, evidence.EventTypes())
	for _, typ := range append(evidence.EventTypes(), "ContextApproved", "ChangeIntegrated", "CanaryObserved") {
		require.True(t, journal.IsProductType(typ), typ)
	}
	require.False(t, journal.IsProductType("Note"))
}
