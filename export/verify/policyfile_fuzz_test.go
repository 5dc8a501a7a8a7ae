package verify_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/export/verify"
)

// FuzzParsePolicy: no bytes make the parser panic, and what it accepts the schema accepts too.
func FuzzParsePolicy(f *testing.F) {
	fixture, _ := one(f)
	valid := policySchema(f)
	alice, err := onlooker("alice", 1).Key()
	require.NoError(f, err)
	whole := fmt.Sprintf(`{"version": 1, "trust": [%s], "checkpoint": %s, "witnesses": {"quorum": 1, "keys": [%s]}}`,
		quoted(f, identityText(f, fixture.Identity)), quoted(f, string(checkpointOf(f, fixture).Note)), quoted(f, alice.String()))
	seeds := []string{
		whole, `{"version": 1}`, `{"version": 1, "claim": "reduced", "reductions": ["cgroup-v1"], "require": "full"}`,
		`{"version": 1, "required_checks": ["kept"], "allow_withheld": ["output"]}`, `{"version": 1, "version": 1}`, `{"version": null}`, `[`, `{"version": 1e0}`, "",
	}
	_, err = verify.ParsePolicy([]byte(whole))
	require.NoError(f, err)
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := verify.ParsePolicy(text)
		if err != nil {
			require.Equal(t, verify.Policy{}, p)
			return
		}
		require.True(t, json.Valid(text))
		require.NoError(t, valid(string(text)))
	})
}
