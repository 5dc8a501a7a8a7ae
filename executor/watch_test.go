package executor

import (
	"io"
	"testing"
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
