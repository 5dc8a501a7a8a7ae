package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/export/verify"
)

// req J5: an attempt about another source outweighs one that can't be compared, which is exit 8 and not 1.
func TestAboutSource(t *testing.T) {
	manifest := evidence.ManifestDigest{1}
	withheld := verify.Attempt{Attempt: "withheld", Record: evidence.Record{Profile: evidence.ProfileContained, Manifest: &manifest}}
	same := verify.Attempt{Attempt: "same", Record: evidence.Record{Manifest: &manifest}}
	other := verify.Attempt{Attempt: "other", Record: evidence.Record{Manifest: &manifest}}
	for _, c := range []struct {
		name     string
		attempts []verify.Attempt
		result   verify.Result
		verdict  verify.Verdict
		exit     int
	}{
		{"the same", []verify.Attempt{same}, verify.Pass, verify.Valid, exitOK},
		{"another", []verify.Attempt{same, other}, verify.Fail, verify.Valid, exitFailed},
		{"withheld", []verify.Attempt{withheld, same}, verify.NotDone, verify.NotChecked, exitNotChecked},
		{"withheld, then another", []verify.Attempt{withheld, other}, verify.Fail, verify.Valid, exitFailed},
		{"none", nil, verify.NotDone, verify.NotChecked, exitNotChecked},
	} {
		check, err := heldTo(source.Locator{Path: "here"}, c.attempts, func(a verify.Attempt) (string, error) {
			return map[evidence.AttemptID]string{"other": "it is about manifest 2"}[a.Attempt], nil
		})
		require.NoError(t, err)
		require.Equal(t, c.result, check.Result, c.name)
		r := verify.Report{Verdict: verify.Valid, Reached: true}
		settleSource(&r, check)
		require.Equal(t, c.verdict, r.Verdict, c.name)
		require.Equal(t, c.exit, verifyExit(r), c.name)
		require.Equal(t, c.exit == exitOK, r.Reached, c.name)
	}
	r := verify.Report{Verdict: verify.Invalid}
	settleSource(&r, verify.Check{Name: "repository", Result: verify.NotDone})
	require.Equal(t, exitBadEvidence, verifyExit(r))
}
