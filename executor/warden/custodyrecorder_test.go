package warden

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// silent is a recorder that doesn't answer before it is told to.
type silent struct {
	executor.Recorder
	answer chan struct{}
}

func (s silent) Record(context.Context, ...evidence.Payload) error { <-s.answer; return nil }

// req E8: a record that never ends holds up nobody who gave it up: what is open can be listed, another
// record ends with its caller's patience, and Close says that the locks stay.
func TestCustodyRecorderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, err := OpenCustodyFiles(filepath.Join(t.TempDir(), "state", "custody"), nil)
		require.NoError(t, err)
		next := silent{answer: make(chan struct{})}
		rec := files.Recorder(next)
		taken := evidence.CustodyTaken{Handle: evidence.HandleKey{1}, Kind: evidence.CustodyContainer, Name: "one",
			Request: evidence.RequestDigest{1}, Daemon: evidence.DaemonIdentity{Engine: "e"}}
		done := make(chan error, 1)
		go func() { done <- rec.Record(t.Context(), taken) }()
		synctest.Wait()
		require.Len(t, rec.Open(), 1)
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		require.ErrorIs(t, rec.Record(ctx, evidence.CreateRuledOut{Handle: taken.Handle, Proof: evidence.ProofRefused}), context.DeadlineExceeded)
		require.ErrorContains(t, rec.Close(), "until this process ends")
		_, err = files.lock(taken.Handle)
		require.Error(t, err, "what is being written keeps its lock")
		close(next.answer)
		require.NoError(t, <-done)
		require.NoError(t, rec.Close())
		lock, err := files.lock(taken.Handle)
		require.NoError(t, err)
		require.NoError(t, lock.Close())
	})
}

// Each directory that has to be made is named, the lowest first, so that each one's parent is synced.
func TestUnmade(t *testing.T) {
	top := t.TempDir()
	a := filepath.Join(top, "a")
	got, err := unmade(filepath.Join(a, "b", "c"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(a, "b", "c"), filepath.Join(a, "b"), a}, got)
	require.NoError(t, os.MkdirAll(filepath.Join(a, "b"), 0o700))
	got, err = unmade(filepath.Join(a, "b", "c"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(a, "b", "c")}, got)
	require.NoError(t, os.WriteFile(filepath.Join(a, "f"), nil, 0o600))
	_, err = unmade(filepath.Join(a, "f", "c"))
	require.Error(t, err, "a file isn't a directory")
}
