package drivertest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Env is one driver with what the suite needs around it.
type Env struct {
	Driver  executor.Driver
	Image   evidence.ImageID // holds the subject program
	Name    string           // of that image
	Subject string           // absolute path of the program in the image
	Source  string           // absolute path of a directory that UID 65532 may read
	Kernel  bool             // the host's /proc shows the containers' processes
}

// patience bounds each wait for something that must happen.
const patience = 30 * time.Second

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return c
}

func (e Env) plan(t *testing.T, args ...string) executor.Plan {
	prof, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(t, err)
	environment := evidence.Environment{Version: 1, Vars: []evidence.EnvVar{{Name: "GREETING", Value: "hello, world"}}}
	rt, err := e.Driver.Probe(ctx(t))
	require.NoError(t, err)
	p := executor.Plan{
		Profile:     prof,
		Environment: environment,
		Recipe: evidence.Recipe{
			Version:     1,
			Profile:     prof.Name,
			Image:       e.Image,
			Executable:  e.Subject,
			Args:        args,
			Environment: environment.Digest(),
			Limits: evidence.Limits{Wall: time.Minute, Output: 1 << 16, Memory: 64 << 20, Scratch: 8 << 20,
				PIDs: 32, NanoCPUs: 500_000_000},
		},
		Seccomp: rt.Seccomp,
		Source:  e.Source,
	}
	fill(t, p.Request[:])
	fill(t, p.Handle[:])
	p.Name = "baildock-drivertest-" + p.Handle.String()
	return p
}

func fill(t *testing.T, b []byte) {
	_, err := rand.Read(b)
	require.NoError(t, err)
}

// create makes a container that is gone when the test ends.
func (e Env) create(t *testing.T, p executor.Plan) evidence.ContainerID {
	t.Helper()
	made, err := e.Driver.Create(ctx(t), p)
	require.NoError(t, err)
	require.Empty(t, made.Warnings)
	t.Cleanup(func() { e.gone(t, made.ID) })
	return made.ID
}

// gone removes by ID and wants the absence confirmed.
func (e Env) gone(t *testing.T, id evidence.ContainerID) {
	c, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.Driver.Remove(c, id); !errors.Is(err, executor.ErrAbsent) {
		require.NoError(t, err)
	}
	_, err := e.Driver.Inspect(c, id)
	require.ErrorIs(t, err, executor.ErrAbsent)
}

// output reads both streams to their end.
func output(t *testing.T, o executor.Output) (stdout, stderr []byte) {
	t.Helper()
	for {
		chunk, err := o.Next()
		if errors.Is(err, io.EOF) {
			return stdout, stderr
		}
		require.NoError(t, err)
		if chunk.Stderr {
			stderr = append(stderr, chunk.Bytes...)
		} else {
			stdout = append(stdout, chunk.Bytes...)
		}
	}
}

func exit(t *testing.T, c <-chan executor.Exit) executor.Exit {
	t.Helper()
	select {
	case x, ok := <-c:
		require.True(t, ok, "the wait was closed without an exit")
		_, more := <-c
		require.False(t, more, "the wait delivered twice")
		return x
	case <-time.After(patience):
		require.Fail(t, "no exit")
		return executor.Exit{}
	}
}
