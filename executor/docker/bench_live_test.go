//go:build live

package docker_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// BenchmarkLivePath runs one hardened container through the driver and prints the mean of each
// step in ms: probe, create, inspect, compare, attach, wait registration, start, kernel look, exit,
// removal with its confirmation.
func BenchmarkLivePath(b *testing.B) {
	d := openLive(b)
	image, _ := loadSubject(b, d)
	source := liveSource(b)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	img, err := d.ImageInspect(ctx, image.String())
	require.NoError(b, err)
	prof, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(b, err)
	env := evidence.Environment{Version: 1}
	spent := map[string]time.Duration{}
	b.ResetTimer()
	for range b.N {
		last := time.Now()
		step := func(name string) {
			now := time.Now()
			spent[name] += now.Sub(last)
			last = now
		}
		rt, err := d.Probe(ctx)
		require.NoError(b, err)
		step("probe")
		p := executor.Plan{Profile: prof, Environment: env, Seccomp: rt.Seccomp, Source: source, Recipe: evidence.Recipe{
			Version: 1, Profile: prof.Name, Image: image, Executable: "/subject", Args: []string{"sleep", "5ms"}, Environment: env.Digest(),
			Limits: evidence.Limits{Wall: time.Minute, Output: 1 << 16, Memory: 64 << 20, Scratch: 8 << 20, PIDs: 32, NanoCPUs: 1_000_000_000},
		}}
		_, err = rand.Read(p.Handle[:])
		require.NoError(b, err)
		p.Name = "baildock-bench-" + p.Handle.String()
		last = time.Now()
		made, err := d.Create(ctx, p)
		require.NoError(b, err)
		step("create")
		in, err := d.Inspect(ctx, made.ID)
		require.NoError(b, err)
		step("inspect")
		iso := d.Compare(p, img, rt, in)
		require.Empty(b, iso.Unknown)
		step("compare")
		out, err := d.Attach(ctx, made.ID)
		require.NoError(b, err)
		step("attach")
		done, err := d.Wait(ctx, made.ID)
		require.NoError(b, err)
		step("wait-register")
		require.NoError(b, d.Start(ctx, made.ID))
		step("start")
		in, err = d.Inspect(ctx, made.ID)
		require.NoError(b, err)
		last = time.Now()
		d.Kernel(p, made.ID, in.PID)
		step("kernel")
		require.NoError(b, (<-done).Err)
		step("exit")
		require.NoError(b, out.Close())
		require.NoError(b, d.Remove(ctx, made.ID))
		_, err = d.Inspect(ctx, made.ID)
		require.ErrorIs(b, err, executor.ErrAbsent)
		step("remove")
	}
	b.StopTimer()
	for name, t := range spent {
		b.ReportMetric(float64(t.Microseconds())/1000/float64(b.N), name+"-ms")
	}
}
