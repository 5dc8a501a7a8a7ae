package fakedaemon_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// TestDriverTellsAnswersFromSilence hits each call the driver makes with each fault that spoils or
// loses its answer. The driver must never take a spoilt answer for a good one, nor a lost one for
// an answer. (Slow kinds wait for the driver's own deadlines and are the executor's table's.)
// req C7 E3
func TestDriverTellsAnswersFromSilence(t *testing.T) {
	ran := 0
	for _, f := range fakedaemon.Cells(fakedaemon.CallPing, fakedaemon.CallVersion, fakedaemon.CallInfo, fakedaemon.CallImageList, fakedaemon.CallImageInspect,
		fakedaemon.CallCreate, fakedaemon.CallInspect, fakedaemon.CallList, fakedaemon.CallAttach, fakedaemon.CallWait,
		fakedaemon.CallStart, fakedaemon.CallKill, fakedaemon.CallRemove, fakedaemon.CallEvents) {
		kind := f.Effect.Kind()
		want := verdictOf(f.Call, kind)
		if want == "" {
			continue
		}
		ran++
		t.Run(fmt.Sprintf("%s/%s", f.Call, kind), func(t *testing.T) {
			d := fakedaemon.Start(t, fakedaemon.Options{Engine: fakedaemon.Engine27(), Program: subject})
			w := newWorkload(t, d)
			d.Fault(f)
			err := w.do(f.Call)
			var fault *executor.Fault
			switch want {
			case "answered":
				require.ErrorAs(t, err, &fault)
				require.True(t, fault.Answered, "%v", err)
				status := 500
				if kind == fakedaemon.KindDeniedDone {
					status = 409
				}
				require.Equal(t, status, fault.Status)
			case "unanswered":
				require.ErrorAs(t, err, &fault)
				require.False(t, fault.Answered, "%v", err)
				require.NotErrorIs(t, err, executor.ErrAbsent)
			case "absent":
				require.ErrorIs(t, err, executor.ErrAbsent)
			case "broken":
				require.Error(t, err)
				require.False(t, errors.Is(err, io.EOF), "a broken stream has no end: %v", err)
			case "unequal":
				require.ErrorIs(t, err, errUnequal)
			}
		})
	}
	require.Equal(t, 120, ran)
}

// verdictOf is what the driver must make of a fault; "" = nothing by itself.
func verdictOf(c fakedaemon.Call, k fakedaemon.FaultKind) string {
	stream := c == fakedaemon.CallAttach || c == fakedaemon.CallWait || c == fakedaemon.CallEvents
	switch k {
	case fakedaemon.KindRefuse, fakedaemon.KindFailedDone, fakedaemon.KindDeniedDone:
		if c == fakedaemon.CallPing {
			return "" // asked a second way
		}
		return "answered"
	case fakedaemon.KindDropBefore, fakedaemon.KindDropReply:
		if c == fakedaemon.CallPing {
			return ""
		}
		return "unanswered"
	case fakedaemon.KindTruncated:
		return "unanswered"
	case fakedaemon.KindMalformed, fakedaemon.KindOversized, fakedaemon.KindCut:
		if stream {
			return "broken"
		}
		return "unanswered"
	case fakedaemon.KindAbsent:
		if c != fakedaemon.CallCreate {
			return "absent"
		}
	case fakedaemon.KindRepeatedKey:
		if c == fakedaemon.CallInspect {
			return "unanswered"
		}
	case fakedaemon.KindOverride, fakedaemon.KindMissing:
		switch {
		case c == fakedaemon.CallInspect:
			return "unequal"
		case c == fakedaemon.CallList && k == fakedaemon.KindOverride:
			return "" // a whole ID of another container can't be told; its inspection can
		}
		return "unanswered"
	case fakedaemon.KindWrongLabel, fakedaemon.KindNoLabel:
		if c == fakedaemon.CallInspect {
			return "unequal"
		}
		return "unanswered"
	}
	return ""
}

var errUnequal = errors.New("isolation differs")

// workload is one of each object that the driver's calls are about.
type workload struct {
	t    *testing.T
	d    *docker.Driver
	plan executor.Plan
	img  executor.Image
	rt   executor.Runtime
	id   evidence.ContainerID // created
	busy evidence.ContainerID // running
}

