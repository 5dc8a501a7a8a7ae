package executor

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req C9: somebody else's hands on the container.
func TestInterference(t *testing.T) {
	id := func(s *scene) string { return s.script.box.id.Hex() }
	for name, c := range map[string]struct {
		event func(s *scene) Event
		code  string
	}{
		"exec":     {func(s *scene) Event { return Event{Type: "container", Action: "exec_create: sh", Actor: id(s)} }, "exec"},
		"update":   {func(s *scene) Event { return Event{Type: "container", Action: "update", Actor: id(s)} }, "update"},
		"rename":   {func(s *scene) Event { return Event{Type: "container", Action: "rename", Actor: id(s)} }, "rename"},
		"pause":    {func(s *scene) Event { return Event{Type: "container", Action: "pause", Actor: id(s)} }, "pause"},
		"attach":   {func(s *scene) Event { return Event{Type: "container", Action: "attach", Actor: id(s)} }, "attach"},
		"copy in":  {func(s *scene) Event { return Event{Type: "container", Action: "extract-to-dir", Actor: id(s)} }, "copy"},
		"copy out": {func(s *scene) Event { return Event{Type: "container", Action: "archive-path", Actor: id(s)} }, "copy"},
		"kill":     {func(s *scene) Event { return Event{Type: "container", Action: "kill", Actor: id(s)} }, "kill"},
		"new":      {func(s *scene) Event { return Event{Type: "container", Action: "teleport", Actor: id(s)} }, "action_unknown"},
		"other network": {func(s *scene) Event {
			return Event{Type: "network", Action: "connect", Container: id(s), Network: "bridge"}
		}, "network_connect"},
		"network again": {func(s *scene) Event {
			return Event{Type: "network", Action: "connect", Container: id(s), Network: "none"}
		}, "network_connect"},
		"other container": {func(s *scene) Event { return Event{Type: "container", Action: "update", Actor: "other"} }, ""},
		"harmless":        {func(s *scene) Event { return Event{Type: "container", Action: "top", Actor: id(s)} }, ""},
	} {
		play(t, name, func(t *testing.T, s *scene) {
			s.script.command = func(b *box) {
				time.Sleep(time.Second)
				s.script.emit(c.event(s))
				b.exit(0)
			}
			v, err := s.perform()
			require.NoError(t, err)
			if c.code == "" {
				require.Equal(t, "ok", v.Detail, v.Causes)
				return
			}
			require.Equal(t, "interfered", v.Detail, v.Causes)
			require.Equal(t, []string{c.code}, s.book.fold.Run.Exited.Interference)
		})
	}
	play(t, "changed by the end", func(t *testing.T, s *scene) {
		s.script.compare = func(iso Isolation, in Inspection) Isolation {
			iso.Findings[5].Equal = in.Status == "created"
			return iso
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "interfered", v.Detail)
		require.Equal(t, []string{"changed_configuration"}, s.book.fold.Run.Exited.Interference)
	})
	play(t, "before the start", func(t *testing.T, s *scene) {
		s.script.before["attach"] = func() error {
			s.script.emitBox("update")
			time.Sleep(time.Millisecond)
			return nil
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "isolation_refused", v.Detail)
		require.Zero(t, s.script.count("start"))
	})
}

