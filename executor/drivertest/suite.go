package drivertest

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Run runs every case against a fresh Env. A missing daemon fails; nothing is skipped.
func Run(t *testing.T, open func(t *testing.T) Env) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Env)
	}{
		{"Probe", probe},
		{"Images", images},
		{"LoadRefused", loadRefused},
		{"CreateMissingImage", createMissingImage},
		{"Absent", absent},
		{"Isolation", isolation},
		{"Ownership", ownership},
		{"Labelled", labelled},
		{"AbsentNetwork", absentNetwork},
		{"Output", outputBothStreams},
		{"Flood", flood},
		{"ExitStatus", exitStatus},
		{"MissingExecutable", missingExecutable},
		{"StartForeign", startForeign},
		{"Kill", kill},
		{"RemoveRunning", removeRunning},
		{"Events", events},
		{"Cancelled", cancelled},
		{"Kernel", kernel},
		{"Contained", contained},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// req C2, C3: two looks at one daemon are equal.
func probe(t *testing.T, e Env) {
	a, err := e.Driver.Probe(ctx(t))
	require.NoError(t, err)
	require.Empty(t, a.Refusals)
	require.NotEmpty(t, a.Identity.Daemon.Engine)
	require.NotEmpty(t, a.Identity.Build.Runtime)
	require.Contains(t, []evidence.SeccompNaming{evidence.SeccompNamed, evidence.SeccompReported}, a.Seccomp)
	b, err := e.Driver.Probe(ctx(t))
	require.NoError(t, err)
	require.True(t, a.Identity.Equal(b.Identity))
	require.Equal(t, a, b)
}

func images(t *testing.T, e Env) {
	byID, err := e.Driver.ImageInspect(ctx(t), e.Image.String())
	require.NoError(t, err)
	require.Equal(t, e.Image, byID.ID)
	require.Contains(t, byID.Names, e.Name)
	byName, err := e.Driver.ImageInspect(ctx(t), e.Name)
	require.NoError(t, err)
	require.Equal(t, byID, byName)
	all, err := e.Driver.ImageList(ctx(t))
	require.NoError(t, err)
	require.Condition(t, func() bool {
		for _, i := range all {
			if i.ID == e.Image {
				return true
			}
		}
		return false
	})
	_, err = e.Driver.ImageInspect(ctx(t), "baildock-drivertest/never:made")
	require.ErrorIs(t, err, executor.ErrAbsent)
}

// An error inside a successful reply surfaces.
func loadRefused(t *testing.T, e Env) {
	_, err := e.Driver.ImageLoad(ctx(t), bytes.NewReader([]byte("not an archive")), "baildock-drivertest/broken:1")
	require.Error(t, err)
	_, err = e.Driver.ImageInspect(ctx(t), "baildock-drivertest/broken:1")
	require.ErrorIs(t, err, executor.ErrAbsent)
}

// A missing image is an answer about the image: never the absence of a container.
func createMissingImage(t *testing.T, e Env) {
	p := e.plan(t, "exit", "0")
	fill(t, p.Recipe.Image[:])
	_, err := e.Driver.Create(ctx(t), p)
	var f *executor.Fault
	require.ErrorAs(t, err, &f)
	require.True(t, f.Answered)
	require.Equal(t, 404, f.Status)
	require.NotErrorIs(t, err, executor.ErrAbsent)
}

// req E3: every call that names an unknown ID says that there is none.
func absent(t *testing.T, e Env) {
	var id evidence.ContainerID
	fill(t, id[:])
	_, err := e.Driver.Inspect(ctx(t), id)
	require.ErrorIs(t, err, executor.ErrAbsent)
	_, err = e.Driver.Attach(ctx(t), id)
	require.ErrorIs(t, err, executor.ErrAbsent)
	_, err = e.Driver.Wait(ctx(t), id)
	require.ErrorIs(t, err, executor.ErrAbsent)
	require.ErrorIs(t, e.Driver.Start(ctx(t), id), executor.ErrAbsent)
	require.ErrorIs(t, e.Driver.Kill(ctx(t), id), executor.ErrAbsent)
	require.ErrorIs(t, e.Driver.Remove(ctx(t), id), executor.ErrAbsent)
}

// req C5, C9: what was created equals the profile, before the start and after the exit.
func isolation(t *testing.T, e Env) {
	p := e.plan(t, "exit", "0")
	id := e.create(t, p)
	img, err := e.Driver.ImageInspect(ctx(t), e.Image.String())
	require.NoError(t, err)
	rt, err := e.Driver.Probe(ctx(t))
	require.NoError(t, err)
	in, err := e.Driver.Inspect(ctx(t), id)
	require.NoError(t, err)
	require.Equal(t, "created", in.Status)
	require.Zero(t, in.PID)
	require.Zero(t, in.StartedAt)
	requireHeld(t, p, e.Driver.Compare(p, img, rt, in))

	done, err := e.Driver.Wait(ctx(t), id)
	require.NoError(t, err)
	require.NoError(t, e.Driver.Start(ctx(t), id))
	exit(t, done)
	in, err = e.Driver.Inspect(ctx(t), id)
	require.NoError(t, err)
	require.Equal(t, "exited", in.Status)
	require.NotZero(t, in.StartedAt)
	requireHeld(t, p, e.Driver.Compare(p, img, rt, in))

	other := p
	other.Recipe.Limits.Memory *= 2
	require.NotEmpty(t, unequal(e.Driver.Compare(other, img, rt, in)))
}

func requireHeld(t *testing.T, p executor.Plan, iso executor.Isolation) {
	t.Helper()
	require.Empty(t, iso.Unknown)
	require.Empty(t, unequal(iso))
	require.Len(t, iso.Findings, len(p.Profile.Controls))
	for i, spec := range p.Profile.Controls {
		require.Equal(t, spec.ID, iso.Findings[i].ID)
	}
}

func unequal(iso executor.Isolation) []executor.Finding {
	var out []executor.Finding
	for _, f := range iso.Findings {
		if !f.Equal {
			out = append(out, f)
		}
	}
	return out
}

// req E2, E3: both labels find a container, either alone doesn't.
func ownership(t *testing.T, e Env) {
	p := e.plan(t, "exit", "0")
	found, err := e.Driver.FindOwned(ctx(t), p.Request, p.Handle)
	require.NoError(t, err)
	require.Empty(t, found)
	id := e.create(t, p)
	found, err = e.Driver.FindOwned(ctx(t), p.Request, p.Handle)
	require.NoError(t, err)
	require.Equal(t, []evidence.ContainerID{id}, found)
	in, err := e.Driver.Inspect(ctx(t), id)
	require.NoError(t, err)
	require.Equal(t, p.Request.String(), in.Request)
	require.Equal(t, p.Handle.String(), in.Handle)
	q := p
	fill(t, q.Handle[:])
	found, err = e.Driver.FindOwned(ctx(t), q.Request, q.Handle)
	require.NoError(t, err)
	require.Empty(t, found)
	q = p
	fill(t, q.Request[:])
	found, err = e.Driver.FindOwned(ctx(t), q.Request, q.Handle)
	require.NoError(t, err)
	require.Empty(t, found)

	_, err = e.Driver.Create(ctx(t), p)
	var f *executor.Fault
	require.ErrorAs(t, err, &f, "a name in use")
	require.Equal(t, 409, f.Status)
}

// req D1: attached before the start, both streams come whole and end.
func outputBothStreams(t *testing.T, e Env) {
	id := e.create(t, e.plan(t, "print", `to stdout\x00\xff`, `to stderr`))
	o, err := e.Driver.Attach(ctx(t), id)
	require.NoError(t, err)
	defer o.Close()
	require.NoError(t, e.Driver.Start(ctx(t), id))
	stdout, stderr := output(t, o)
	require.Equal(t, "to stdout\x00\xff", string(stdout))
	require.Equal(t, "to stderr", string(stderr))
}

func flood(t *testing.T, e Env) {
	id := e.create(t, e.plan(t, "flood", "3000000"))
	o, err := e.Driver.Attach(ctx(t), id)
	require.NoError(t, err)
	defer o.Close()
	require.NoError(t, e.Driver.Start(ctx(t), id))
	stdout, stderr := output(t, o)
	require.Len(t, stdout, 3000000)
	require.Empty(t, stderr)
}

func exitStatus(t *testing.T, e Env) {
	for _, code := range []string{"0", "1", "137"} {
		id := e.create(t, e.plan(t, "exit", code))
		done, err := e.Driver.Wait(ctx(t), id)
		require.NoError(t, err)
		require.NoError(t, e.Driver.Start(ctx(t), id))
		x := exit(t, done)
		require.NoError(t, x.Err)
		in, err := e.Driver.Inspect(ctx(t), id)
		require.NoError(t, err)
		require.Equal(t, in.ExitCode, x.Code)
		require.Equal(t, code, strconv.FormatInt(x.Code, 10))
		require.False(t, in.OOMKilled)
	}
}

// A start that fails is an answer, and the container stays to be removed.
func missingExecutable(t *testing.T, e Env) {
	p := e.plan(t)
	p.Recipe.Executable = "/no/such/program"
	id := e.create(t, p)
	var f *executor.Fault
	require.ErrorAs(t, e.Driver.Start(ctx(t), id), &f)
	require.True(t, f.Answered)
	in, err := e.Driver.Inspect(ctx(t), id)
	require.NoError(t, err)
	require.Equal(t, "created", in.Status)
}

// req C9: a container that runs already was started by somebody else, and our start says so; one
// that has exited starts again.
func startForeign(t *testing.T, e Env) {
	id := e.create(t, e.plan(t, "sleep", "5m"))
	done, err := e.Driver.Wait(ctx(t), id)
	require.NoError(t, err)
	require.NoError(t, e.Driver.Start(ctx(t), id))
	var f *executor.Fault
	require.ErrorAs(t, e.Driver.Start(ctx(t), id), &f)
	require.True(t, f.Answered)
	require.Equal(t, http.StatusNotModified, f.Status)
	require.ErrorContains(t, f, "somebody else started the container")
	require.NoError(t, e.Driver.Kill(ctx(t), id))
	exit(t, done)
	require.NoError(t, e.Driver.Start(ctx(t), id))
}

// req D5: a kill may be repeated, and may come before the start or after the exit.
func kill(t *testing.T, e Env) {
	id := e.create(t, e.plan(t, "sleep", "5m"))
	require.NoError(t, e.Driver.Kill(ctx(t), id))
	done, err := e.Driver.Wait(ctx(t), id)
	require.NoError(t, err)
	require.NoError(t, e.Driver.Start(ctx(t), id))
	require.NoError(t, e.Driver.Kill(ctx(t), id))
	require.EqualValues(t, 137, exit(t, done).Code)
	require.NoError(t, e.Driver.Kill(ctx(t), id))
	e.gone(t, id)
	require.ErrorIs(t, e.Driver.Kill(ctx(t), id), executor.ErrAbsent)
}

func removeRunning(t *testing.T, e Env) {
	id := e.create(t, e.plan(t, "sleep", "5m"))
	o, err := e.Driver.Attach(ctx(t), id)
	require.NoError(t, err)
	defer o.Close()
	require.NoError(t, e.Driver.Start(ctx(t), id))
	e.gone(t, id)
	stdout, stderr := output(t, o)
	require.Empty(t, stdout)
	require.Empty(t, stderr)
}

// req C9, F5: a subscription from before the create sees the container's whole life, its network
// included.
func events(t *testing.T, e Env) {
	c, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := e.Driver.Events(c)
	require.NoError(t, err)
	p := e.plan(t, "exit", "3")
	id := e.create(t, p)
	require.NoError(t, e.Driver.Start(ctx(t), id))
	seen := map[string]bool{}
	deadline := time.After(patience)
	for !seen["container die"] || !seen["network connect"] {
		select {
		case ev, ok := <-stream.C:
			require.True(t, ok, "the stream ended: %v", stream.Err())
			switch {
			case ev.Type == "container" && ev.Actor == id.Hex():
				seen["container "+ev.Action] = true
				if ev.Action == "die" {
					require.Equal(t, "3", ev.ExitCode)
				}
				require.NotZero(t, ev.TimeNano)
			case ev.Type == "network" && ev.Container == id.Hex():
				seen["network "+ev.Action] = true
				require.Equal(t, string(p.Profile.Network), ev.Network)
			}
		case <-deadline:
			require.Fail(t, "events missing", "%v", seen)
		}
	}
	require.True(t, seen["container create"] && seen["container start"], "%v", seen)
	cancel()
	for range stream.C {
	}
	require.NoError(t, stream.Err())
}

// A call under an ended context fails as unanswered and leaves the driver usable.
func cancelled(t *testing.T, e Env) {
	c, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := e.Driver.Probe(c)
	var f *executor.Fault
	require.ErrorAs(t, err, &f)
	require.False(t, f.Answered)
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Driver.Probe(ctx(t))
	require.NoError(t, err)
}

// req C4, C6: the kernel's own view of a live process, and of one that is gone.
func kernel(t *testing.T, e Env) {
	p := e.plan(t, "sleep", "5m")
	id := e.create(t, p)
	require.NoError(t, e.Driver.Start(ctx(t), id))
	in, err := e.Driver.Inspect(ctx(t), id)
	require.NoError(t, err)
	require.Positive(t, in.PID)
	sight := e.Driver.Kernel(p, id, in.PID)
	require.NotEmpty(t, sight.Findings)
	for _, f := range sight.Findings {
		if e.Kernel {
			require.Equal(t, evidence.Kernel, f.Kind, "%+v", f)
			require.True(t, f.Equal, "%+v", f)
		} else {
			require.Equal(t, evidence.Unavailable, f.Kind, "%+v", f)
		}
	}
	if e.Kernel {
		require.True(t, sight.OOMKnown)
		require.Zero(t, sight.OOMKills)
		other := p
		other.Recipe.Limits.PIDs++
		other.Recipe.Limits.Scratch *= 2
		wrong := 0
		for _, f := range e.Driver.Kernel(other, id, in.PID).Findings {
			if !f.Equal {
				wrong++
			}
		}
		require.Equal(t, 2, wrong)
	}
	var foreign evidence.ContainerID
	fill(t, foreign[:])
	for _, f := range e.Driver.Kernel(p, foreign, in.PID).Findings {
		require.Equal(t, evidence.Unavailable, f.Kind)
		require.False(t, f.Equal)
	}
	e.gone(t, id)
	for _, f := range e.Driver.Kernel(p, id, in.PID).Findings {
		require.Equal(t, evidence.Unavailable, f.Kind)
	}
}