func newWorkload(t *testing.T, d *fakedaemon.Daemon) *workload {
	w := &workload{t: t, d: open(t, d)}
	ctx := patient(t)
	id, err := d.AddImage(fakedaemon.Image{Name: "subject:1"})
	require.NoError(t, err)
	prof, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(t, err)
	environment := evidence.Environment{Version: 1}
	w.rt, err = w.d.Probe(ctx)
	require.NoError(t, err)
	w.img, err = w.d.ImageInspect(ctx, id)
	require.NoError(t, err)
	w.plan = executor.Plan{
		Profile: prof, Environment: environment, Seccomp: w.rt.Seccomp, Source: source(t), Name: "planned",
		Recipe: evidence.Recipe{
			Version: 1, Profile: prof.Name, Image: imageID(t, id), Executable: "/subject", Args: []string{"print", "out", "err"}, Environment: environment.Digest(),
			Limits: evidence.Limits{Wall: time.Minute, Output: 1 << 16, Memory: 64 << 20, Scratch: 8 << 20, PIDs: 32, NanoCPUs: 500_000_000},
		},
	}
	_, err = rand.Read(w.plan.Request[:])
	require.NoError(t, err)
	_, err = rand.Read(w.plan.Handle[:])
	require.NoError(t, err)
	w.id = w.create(w.plan)
	busy := w.plan
	busy.Name, busy.Recipe.Args = "busy", []string{"sleep", "5m"}
	w.busy = w.create(busy)
	require.NoError(t, w.d.Start(ctx, w.busy))
	return w
}

func (w *workload) create(p executor.Plan) evidence.ContainerID {
	made, err := w.d.Create(patient(w.t), p)
	require.NoError(w.t, err)
	return made.ID
}

// do makes the driver's call to its end.
func (w *workload) do(c fakedaemon.Call) error {
	ctx := patient(w.t)
	switch c {
	case fakedaemon.CallVersion, fakedaemon.CallInfo:
		_, err := w.d.Probe(ctx)
		return err
	case fakedaemon.CallImageList:
		_, err := w.d.ImageList(ctx)
		return err
	case fakedaemon.CallImageInspect:
		_, err := w.d.ImageInspect(ctx, "subject:1")
		return err
	case fakedaemon.CallCreate:
		p := w.plan
		p.Name = "another"
		_, err := w.d.Create(ctx, p)
		return err
	case fakedaemon.CallInspect:
		in, err := w.d.Inspect(ctx, w.id)
		if err != nil {
			return err
		}
		iso := w.d.Compare(w.plan, w.img, w.rt, in)
		for _, f := range iso.Findings {
			if !f.Equal {
				return errUnequal
			}
		}
		if len(iso.Unknown) > 0 {
			return errUnequal
		}
		return nil
	case fakedaemon.CallList:
		_, err := w.d.FindOwned(ctx, w.plan.Request, w.plan.Handle)
		return err
	case fakedaemon.CallAttach:
		return w.attach(ctx)
	case fakedaemon.CallWait:
		exits, err := w.d.Wait(ctx, w.id)
		if err != nil {
			return err
		}
		if err := w.d.Start(ctx, w.id); err != nil {
			return err
		}
		return (<-exits).Err
	case fakedaemon.CallStart:
		return w.d.Start(ctx, w.id)
	case fakedaemon.CallKill:
		return w.d.Kill(ctx, w.busy)
	case fakedaemon.CallRemove:
		return w.d.Remove(ctx, w.busy)
	case fakedaemon.CallEvents:
		return w.follow(ctx)
	}
	return fmt.Errorf("the driver makes no call %s", c)
}

func (w *workload) attach(ctx context.Context) error {
	out, err := w.d.Attach(ctx, w.id)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := w.d.Start(ctx, w.id); err != nil {
		return err
	}
	for {
		if _, err := out.Next(); err != nil {
			return err
		}
	}
}

// follow runs the created container under a subscription until its end is told, or nothing more is.
func (w *workload) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.d.Events(ctx)
	if err != nil {
		return err
	}
	if err := w.d.Start(ctx, w.id); err != nil {
		return err
	}
	for e := range stream.C {
		if e.Actor == w.id.Hex() && e.Action == "die" {
			return nil
		}
	}
	return stream.Err()
}
