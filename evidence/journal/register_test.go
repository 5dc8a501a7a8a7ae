package journal_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// req G1 req R6
func TestRegisterIsIdempotentForTheSameInput(t *testing.T) {
	led, j := begin(t)
	r := registration("one")
	a, err := j.Register(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, evidence.StatePending, a.Fold.State)
	require.Len(t, a.Events, 1)

	recipe, err := j.Recipe(t.Context(), a.Fold.Registered.Recipe)
	require.NoError(t, err)
	require.Equal(t, r.Recipe, recipe)
	env, err := j.Environment(t.Context(), a.Fold.Registered.Environment)
	require.NoError(t, err)
	require.Equal(t, r.Environment, env)
	table, err := led.Get(t.Context(), ledger.BlobKey(a.Fold.Registered.Table))
	require.NoError(t, err, "every blob that the registration names is durable")
	profile, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(t, err)
	require.Equal(t, evidence.Marshal(profile), table.Data)

	before := size(t, led)
	again, err := j.Register(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, a, again)
	require.Equal(t, before, size(t, led))
}

// req G1
func TestRegisterConflictsOnOtherInput(t *testing.T) {
	led, j := begin(t)
	_, err := j.Register(t.Context(), registration("one"))
	require.NoError(t, err)
	before := size(t, led)
	tool := evidence.ToolchainDigest{1}
	for _, c := range []struct {
		differs string
		bend    func(*journal.Registration)
	}{
		{"subject", func(r *journal.Registration) { r.Subject = evidence.Subject{Kind: evidence.SubjectDirectory} }},
		{"recipe", func(r *journal.Registration) { r.Recipe.Args = []string{"other"} }},
		{"toolchain", func(r *journal.Registration) { r.Recipe.Toolchain = &tool }},
		{"environment", func(r *journal.Registration) {
			r.Environment.Vars = nil
			r.Recipe.Environment = r.Environment.Digest()
		}},
	} {
		t.Run(c.differs, func(t *testing.T) {
			r := registration("one")
			c.bend(&r)
			_, err := j.Register(t.Context(), r)
			var taken *journal.TakenError
			require.ErrorAs(t, err, &taken)
			require.Contains(t, taken.Differs, c.differs)
		})
	}
	require.Equal(t, before, size(t, led))
}

// The nonce keeps a digest unguessable and is no input: the first one stays.
//
// req A1
func TestRegisterTakesTheRegisteredNonce(t *testing.T) {
	led, j := begin(t)
	first, err := j.Register(t.Context(), registration("one"))
	require.NoError(t, err)

	r := registration("one")
	fresh := evidence.Nonce{0xff}
	r.Recipe.Nonce, r.Environment.Nonce = &fresh, &fresh
	r.Recipe.Environment = r.Environment.Digest()
	require.NotEqual(t, first.Fold.Registered.Recipe, r.Recipe.Digest())
	again, err := j.Register(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, first, again)

	r.Recipe.Args = []string{"other"}
	var taken *journal.TakenError
	_, err = j.Register(t.Context(), r)
	require.ErrorAs(t, err, &taken)
	require.Equal(t, []string{"recipe"}, taken.Differs)

	// Once the recipe is forgotten its nonce can't be learnt any more: only equal bytes are the same.
	require.NoError(t, led.Forget(t.Context(), ledger.BlobKey(first.Fold.Registered.Recipe)))
	_, err = j.Register(t.Context(), registration("one"))
	require.NoError(t, err)
	r.Recipe.Args = registration("one").Recipe.Args
	_, err = j.Register(t.Context(), r)
	require.ErrorAs(t, err, &taken)
}

