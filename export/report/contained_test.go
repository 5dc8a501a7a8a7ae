package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export/verify"
)

// req N7: a success that broke its policy says so on the first line.
func TestBrokenPolicyInTheHeadline(t *testing.T) {
	f, file := exported(t, evidencetest.Violated())
	first, _, _ := strings.Cut(render(t, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})), "\n")
	require.Equal(t, "VERIFIED: success (policy_violated), claim reduced", first)
	f, file = exported(t, evidencetest.Contained())
	first, _, _ = strings.Cut(render(t, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})), "\n")
	require.Equal(t, "VERIFIED: success, claim reduced", first)
}
