package faults

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/executor/warden"
)

// stall is a reader of the output's copy that doesn't read.
type stall chan struct{}

func (s stall) Write(p []byte) (int, error) { <-s; return len(p), nil }

// speech is what a program writes and what must be known of it.
type speech struct {
	name  string
	parts []part // in order; a new one waits for the one before
	limit uint64
	stall bool          // nobody reads the copy
	wait  time.Duration // between two parts
	hold  time.Duration // somebody else keeps the streams open after the exit
}

type part struct {
	stderr bool
	bytes  []byte
}

func (p speech) total(stderr bool) []byte {
	var all []byte
	for _, x := range p.parts {
		if x.stderr == stderr {
			all = append(all, x.bytes...)
		}
	}
	return all
}

// noise is n bytes of every value, NUL and what is no UTF-8 included.
func noise(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ seed ^ byte(i>>8)
	}
	return b
}

func speeches() []speech {
	var all []speech
	for power := 10; power <= 20; power++ {
		for _, around := range []int{-1, 0, 1} {
			n := 1<<power + around
			for _, limit := range []uint64{1 << 20, uint64(1 << power)} {
				all = append(all,
					speech{name: "stdout", limit: limit, parts: []part{{false, noise(n, 0)}}},
					speech{name: "stderr", limit: limit, parts: []part{{true, noise(n, 1)}}},
					speech{name: "both", limit: limit, parts: []part{{false, noise(n/2, 2)}, {true, noise(n-n/2, 3)}}},
				)
			}
		}
	}
	var mixed []part
	for i := range 64 {
		mixed = append(mixed, part{i%3 == 0, noise(i*37, byte(i))})
	}
	return append(all,
		speech{name: "silence", limit: 256},
		speech{name: "interleaved", limit: 1 << 20, parts: mixed},
		speech{name: "interleaved and cut", limit: 20_000, parts: mixed},
		speech{name: "slow", limit: 1 << 20, parts: mixed, wait: 50 * time.Millisecond},
		speech{name: "no UTF-8", limit: 1 << 20, parts: []part{{false, []byte("\xff\xfe\xc3\x28\x00\xed\xa0\x80")}, {true, []byte{0}}}},
		speech{name: "copy not read", limit: 1 << 20, parts: mixed, stall: true},
		speech{name: "writer left behind in time", limit: 1 << 20, parts: mixed, hold: 3 * time.Second},
		speech{name: "writer left behind", limit: 1 << 20, parts: mixed, hold: time.Minute},
	)
}

// TestOutputTruth holds what is kept of output against what was written: bytes, lengths, digests,
// the end, the truncated flag. Exactly the bound is complete; one byte more is the limit's end.
//
// req D1, req D2, req F2
func TestOutputTruth(t *testing.T) {
	all := speeches()
	for i, p := range all {
		t.Run(fmt.Sprintf("%d %s %d", i, p.name, p.limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { p.holds(t) })
		})
	}
	require.Len(t, all, 206)
}

func (p speech) holds(t *testing.T) {
	s := newSite(t, fakedaemon.Options{})
	program := fakedaemon.Program{HoldOutput: p.hold}
	for _, x := range p.parts {
		program.Steps = append(program.Steps, fakedaemon.Write(x.stderr, x.bytes), fakedaemon.Sleep(p.wait))
	}
	s.daemon.Script("/tool", program)
	r := s.registration("two")
	r.Recipe.Limits.Output = p.limit
	s.register(t, r)
	req := warden.RunRequest{Attempt: "two", Path: s.source, Accepted: accepted, Stdout: io.Discard, Stderr: io.Discard}
	reader := make(stall)
	if p.stall {
		req.Stdout, req.Stderr = reader, reader
	}
	res, err := s.warden().Run(t.Context(), req, nil)
	close(reader)
	require.NoError(t, err)
	require.True(t, res.Finished)
	s.audit(t)
	out := res.Fold.Run.Output
	stdout, stderr := p.total(false), p.total(true)
	written := uint64(len(stdout) + len(stderr))
	over := written > p.limit
	switch {
	case over:
		require.Equal(t, evidence.OutcomeOutputLimit, res.Verdict.Outcome, "%v", res.Verdict)
	case p.hold > 5*time.Second:
		require.Equal(t, "capture_incomplete", res.Verdict.Detail)
	default:
		require.Equal(t, evidence.OutcomeSuccess, res.Verdict.Outcome, "%v", res.Verdict)
	}
	require.Equal(t, over || p.hold > 5*time.Second, out.Incomplete)
	j := journal.New(journal.Config{Ledger: s.memory, Actor: "reader"})
	kept := uint64(0)
	for _, o := range []struct {
		of   evidence.Stream
		want []byte
	}{{out.Stdout, stdout}, {out.Stderr, stderr}} {
		w, err := j.Kept(t.Context(), o.of.Bytes)
		require.NoError(t, err)
		kept += o.of.Stored
		require.EqualValues(t, len(w.Bytes), o.of.Stored)
		require.LessOrEqual(t, o.of.Stored, o.of.Received)
		require.Equal(t, o.of.Stored < o.of.Received, o.of.Truncated, "never inferred, always right")
		require.Equal(t, w.Descriptor.Truncated, o.of.Truncated)
		require.True(t, bytes.HasPrefix(o.want, w.Bytes), "what is kept is the beginning of what was written")
		require.EqualValues(t, sha256.Sum256(w.Bytes), w.Descriptor.Stored)
		require.LessOrEqual(t, o.of.Received, uint64(len(o.want)))
		received := o.want[:o.of.Received]
		require.EqualValues(t, sha256.Sum256(received), w.Descriptor.Received)
		require.Equal(t, evidence.SaltedSum(w.Descriptor.Salt, received), o.of.ReceivedHash)
		if !over {
			require.Equal(t, o.want, append([]byte(nil), w.Bytes...))
			require.Equal(t, p.hold <= 5*time.Second, o.of.EndOfStream)
		}
	}
	if over {
		require.Equal(t, p.limit, kept, "exactly the bound is kept")
	}
	settle()
}

// Decision 0062: an attached stream that ends between two frames has ended. A connection that breaks
// inside a frame has not.
func TestEndBetweenFrames(t *testing.T) {
	for bytes, complete := range map[int]bool{8 + 6: true, 8 + 5: false, 8 + 6 + 3: false} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, fakedaemon.Options{})
			s.daemon.Script("/tool", steps(fakedaemon.Stdout("hello\n"), fakedaemon.Sleep(time.Second), fakedaemon.Stderr("lost\n"), fakedaemon.Exit(0)))
			s.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallAttach, Effect: fakedaemon.Cut{Bytes: bytes}})
			res, err := s.run(t, scenes[0])
			require.NoError(t, err)
			require.Equal(t, complete, !res.Fold.Run.Output.Incomplete)
			settle()
		})
	}
}