// req C9, req D1: a start that wasn't ours is never taken for it, whenever it came and however late
// the daemon tells.
func TestForeignStart(t *testing.T) {
	foreign := func(s *scene) func() error {
		return func() error {
			s.script.mu.Lock()
			delete(s.script.before, "start")
			s.script.mu.Unlock()
			return s.script.Start(s.ctx, s.script.box.id)
		}
	}
	play(t, "before the attach", func(t *testing.T, s *scene) {
		s.script.command = (*box).sleep
		s.script.before["attach"] = func() error { err := foreign(s)(); time.Sleep(time.Millisecond); return err }
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "isolation_refused", v.Detail, v.Causes)
		require.Equal(t, 1, s.script.count("start"), "theirs")
		require.Equal(t, evidence.CleanupForceKilled, cleanup(t, s), "it ran")
	})
	play(t, "as ours was on its way", func(t *testing.T, s *scene) {
		s.script.command = func(b *box) { b.print("theirs\n"); b.sleep() }
		s.script.before["start"] = foreign(s)
		begun := time.Now()
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "start_failed", v.Detail, v.Causes)
		require.Contains(t, v.Causes, "interfered")
		require.Equal(t, "start_foreign", s.book.fold.Run.StartFailed.Code)
		require.Equal(t, []string{"start"}, s.book.fold.Run.Exited.Interference)
		require.NotNil(t, s.book.fold.Run.Output)
		require.Equal(t, evidence.CleanupForceKilled, cleanup(t, s))
		require.Less(t, time.Since(begun), time.Second, "killed at once")
	})
	play(t, "and over before ours", func(t *testing.T, s *scene) {
		s.script.before["start"] = func() error {
			err := foreign(s)()
			synctest.Wait()            // it came to its end
			s.script.box.with(func() { // theirs stays with whoever reads it
				ours := *s.script.box
				ours.chunks, ours.killed = make(chan Chunk), make(chan struct{})
				s.script.box = &ours
			})
			return err
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "interfered", v.Detail, v.Causes)
		require.Contains(t, s.book.fold.Run.Exited.Interference, "start")
	})
	play(t, "whose exit is told as ours", func(t *testing.T, s *scene) {
		s.script.command = func(b *box) {
			b.with(func() { b.in.FinishedAt = 10; b.end(0) })
			b.hangUp(nil)
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "transport_fault", v.Detail, v.Causes)
		require.Equal(t, []string{"exit_times_differ"}, s.book.fold.Run.Exited.Faults)
	})
}

// req F5: no event is no proof without the container's die on the same subscription; and three
// sources must tell one story.
func TestMemoryAndEvents(t *testing.T) {
	for name, c := range map[string]struct {
		command func(s *scene, b *box)
		detail  string
	}{
		"event":         {func(s *scene, b *box) { s.script.emitBox("oom"); b.exit(0) }, "oom"},
		"flag":          {func(s *scene, b *box) { b.with(func() { b.in.OOMKilled = true }); b.exit(0) }, "oom"},
		"kernel":        {func(s *scene, b *box) { b.with(func() { b.oomKill = 1 }); time.Sleep(time.Second); b.exit(0) }, "oom"},
		"stream breaks": {func(s *scene, b *box) { close(s.script.torn); <-b.killed; b.hangUp(nil) }, "transport_fault"},
	} {
		play(t, name, func(t *testing.T, s *scene) {
			s.script.command = func(b *box) { c.command(s, b) }
			v, err := s.perform()
			require.NoError(t, err)
			require.Equal(t, c.detail, v.Detail, v.Causes)
			if name == "stream breaks" {
				require.Subset(t, v.Causes, []string{"oom_unknown", "transport_fault"})
			}
		})
	}
	play(t, "wait and inspection differ", func(t *testing.T, s *scene) {
		s.script.command = func(b *box) {
			b.with(func() { b.end(0); b.in.ExitCode = 4 })
			b.hangUp(nil)
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "transport_fault", v.Detail, v.Causes)
		require.Equal(t, []string{"exit_codes_differ"}, s.book.fold.Run.Exited.Faults)
	})
	play(t, "no die", func(t *testing.T, s *scene) {
		w := newWatch("none")
		require.Equal(t, evidence.OOMUnknown, w.seen().oom)
		w.aim(evidence.ContainerID{1})
		w.take(Event{Type: "container", Action: "die", Actor: evidence.ContainerID{1}.Hex(), ExitCode: "0"})
		require.Equal(t, evidence.OOMNone, w.seen().oom)
		w.lose(io.ErrUnexpectedEOF)
		require.Equal(t, evidence.OOMUnknown, w.seen().oom)
	})
}
