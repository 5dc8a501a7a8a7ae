package projections_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger/ledgertest"
	"github.com/baildock/baildock/projections"
)

// req S1
func TestRowsTellWhatTheEventsTell(t *testing.T) {
	for name, backend := range journaltest.Backends() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, backend(t))
			p := w.open(t)
			rows, err := p.Attempts(t.Context(), projections.Query{})
			require.NoError(t, err)
			require.Empty(t, rows)

			appender := w.begin(t, "one")
			rows, err = p.Attempts(t.Context(), projections.Query{})
			require.NoError(t, err)
			require.Len(t, rows, 1, "an answer holds what was durable before it was asked")
			require.Equal(t, evidence.StateRunning, rows[0].State)
			require.Empty(t, rows[0].Outcome)
			require.Equal(t, "none", rows[0].Cleanup)
			require.Nil(t, rows[0].ExitStatus)

			h := evidencetest.Success()
			_, err = appender.Append(t.Context(), h.Events()[2:6]...)
			require.NoError(t, err)
			rows, err = p.OpenAttempts(t.Context())
			require.NoError(t, err)
			require.Equal(t, "open", rows[0].Cleanup)
			require.EqualValues(t, 1, rows[0].OpenCustody)
			h.Exited.ExitCode = 3
			_, err = appender.Append(t.Context(), h.Events()[6:]...)
			require.NoError(t, err)
			record, finished, err := appender.Finish(t.Context())
			require.NoError(t, err)

			rows, err = p.Attempts(t.Context(), projections.Query{})
			require.NoError(t, err)
			a, err := w.j.Attempt(t.Context(), "one")
			require.NoError(t, err)
			code, status, version := int64(3), int64(1), a.Version
			finishedIndex := int64(finished.Index)
			registered, claimed, done := time.Unix(0, a.Events[0].Time).UTC(), time.Unix(0, a.Events[1].Time).UTC(), time.Unix(0, finished.Time).UTC()
			stdout, stderr, duration := int64(h.Output.Stdout.Stored), int64(h.Output.Stderr.Stored), int64(h.Exited.Duration)
			require.Equal(t, []projections.AttemptRow{{
				Attempt: "one", State: evidence.StateFinished, Generation: 1,
				Outcome: evidence.OutcomeFailed, Detail: "exit_nonzero", Causes: []string{"exit_nonzero"}, ExitStatus: &status, ExitCode: &code,
				Claim: evidence.ClaimReduced, Reductions: []evidence.Reduction{evidence.ReducedCgroupV1}, Profile: evidence.ProfileCommand,
				Subject: evidence.SubjectCommit, Revision: h.Registered.Subject.Revision, Manifest: h.Materialized.Manifest.String(),
				Recipe: h.Recipe.Digest().String(), Environment: h.Environment.Digest().String(),
				Request: record.Request.String(), Runtime: record.Runtime.String(), Record: record.Digest().String(),
				Cleanup: "terminated", Snapshot: "gone", StdoutBytes: &stdout, StderrBytes: &stderr, Duration: &duration,
				Home: evidence.HomeID{7}.String(), Actor: "test",
				RegisteredAt: registered, ClaimedAt: &claimed, FinishedAt: &done,
				FirstIndex: a.Events[0].Index, LastIndex: finished.Index, FinishedIndex: &finishedIndex, Version: version,
			}}, rows)
		})
	}
}

// req R7
func TestWhatCannotBeReadIsAProblemOfItsAttempt(t *testing.T) {
	w := newWorld(t, ledgertest.NewMem())
	p := w.open(t)
	w.begin(t, "newer")
	force(t, w.led, journal.AttemptStream("newer"), "CandidateRevised", 1, evidence.StreamSealed{})
	w.begin(t, "schema")
	force(t, w.led, journal.AttemptStream("schema"), "SnapshotRemoved", 2, evidence.SnapshotRemoved{})
	w.begin(t, "illegal")
	force(t, w.led, journal.AttemptStream("illegal"), "StartOrdered", 1, evidence.StartOrdered{})
	end(t, w.begin(t, "after"), as)
	force(t, w.led, journal.AttemptStream("after"), "AttemptFenced", 1, evidence.AttemptFenced{Generation: 2})
	force(t, w.led, journal.AttemptStream("foreign"), "AttemptRegistered", 1, *evidencetest.Success().Registered)
	force(t, w.led, "attempt--bad", "StreamSealed", 1, evidence.StreamSealed{})
	force(t, w.led, "change-x", "Newest", 1, evidence.StreamSealed{})
	end(t, w.begin(t, "good"), as)
	require.NoError(t, w.j.Seal(t.Context(), 1000, journal.AttemptStream("sealed"), journal.AttemptStream("good")))

	rows, err := p.Attempts(t.Context(), projections.Query{})
	require.NoError(t, err)
	require.Equal(t, []string{"good", "foreign", "after", "illegal", "schema", "newer"}, ids(rows))
	require.Empty(t, rows[0].Problem)
	require.Equal(t, evidence.OutcomeSuccess, rows[0].Outcome)
	for _, r := range rows[1:] {
		require.NotEmpty(t, r.Problem, r.Attempt)
		require.Empty(t, r.Outcome, r.Attempt)
		require.Empty(t, r.Record, r.Attempt)
	}
	good, err := p.Attempts(t.Context(), projections.Query{Where: map[projections.Filterable]string{projections.ByOutcome: "success"}})
	require.NoError(t, err)
	require.Equal(t, []string{"good"}, ids(good))
}
