//go:build live

package warden_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/warden"
)

// speech is what the subject writes to each stream, and the bound on both together.
type speech struct {
	name           string
	stdout, stderr int
	limit          uint64
	stall          bool // nobody reads the copy
}

// spoken is the first n bytes that the subject writes to a stream: every value, NUL and what is no
// UTF-8 included.
func spoken(n, stream int) []byte {
	b := make([]byte, n)
	for at := range b {
		b[at] = byte(at*7) ^ byte(at>>8) ^ byte(stream)
	}
	return b
}

// TestLiveOutputTruth holds what is kept of a real daemon's output against what was written: bytes,
// lengths, digests, the end, the truncated flag. The fake daemon's table has every size between
// (test/faults); here the frames are those that the daemon makes.
//
// req D1, req D2, req F2
func TestLiveOutputTruth(t *testing.T) {
	s := newSite(t)
	all := []speech{
		{name: "silence", limit: 256},
		{name: "bound", stdout: 40_000, stderr: 25_536, limit: 1 << 16},
		{name: "bound-1", stdout: 40_000, stderr: 25_537, limit: 1 << 16},
		{name: "cut-in-stderr", stdout: 100, stderr: 80_000, limit: 1 << 16},
		{name: "copy-not-read", stdout: 300_000, stderr: 200_000, limit: 1 << 20, stall: true},
	}
	for power := 10; power <= 20; power += 2 {
		for _, around := range []int{-1, 0, 1} {
			n := 1<<power + around
			all = append(all, speech{name: fmt.Sprint("size-", n), stdout: n - n/3, stderr: n / 3, limit: 1 << 20})
		}
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) { p.holds(t, s) })
	}
	t.Logf("%d speeches", len(all))
	require.Len(t, all, 23)
}

func (p speech) holds(t *testing.T, s *site) {
	id := s.register(t, "says-"+p.name, func(r *evidence.Recipe) { r.Limits.Output = p.limit }, "speak", fmt.Sprint(p.stdout), fmt.Sprint(p.stderr))
	req := warden.RunRequest{Attempt: id, Path: s.source, Accepted: v1, Stdout: io.Discard, Stderr: io.Discard}
	read := make(chan struct{})
	if p.stall {
		stalled := writer(func([]byte) { <-read })
		req.Stdout, req.Stderr = stalled, stalled
	}
	res, err := s.warden(s.driver).Run(context.Background(), req, nil)
	close(read)
	require.NoError(t, err)
	s.settled(t, res)
	out := res.Fold.Run.Output
	over := uint64(p.stdout+p.stderr) > p.limit
	if over {
		require.Equal(t, evidence.OutcomeOutputLimit, res.Verdict.Outcome, res.Verdict.Causes)
	} else {
		require.Equal(t, "ok", res.Verdict.Detail, res.Verdict.Causes)
	}
	require.Equal(t, over, out.Incomplete)
	kept := uint64(0)
	for _, o := range []struct {
		of   evidence.Stream
		want []byte
	}{{out.Stdout, spoken(p.stdout, 0)}, {out.Stderr, spoken(p.stderr, 1)}} {
		w, err := s.journal.Kept(context.Background(), o.of.Bytes)
		require.NoError(t, err)
		kept += o.of.Stored
		require.EqualValues(t, len(w.Bytes), o.of.Stored)
		require.LessOrEqual(t, o.of.Received, uint64(len(o.want)))
		require.Equal(t, o.of.Stored < o.of.Received, o.of.Truncated)
		require.Equal(t, string(o.want[:o.of.Stored]), string(w.Bytes))
		require.EqualValues(t, sha256.Sum256(w.Bytes), w.Descriptor.Stored)
		require.Equal(t, evidence.SaltedSum(w.Descriptor.Salt, o.want[:o.of.Received]), o.of.ReceivedHash)
		if !over {
			require.EqualValues(t, len(o.want), o.of.Stored)
			require.True(t, o.of.EndOfStream)
		}
	}
	if over {
		require.Equal(t, p.limit, kept, "exactly the bound is kept")
	}
}
