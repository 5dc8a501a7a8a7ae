package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// pages is a recorder that takes whatever comes.
type pages struct {
	events []evidence.Payload
	blobs  map[evidence.SaltedDigest]string
}

func (p *pages) Record(_ context.Context, events ...evidence.Payload) error {
	p.events = append(p.events, events...)
	return nil
}

func (p *pages) Keep(_ context.Context, w ...evidence.Withholdable) error {
	for _, one := range w {
		p.blobs[one.Ref.Salted] = string(one.Bytes)
	}
	return nil
}

// req E5: custody of an unanswered create is closed only by a complete proof that the daemon asked
// lives no more. A look of that proof that fails leaves it open and is what is told, not the absence
// that was seen before.
func TestOutlived(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(s *scene)
		code string // "" = ruled out
		says string
	}{
		"ended":       {set: func(s *scene) { s.script.ended = true }},
		"still lives": {set: func(s *scene) {}, code: OpenUnanswered},
		"end unreadable": {set: func(s *scene) {
			s.script.before["ended"] = func() error { return errors.New("permission denied") }
		}, code: OpenUnanswered, says: "whether the daemon that was asked has ended: permission denied"},
		"second list fails": {set: func(s *scene) {
			s.script.ended = true
			s.script.after["ended"] = s.script.then("find", unanswered("list"))
		}, code: OpenLookup, says: "docker list unanswered: reply lost"},
		"listed by then": {set: func(s *scene) {
			s.script.ended = true
			s.script.after["ended"] = func() error {
				_, err := s.script.Create(s.ctx, Plan{Request: s.job.Request, Handle: evidence.HandleKey{1}})
				return err
			}
		}, code: OpenUnanswered, says: "a container with its labels came up meanwhile"},
		"second probe fails": {set: func(s *scene) {
			s.script.ended = true
			s.script.after["ended"] = s.script.then("probe", unanswered("info"))
		}, code: OpenUnprobed, says: "docker info unanswered: reply lost"},
		"restarted meanwhile": {set: func(s *scene) {
			s.script.ended = true
			later := s.script.runtime[0]
			later.Identity.Daemon.Process = &evidence.DaemonProcess{PID: 79, Start: 3, Namespace: 1}
			s.script.runtime = append(s.script.runtime, later)
		}, code: OpenUnanswered, says: "the daemon changed meanwhile"},
	} {
		play(t, name, func(t *testing.T, s *scene) {
			asked := s.script.runtime[0].Identity.Daemon
			asked.Process = &evidence.DaemonProcess{PID: 77, Start: 1, Namespace: 1}
			s.script.runtime[0].Identity.Daemon.Process = &evidence.DaemonProcess{PID: 78, Start: 2, Namespace: 1}
			c.set(s)
			p := &pages{blobs: map[evidence.SaltedDigest]string{}}
			err := Reconciler{Driver: s.script, Recorder: p}.Reconcile(s.ctx, evidence.Custody{
				Handle: evidence.HandleKey{1}, Kind: evidence.CustodyContainer, Request: s.job.Request, Daemon: asked,
			})
			require.NoError(t, err)
			require.Len(t, p.events, 1, "one word of it")
			if c.code == "" {
				require.Equal(t, evidence.ProofEnded, p.events[0].(evidence.CreateRuledOut).Proof)
				return
			}
			open := p.events[0].(evidence.CleanupUnconfirmed)
			require.Equal(t, c.code, open.Code)
			if c.says != "" {
				require.NotNil(t, open.Detail)
				require.Contains(t, p.blobs[open.Detail.Salted], c.says)
			}
			require.Zero(t, s.script.count("remove"))
		})
	}
}
