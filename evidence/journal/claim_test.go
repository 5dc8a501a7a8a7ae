package journal_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// Every racer says exactly the same under the same frozen clock.
//
// req G2
func TestExactlyOneClaimWins(t *testing.T) { everywhere(t, oneClaimWins) }

func oneClaimWins(t *testing.T, led ledger.Ledger, j *journal.Journal) {
	for round := range 20 {
		id := evidence.AttemptID(fmt.Sprint("a", round))
		_, err := j.Register(t.Context(), registration(id))
		require.NoError(t, err)
		before := size(t, led)

		const racers = 16
		won := make([]*journal.Appender, racers)
		errs := make([]error, racers)
		start := make(chan struct{})
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() {
				<-start
				won[i], errs[i] = open(led, "racer").Claim(t.Context(), id, 0, runner)
			})
		}
		close(start)
		all.Wait()

		winners := 0
		for i := range racers {
			if errs[i] == nil {
				winners++
				require.EqualValues(t, 1, won[i].Attempt().Generation)
				continue
			}
			require.Nil(t, won[i])
			var lost *journal.NotPendingError
			require.ErrorAs(t, errs[i], &lost)
			require.Equal(t, "racer", lost.Actor)
			require.Equal(t, runner.Home, lost.Claimed.Home)
			require.EqualValues(t, 1, lost.Generation)
			require.EqualValues(t, before, lost.Index)
		}
		require.Equal(t, 1, winners)
		require.Equal(t, before+1, size(t, led))
	}
	requireSound(t, led)
}

// req G2
func TestClaimOnlyAtTheGenerationNamed(t *testing.T) {
	led, j := begin(t)
	var none *journal.NotFoundError
	_, err := j.Claim(t.Context(), "one", 0, runner)
	require.ErrorAs(t, err, &none)

	_, err = j.Register(t.Context(), registration("one"))
	require.NoError(t, err)
	before := size(t, led)
	var lost *journal.NotPendingError
	_, err = j.Claim(t.Context(), "one", 1, runner)
	require.ErrorAs(t, err, &lost)
	require.Nil(t, lost.Claimed)
	c := runner
	c.Accepted = []evidence.Reduction{"anything"}
	_, err = j.Claim(t.Context(), "one", 0, c)
	require.ErrorContains(t, err, "none of")
	require.Equal(t, before, size(t, led))

	c.Accepted = []evidence.Reduction{evidence.ReducedUserns, evidence.ReducedCgroupV1, evidence.ReducedUserns}
	p, err := j.Claim(t.Context(), "one", 0, c)
	require.NoError(t, err)
	require.Equal(t, []evidence.Reduction{evidence.ReducedCgroupV1, evidence.ReducedUserns}, p.Attempt().Claimed.Accepted)
	require.Empty(t, p.Attempt().Claimed.Basis, "an ad hoc claim reads its own stream alone")
	requireSound(t, led)
}

// req G2 req H5
func TestClaimCarriesWhatItRead(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	_, err := j.Register(t.Context(), forChange("one", "c"))
	require.NoError(t, err)
	want, err := j.Basis(t.Context(), journal.PolicyStream("main"), journal.ChangeStream("c"))
	require.NoError(t, err)
	require.Equal(t, []string{"change-c", "policy-main"}, []string{want[0].Stream, want[1].Stream})
	p, err := j.Claim(t.Context(), "one", 0, runner)
	require.NoError(t, err)
	require.Equal(t, want, p.Attempt().Claimed.Basis)
	requireSound(t, led)
}

// req G2
func TestClaimOnlyWhileContextAndEpochAreCurrent(t *testing.T) {
	require.NotEmpty(t, moves)
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			led, j := begin(t)
			change(t, j, "c")
			_, err := j.Register(t.Context(), forChange("one", "c"))
			require.NoError(t, err)
			move(t, j)
			before := size(t, led)
			var stale *journal.NotCurrentError
			_, err = j.Claim(t.Context(), "one", 0, runner)
			require.ErrorAs(t, err, &stale)
			require.Contains(t, stale.What, name)
			require.Equal(t, before, size(t, led))
		})
	}
}
