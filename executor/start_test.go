package executor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req D3, req F3, req E6: after a start that failed, nothing is said of what may have run but what was
// seen: only a refusal that the daemon answered, and that left no trace, means that it never ran.
func TestStartFails(t *testing.T) {
	play(t, "refused", func(t *testing.T, s *scene) {
		s.script.before["start"] = func() error { return answered("start", 400) }
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, []string{"start_failed", "not_started"}, v.Causes)
		require.Nil(t, s.book.fold.Run.Exited)
		require.Nil(t, s.book.fold.Run.Output)
		require.Equal(t, evidence.CleanupRemoved, cleanup(t, s))
	})
	play(t, "the daemon died after it, and shows it as created", func(t *testing.T, s *scene) {
		s.script.command = func(b *box) { b.print("arrived\n"); <-b.killed; b.hangUp(nil) }
		s.script.after["start"] = func() error {
			time.Sleep(time.Millisecond)
			s.script.mu.Lock()
			defer s.script.mu.Unlock()
			b := s.script.box
			b.in.Status, b.in.Running, b.in.PID = statusCreated, false, 0
			close(b.killed)
			return unanswered("start")
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, evidence.OutcomeIncomplete, v.Outcome)
		require.Equal(t, "start_failed", v.Detail)
		require.NotContains(t, v.Causes, "not_started")
		require.Subset(t, v.Causes, []string{"invalid_state", "oom_unknown", "capture_incomplete"})
		require.Equal(t, statusCreated, s.book.fold.Run.Exited.Status)
		o := s.book.fold.Run.Output
		require.Equal(t, "arrived\n", string(s.book.blobs[o.Stdout.Bytes.Salted]))
		require.True(t, o.Incomplete)
		require.NotNil(t, s.book.fold.AfterExit)
		require.Equal(t, evidence.CleanupForceKilled, cleanup(t, s))
	})
	play(t, "the request was lost", func(t *testing.T, s *scene) {
		s.script.before["start"] = func() error { return unanswered("start") }
		begun := time.Now()
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "start_failed", v.Detail)
		require.NotContains(t, v.Causes, "not_started", "nobody knows")
		require.Equal(t, statusCreated, s.book.fold.Run.Exited.Status)
		require.Zero(t, s.book.fold.Run.Output.Stdout.Received)
		require.Equal(t, evidence.CleanupForceKilled, cleanup(t, s))
		require.Less(t, time.Since(begun), exitBound, "there is nothing to wait for")
	})
	play(t, "an answer that it failed, and it runs", func(t *testing.T, s *scene) {
		s.script.command = func(b *box) { b.print("running\n"); b.sleep() }
		s.script.after["start"] = func() error { return answered("start", 500) }
		begun := time.Now()
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "start_failed", v.Detail)
		require.Equal(t, 1, s.script.count("kill"))
		require.Less(t, time.Since(begun), time.Second, "killed at once")
		require.Equal(t, statusExited, s.book.fold.Run.Exited.Status)
		require.EqualValues(t, exitKilled, s.book.fold.Run.Exited.ExitCode)
		require.Equal(t, evidence.CleanupForceKilled, cleanup(t, s))
	})
	play(t, "refused, after somebody else's hands were on it", func(t *testing.T, s *scene) {
		s.script.before["start"] = func() error {
			s.script.emitBox("update")
			time.Sleep(time.Millisecond)
			return answered("start", 400)
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "start_failed", v.Detail)
		require.Contains(t, v.Causes, "interfered")
		require.Equal(t, []string{"update"}, s.book.fold.Run.Exited.Interference)
	})
	play(t, "somebody else removed it", func(t *testing.T, s *scene) {
		s.script.before["start"] = func() error {
			s.script.mu.Lock()
			defer s.script.mu.Unlock()
			s.script.emitBox("destroy")
			s.script.box = nil
			return fmt.Errorf("container: %w", ErrAbsent)
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "start_failed", v.Detail)
		require.Contains(t, v.Causes, "interfered")
		require.Equal(t, statusAbsent, s.book.fold.Run.Exited.Status)
		require.Equal(t, []string{"removal"}, s.book.fold.Run.Exited.Interference)
		require.Zero(t, s.script.count("kill"))
		require.Equal(t, evidence.CleanupAbsent, cleanup(t, s))
	})
}
