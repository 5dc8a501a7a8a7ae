package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
)

func one(t testing.TB) (*exporttest.Fixture, []byte) {
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	return f, f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
}

// req T2, T10: whoever holds the bundle and ledger.pub reaches the verdict, each check listed.
func TestVerifyValid(t *testing.T) {
	f, file := one(t)
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity), Require: verify.Success})
	b, _ := json.MarshalIndent(r, "", " ")
	t.Logf("%d bytes %s", len(file), b)
	require.Equal(t, verify.Valid, r.Verdict)
	require.True(t, r.Reached)
}