func TestRegisterRefusesWhatDoesNotFit(t *testing.T) {
	led, j := begin(t)
	before := size(t, led)
	for name, bend := range map[string]func(*journal.Registration){
		"attempt ID":    func(r *journal.Registration) { r.Attempt = "../x" },
		"subject":       func(r *journal.Registration) { r.Subject.Revision = "main" },
		"recipe":        func(r *journal.Registration) { r.Recipe.Limits.PIDs = 0 },
		"environment":   func(r *journal.Registration) { r.Environment.Vars[0].Name = "LD_PRELOAD" },
		"other digest":  func(r *journal.Registration) { r.Environment.Vars[0].Value = "other" },
		"other nonce":   func(r *journal.Registration) { r.Environment.Nonce = nil },
		"absent change": func(r *journal.Registration) { r.Change = "nowhere" },
		"change ID":     func(r *journal.Registration) { r.Change = "No" },
	} {
		t.Run(name, func(t *testing.T) {
			r := registration("one")
			bend(&r)
			_, err := j.Register(t.Context(), r)
			require.Error(t, err)
		})
	}
	require.Equal(t, before, size(t, led))
}

// The listing comes first and holds the exact bytes.
//
// req G1
func TestAttemptOfAChangeIsListedFirst(t *testing.T) {
	led, j := begin(t)
	c := change(t, j, "c")
	a, err := j.Register(t.Context(), forChange("one", "c"))
	require.NoError(t, err)
	require.Equal(t, &evidence.Binding{Repository: evidence.RepositoryID{9}, Change: "c", Version: 1, Context: c.Digest()}, a.Fold.Registered.Binding)

	listing, ok, err := led.Head(t.Context(), journal.ChangeStream("c"))
	require.NoError(t, err)
	require.True(t, ok)
	p, _, err := journal.Decode(listing)
	require.NoError(t, err)
	require.Equal(t, evidence.AttemptOpened{Attempt: "one", Registration: a.Events[0].Data}, p)
	require.Less(t, listing.Index, a.Events[0].Index)
	_, meta, err := journal.Decode(a.Events[0])
	require.NoError(t, err)
	id := listing.ID()
	require.Equal(t, id[:], meta.Cause)

	again, err := j.Register(t.Context(), forChange("one", "c"))
	require.NoError(t, err)
	require.Equal(t, a, again)
	requireSound(t, led)
}

// req G1
func TestRegisterOnlyForWhatIsCurrent(t *testing.T) {
	led, j := begin(t)
	require.NoError(t, j.OpenChange(t.Context(), "c", evidence.RepositoryID{9}))
	var stale *journal.NotCurrentError
	_, err := j.Register(t.Context(), forChange("one", "c"))
	require.ErrorAs(t, err, &stale, "no version, no context")

	change(t, j, "c")
	r := forChange("one", "c")
	r.Subject.Revision = "ffffffffffffffffffffffffffffffffffffffff"
	_, err = j.Register(t.Context(), r)
	require.ErrorAs(t, err, &stale)
	require.Equal(t, "the revision", stale.What)

	r = forChange("one", "c")
	r.Recipe.Args = []string{"other"}
	_, err = j.Register(t.Context(), r)
	require.ErrorContains(t, err, "is not the context's")

	_, err = j.Register(t.Context(), forChange("one", "c"))
	require.NoError(t, err)
	_, err = j.AddVersion(t.Context(), "c", r.Subject.Revision[:39]+"0")
	require.NoError(t, err)
	var taken *journal.TakenError
	_, err = j.Register(t.Context(), forChange("one", "c"))
	require.ErrorAs(t, err, &taken, "the same words mean another version now")
	requireSound(t, led)
}

