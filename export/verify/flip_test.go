package verify_test

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/schemas"
)

func one(t testing.TB) (*exporttest.Fixture, []byte) {
	t.Helper()
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	return f, f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
}

// eachBit calls try with every `step`th bit of b flipped, on all cores, and returns how many.
func eachBit(b []byte, step int, try func(flipped []byte, bit int)) int {
	var next, tried atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			mine := bytes.Clone(b)
			for {
				bit := int(next.Add(int64(step))) - step
				if bit >= len(b)*8 {
					return
				}
				mine[bit/8] ^= 1 << (bit % 8)
				try(mine, bit)
				mine[bit/8] ^= 1 << (bit % 8)
				tried.Add(1)
			}
		})
	}
	group.Wait()
	return int(tried.Load())
}

// req T4: every single flipped bit of a real bundle makes verification fail.
func TestEveryFlippedBitFails(t *testing.T) {
	f, file := one(t)
	policy := verify.Policy{Trust: verify.TrustLedger(f.Identity)}
	require.Equal(t, verify.Valid, verify.Verify(file, policy).Verdict)
	var survivors atomic.Int64
	tried := eachBit(file, 1, func(flipped []byte, bit int) {
		if r := verify.Verify(flipped, policy); r.Verdict != verify.Invalid {
			survivors.Add(1)
			t.Errorf("bit %d flipped: %s", bit, r.Verdict)
		}
	})
	require.Equal(t, len(file)*8, tried)
	require.Greater(t, tried, 100_000)
	require.Zero(t, survivors.Load())
}

// The signature isn't what the other checks lean on: whoever holds the bundle key and flips a bit of
// the payload before signing still fails, in every part but the schema digests, which the signer may
// state as it likes. Every 25th bit is tried.
func TestFlippedAndSignedAgainFails(t *testing.T) {
	f, file := one(t)
	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(t, err)
	policy := verify.Policy{Trust: verify.TrustLedger(f.Identity)}
	p, err := bundle.Unmarshal(env.Payload)
	require.NoError(t, err)
	var digests [][2]int
	for _, s := range p.Schemas {
		at := bytes.LastIndex(env.Payload, s.Digest[:])
		digests = append(digests, [2]int{at - 4 - len(s.Name), at + len(s.Digest)})
	}
	require.Len(t, digests, len(schemas.CDDL()))
	inDigest := func(byteAt int) bool {
		for _, d := range digests {
			if byteAt >= d[0] && byteAt < d[1] {
				return true
			}
		}
		return false
	}
	var survivors atomic.Int64
	tried := eachBit(env.Payload, 25, func(flipped []byte, bit int) {
		signed := resign(t, f, env, flipped)
		if r := verify.Verify(signed, policy); r.Verdict != verify.Invalid && !inDigest(bit/8) {
			survivors.Add(1)
			t.Errorf("bit %d of byte %d flipped: %s", bit%8, bit/8, r.Verdict)
		}
	})
	require.Equal(t, (len(env.Payload)*8+24)/25, tried)
	require.Zero(t, survivors.Load())
}
