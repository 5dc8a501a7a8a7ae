package journal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// frozen is the clock of every test: no order may come from it.
func frozen() time.Time { return time.Unix(1_700_000_000, 0) }

var genesis = journaltest.Genesis

func open(led ledger.Ledger, actor string) *journal.Journal {
	return journal.New(journal.Config{Ledger: led, Actor: actor, Now: frozen})
}

// begin returns an initialised ledger in memory and a journal on it.
func begin(t testing.TB) (ledger.Ledger, *journal.Journal) {
	t.Helper()
	led := ledgertest.NewMem()
	j := open(led, "test")
	require.NoError(t, j.Init(t.Context(), genesis()))
	return led, j
}

// registration is an ad hoc registration of the successful history's recipe and source.
func registration(id evidence.AttemptID) journal.Registration {
	h := evidencetest.Success()
	return journal.Registration{Attempt: id, Subject: h.Registered.Subject, Recipe: h.Recipe, Environment: h.Environment}
}

var runner = journal.Claim{
	Home: evidence.HomeIdentity{Boot: evidence.Nonce{1}, Home: evidence.HomeID{2}, Inode: 3}, Deadline: 4,
	Accepted: []evidence.Reduction{evidence.ReducedCgroupV1},
}

// claimed registers and claims an ad hoc attempt.
func claimed(t testing.TB, j *journal.Journal, id evidence.AttemptID) *journal.Appender {
	t.Helper()
	_, err := j.Register(t.Context(), registration(id))
	require.NoError(t, err)
	p, err := j.Claim(t.Context(), id, 0, runner)
	require.NoError(t, err)
	return p
}

// afterClaim lists what a successful run appends between its claim and its record.
func afterClaim() []evidence.Payload { return evidencetest.Success().Events()[2:] }

// change opens a change with one version and a context that asks for the successful history's
// recipe.
func change(t testing.TB, j *journal.Journal, id evidence.ChangeID) evidence.Context {
	t.Helper()
	h := evidencetest.Success()
	require.NoError(t, j.OpenChange(t.Context(), id, evidence.RepositoryID{9}))
	v, err := j.AddVersion(t.Context(), id, h.Registered.Subject.Revision)
	require.NoError(t, err)
	require.EqualValues(t, 1, v)
	c, err := j.SetContext(t.Context(), id, requirement())
	require.NoError(t, err)
	return c
}

func requirement() journal.Requirement {
	h := evidencetest.Success()
	return journal.Requirement{Recipe: &h.Recipe, Environment: &h.Environment, Reductions: []evidence.Reduction{evidence.ReducedCgroupV1}}
}

// forChange is a registration for the change.
func forChange(id evidence.AttemptID, c evidence.ChangeID) journal.Registration {
	r := registration(id)
	r.Change = c
	return r
}

// hooked lets somebody else come in before appends; once, before the first to a stream.
type hooked = journaltest.Hooked

var once = journaltest.Once

func size(t testing.TB, led ledger.Ledger) uint64 {
	t.Helper()
	n, err := led.Size(t.Context())
	require.NoError(t, err)
	return n
}

// visit lets a fresh Meaning and a Checker read the whole ledger.
func visit(t testing.TB, led ledger.Ledger) (*journal.Meaning, error) {
	t.Helper()
	m, bytes := &journal.Meaning{}, ledger.NewChecker()
	for e, err := range led.ReadAll(t.Context(), 0) {
		require.NoError(t, err)
		_, err := bytes.Check(e)
		require.NoError(t, err)
		if err := m.Visit(e); err != nil {
			return m, err
		}
	}
	return m, nil
}

func requireSound(t testing.TB, led ledger.Ledger) {
	t.Helper()
	m, err := visit(t, led)
	require.NoError(t, err)
	require.Empty(t, m.Unread())
}