// A crash between listing and opening leaves a listing that anyone completes.
//
// req G1
func TestAListingLeftBehindIsCompleted(t *testing.T) {
	for _, how := range []string{"register", "complete"} {
		t.Run(how, func(t *testing.T) {
			led, j := begin(t)
			change(t, j, "c")
			crashing := open(ledgertest.NewFaulty(led, ledgertest.FaultAt(1, ledgertest.NotStored)), "crashing")
			_, err := crashing.Register(t.Context(), forChange("one", "c"))
			require.ErrorIs(t, err, ledgertest.ErrInjected)
			var none *journal.NotFoundError
			_, err = j.Attempt(t.Context(), "one")
			require.ErrorAs(t, err, &none)

			other := forChange("one", "c")
			fresh := evidence.Nonce{0xff}
			other.Recipe.Nonce, other.Environment.Nonce = &fresh, &fresh
			other.Recipe.Environment = other.Environment.Digest()

			var a journal.Attempt
			if how == "register" {
				a, err = j.Register(t.Context(), other)
			} else {
				a, err = j.Complete(t.Context(), "c", "one")
			}
			require.NoError(t, err)
			require.Equal(t, registration("one").Recipe.Digest(), a.Fold.Registered.Recipe)
			again, err := j.Complete(t.Context(), "c", "one")
			require.NoError(t, err)
			require.Equal(t, a, again)
			c, err := j.Change(t.Context(), "c")
			require.NoError(t, err)
			require.Len(t, c.Fold.Openings, 1)
			requireSound(t, led)
		})
	}
}

// A listing whose attempt opened with other data is void, and says so.
//
// req G1
func TestAListingTakenByAnotherAttemptIsVoid(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	racing := &hooked{Ledger: led, Before: once(journal.AttemptStream("one"), func() {
		_, err := j.Register(t.Context(), registration("one")) // ad hoc, under the same ID
		require.NoError(t, err)
	})}
	var taken *journal.TakenError
	_, err := open(racing, "loser").Register(t.Context(), forChange("one", "c"))
	require.ErrorAs(t, err, &taken)
	_, err = j.Complete(t.Context(), "c", "one")
	require.ErrorAs(t, err, &taken)
	requireSound(t, led)
}

// The change may move on between reading it and listing the attempt: the binding is then the new one.
func TestRegisterReadsAgainWhenTheChangeMoves(t *testing.T) {
	led, j := begin(t)
	first := change(t, j, "c")
	racing := &hooked{Ledger: led, Before: once(journal.ChangeStream("c"), func() {
		r := requirement()
		r.Reductions = nil
		_, err := j.SetContext(t.Context(), "c", r)
		require.NoError(t, err)
	})}
	a, err := open(racing, "racing").Register(t.Context(), forChange("one", "c"))
	require.NoError(t, err)
	require.NotEqual(t, first.Digest(), a.Fold.Registered.Binding.Context)
	requireSound(t, led)
}

// A seal may open a stream; a registration follows it.
//
// req T3
func TestRegisterFollowsASeal(t *testing.T) {
	led, j := begin(t)
	require.NoError(t, j.Seal(t.Context(), ledger.Index(size(t, led)-1), journal.AttemptStream("one")))
	a, err := j.Register(t.Context(), registration("one"))
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Version)
	requireSound(t, led)
}

// req G1
func TestRegisterRacesEndInOneAttempt(t *testing.T) {
	led, j := begin(t)
	change(t, j, "c")
	var all sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		all.Go(func() {
			j := open(led, fmt.Sprint("racer ", i))
			_, errs[i] = j.Register(t.Context(), forChange(evidence.AttemptID(fmt.Sprint("a", i%4)), "c"))
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	c, err := j.Change(t.Context(), "c")
	require.NoError(t, err)
	require.Len(t, c.Fold.Openings, 4)
	requireSound(t, led)
}

// req R1
func TestRegisterResolvesUnknownOutcomes(t *testing.T) {
	for _, fault := range []ledgertest.Fault{ledgertest.ReplyLost, ledgertest.CommitLost} {
		for n := range 2 {
			led, j := begin(t)
			change(t, j, "c")
			before := size(t, led)
			_, err := open(ledgertest.NewFaulty(led, ledgertest.FaultAt(n, fault)), "test").Register(t.Context(), forChange("one", "c"))
			require.NoError(t, err)
			require.Equal(t, before+2, size(t, led), "each event once")
			requireSound(t, led)
		}
	}
}
