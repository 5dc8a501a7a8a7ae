package warden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/fakedaemon"
)

const scratchAsked = 1 << 20

// probation is a daemon with a probe that reports what it sees of a fake container, and a preflight of it.
type probation struct {
	top    string
	daemon *fakedaemon.Daemon
	driver *docker.Driver
	look   Preflight
	job    executor.Job
	bend   func(*SelfReport) // of the next report
	steps  []fakedaemon.Step // beside the report
}

func newProbation(t testing.TB, opts fakedaemon.Options) *probation {
	p := &probation{top: t.TempDir()}
	opts.Program = p.program
	p.daemon = fakedaemon.Start(t, opts)
	var err error
	if opts.Memory {
		p.driver, err = docker.OpenVia(p.daemon.Socket, p.daemon.Dial)
	} else {
		p.driver, err = docker.Open(p.daemon.Socket)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.driver.Close()) })
	images := map[string]evidence.ImageID{"tool:1": {}, "probe:1": {}}
	for name := range images {
		text, err := p.daemon.AddImage(fakedaemon.Image{Name: name})
		require.NoError(t, err)
		var id evidence.ImageID
		require.NoError(t, id.UnmarshalText([]byte(text)))
		images[name] = id
	}
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	if uid == 0 {
		uid, gid = 1000, 1000
	}
	var nonce evidence.Nonce
	env, _, err := evidence.CommitEnv(&nonce, nil)
	require.NoError(t, err)
	p.job.Environment = env
	p.job.Recipe = evidence.Recipe{
		Version: 1, Profile: evidence.ProfileContained, Image: images["tool:1"], Executable: "/tool", Environment: env.Digest(), Nonce: &nonce,
		Limits:    evidence.Limits{Wall: time.Minute, Output: 64 << 10, Memory: 64 << 20, Scratch: scratchAsked, PIDs: 64, NanoCPUs: 1_000_000_000},
		Contained: &evidence.ContainedTerms{UID: uid, GID: gid, Network: evidence.NetworkNone, Platform: evidence.PlatformEngine, Writable: evidence.WritablePaths{"."}},
	}
	p.job.Profile, err = p.job.Recipe.Table()
	require.NoError(t, err)
	p.look = Preflight{
		Driver: p.driver, Watchdog: kennel{}, Custody: p.custody(t), Dir: filepath.Join(p.top, "place"),
		Probe: &Probe{
			Image:      func(context.Context) (evidence.ImageID, error) { return images["probe:1"], nil },
			Executable: "/baildock", Args: []string{"preflight-self"},
		},
	}
	return p
}

func (p *probation) custody(t testing.TB) *CustodyFiles {
	files, err := OpenCustodyFiles(filepath.Join(p.top, "custody"), nil)
	require.NoError(t, err)
	return files
}

// program is the probe's, and nobody else's: whatever else is started fails the test by its exit.
func (p *probation) program(inv fakedaemon.Invocation) (fakedaemon.Program, bool) {
	if !slices.Equal(inv.Argv, []string{"/baildock", "preflight-self"}) || !slices.Contains(inv.Names, "probe:1") {
		return fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Exit(99)}}, true
	}
	r := p.report()
	if p.bend != nil {
		p.bend(&r)
	}
	return fakedaemon.Program{Steps: append([]fakedaemon.Step{fakedaemon.Write(false, evidence.Marshal(r))}, p.steps...)}, true
}

// report is what a probe in a container that is as asked for says.
func (p *probation) report() SelfReport {
	uid, gid := p.job.Profile.User(p.job.Recipe)
	four := func(n uint32) string { return strings.Join(slices.Repeat([]string{fmt.Sprint(n)}, 4), " ") }
	none := strings.Repeat("0", 16)
	r := SelfReport{
		Version: 1, Routes: []string{}, Failed: []string{},
		Status: []StatusField{
			{"CapAmb", none}, {"CapBnd", none}, {"CapEff", none}, {"CapInh", none}, {"CapPrm", none},
			{"Gid", four(gid)}, {"Groups", ""}, {"NoNewPrivs", "1"}, {"Seccomp", "2"}, {"Uid", four(uid)},
		},
		Root:    Filesystem{Type: unix.OVERLAYFS_SUPER_MAGIC, Size: 1 << 30, Block: 4096, ReadOnly: true, Create: uint(unix.EROFS)},
		Scratch: Filesystem{Type: unix.TMPFS_MAGIC, Size: scratchAsked, Block: 4096, Beyond: uint(unix.ENOSPC)},
	}
	found, err := filepath.Glob(filepath.Join(p.top, "place", ".preflight-*", markerName))
	if err == nil && len(found) == 1 {
		r.Marker, err = os.ReadFile(found[0])
	}
	if err != nil || len(found) != 1 {
		r.Failed = append(r.Failed, "marker")
	}
	if p.job.Profile.Network == evidence.NetworkBridge {
		r.Routes = []string{"eth0"}
	}
	return r
}

func (p *probation) examine(t testing.TB) executor.Findings {
	f := p.look.Examine(t.Context(), p.job)
	require.Equal(t, allChecks, namesOf(f), "each check has its place")
	for _, c := range f.Checks {
		require.LessOrEqual(t, len(c.Reason), executor.MaxDiagnostic)
		require.NotContains(t, c.Reason, p.top)
		require.Equal(t, c.Result == evidence.PreflightSupported, c.Code == "", "%+v", c)
	}
	return f
}

// allChecks are the names of every check, however a preflight ends.
var allChecks = append(slices.Clone(executor.LookedAt), containerChecks...)

func namesOf(f executor.Findings) []string {
	var out []string
	for _, c := range f.Checks {
		out = append(out, c.Name)
	}
	slices.SortFunc(out, func(a, b string) int { return slices.Index(allChecks, a) - slices.Index(allChecks, b) })
	return out
}

func checkOf(t testing.TB, f executor.Findings, name string) executor.Check {
	i := slices.IndexFunc(f.Checks, func(c executor.Check) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s is missing of %v", name, f.Lines())
	return f.Checks[i]
}

// nothingLeft holds that neither the daemon nor the disk has anything of a preflight.
func (p *probation) nothingLeft(t testing.TB) {
	require.Empty(t, p.daemon.Containers())
	for _, dir := range []string{"place", "custody"} {
		entries, err := os.ReadDir(filepath.Join(p.top, dir))
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		require.Empty(t, entries, dir)
	}
}

// req M1, req M2, req M4: a good daemon passes every check; the one thing that ran is our own probe in
// our own image, created from the profile, inspected and removed by its ID.
func TestPreflightOfAGoodDaemon(t *testing.T) {
	for name, c := range map[string]struct {
		engine  fakedaemon.Engine
		network evidence.Network
		result  evidence.PreflightResult
		claim   evidence.Claim
	}{
		"full":            {fakedaemon.Engine27(), evidence.NetworkNone, evidence.PreflightSupported, evidence.ClaimFull},
		"bridge":          {fakedaemon.Engine27(), evidence.NetworkBridge, evidence.PreflightSupported, evidence.ClaimFull},
		"cgroup v1":       {fakedaemon.Engine20(), evidence.NetworkNone, evidence.PreflightExperimental, evidence.ClaimReduced},
		"API that is old": {fakedaemon.Engine20().With(fakedaemon.CgroupV2), evidence.NetworkNone, evidence.PreflightSupported, evidence.ClaimFull},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbation(t, fakedaemon.Options{Engine: c.engine})
			p.job.Recipe.Contained.Network = c.network
			var err error
			p.job.Profile, err = p.job.Recipe.Table()
			require.NoError(t, err)
			f := p.examine(t)
			require.Equal(t, c.result, f.Result(), "%v", f.Lines())
			require.Equal(t, c.claim, f.Claim())
			require.NotNil(t, f.Identity)
			creates := p.daemon.Requests(fakedaemon.CallCreate)
			require.Len(t, creates, 1)
			require.Contains(t, string(creates[0].Body), `"Entrypoint":["/baildock"],`)
			require.Contains(t, string(creates[0].Body), fmt.Sprintf(`"User":"%d:%d"`, p.job.Recipe.Contained.UID, p.job.Recipe.Contained.GID))
			for _, r := range p.daemon.Requests(fakedaemon.CallInspect, fakedaemon.CallStart, fakedaemon.CallRemove, fakedaemon.CallAttach, fakedaemon.CallWait) {
				require.Len(t, r.Object, 64, "%s by full ID", r.Call)
			}
			for _, call := range []fakedaemon.Call{fakedaemon.CallExecCreate, fakedaemon.CallImageLoad, fakedaemon.CallCopyTo} {
				require.Zero(t, p.daemon.Count(call), call)
			}
			p.nothingLeft(t)
			require.Equal(t, "create attach start die destroy", p.history())
		})
	}
}

// history is what happened to containers, by the daemon's own log, which no fault bends.
func (p *probation) history() string {
	var actions []string
	for _, e := range p.daemon.EventLog() {
		if e.Type == "container" {
			actions = append(actions, e.Action)
		}
	}
	return strings.Join(actions, " ")
}

// req M2, req M3: what a daemon says of itself decides before anything is created.
func TestPreflightOfOtherEngines(t *testing.T) {
	selinux := func(e *fakedaemon.Engine) { e.SecurityOptions = append(e.SecurityOptions, "name=selinux") }
	for name, c := range map[string]struct {
		change  func(*fakedaemon.Engine)
		desktop bool // the configuration names it
		check   string
		result  evidence.PreflightResult
		code    string
		sum     evidence.PreflightResult
		creates int
	}{
		"windows":             {fakedaemon.Windows, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedPlatform, evidence.PreflightUnsafe, 0},
		"podman":              {fakedaemon.Podman, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedPodman, evidence.PreflightUnsafe, 0},
		"another kernel":      {fakedaemon.OtherKernel, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedRemote, evidence.PreflightUnsafe, 0},
		"no memory limit":     {fakedaemon.NoMemoryLimit, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedMemory, evidence.PreflightUnsafe, 0},
		"no swap limit":       {fakedaemon.NoSwapLimit, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedSwap, evidence.PreflightUnsafe, 0},
		"no CPU limit":        {fakedaemon.NoCPULimit, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedCPU, evidence.PreflightUnsafe, 0},
		"no process limit":    {fakedaemon.NoPIDsLimit, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedPIDs, evidence.PreflightUnsafe, 0},
		"no runc":             {fakedaemon.NoRunc, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedRunc, evidence.PreflightUnsafe, 0},
		"no seccomp":          {fakedaemon.NoSeccomp, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedSeccomp, evidence.PreflightUnsafe, 0},
		"own seccomp":         {fakedaemon.CustomSeccomp, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedSeccomp, evidence.PreflightUnsafe, 0},
		"cgroups unknown":     {fakedaemon.CgroupUnknown, false, executor.CheckEngine, evidence.PreflightUnsafe, docker.RefusedCgroup, evidence.PreflightUnsafe, 0},
		"cgroup v1":           {fakedaemon.CgroupV1, false, executor.CheckPlatform, evidence.PreflightExperimental, "cgroup-v1", evidence.PreflightExperimental, 1},
		"rootless":            {fakedaemon.Rootless, false, executor.CheckPlatform, evidence.PreflightExperimental, "rootless", evidence.PreflightExperimental, 1},
		"userns-remap":        {fakedaemon.UsernsRemap, false, executor.CheckPlatform, evidence.PreflightExperimental, "userns-remap", evidence.PreflightExperimental, 1},
		"desktop unnamed":     {fakedaemon.Desktop, false, executor.CheckPlatform, evidence.PreflightUnsafe, executor.CodePlatform, evidence.PreflightUnsafe, 0},
		"desktop named":       {fakedaemon.Desktop, true, executor.CheckPlatform, evidence.PreflightExperimental, "docker-desktop", evidence.PreflightExperimental, 1},
		"SELinux":             {selinux, false, executor.CheckPlatform, evidence.PreflightSupported, "", evidence.PreflightSupported, 1},
		"nothing out of line": {func(*fakedaemon.Engine) {}, false, executor.CheckPlatform, evidence.PreflightSupported, "", evidence.PreflightSupported, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbation(t, fakedaemon.Options{Engine: fakedaemon.Engine27().With(c.change)})
			if c.desktop {
				p.job.Recipe.Contained.Platform = evidence.PlatformDesktop
			}
			f := p.examine(t)
			got := checkOf(t, f, c.check)
			require.Equal(t, c.result, got.Result, "%v", f.Lines())
			require.Equal(t, c.code, got.Code)
			require.Equal(t, c.sum, f.Result(), "%v", f.Lines())
			require.Equal(t, name == "SELinux", strings.Contains(got.Reason, "SELinux"))
			require.Equal(t, c.creates, p.daemon.Count(fakedaemon.CallCreate))
			if c.creates == 0 {
				require.Equal(t, evidence.ClaimNone, f.Claim())
				require.Equal(t, CodeNotReached, checkOf(t, f, CheckCleanup).Code)
			}
			p.nothingLeft(t)
		})
	}
}

// end takes the faults back and lets a supervisor end what is left.
func (p *probation) end(t testing.TB, f executor.Findings) {
	p.daemon.ClearFaults()
	p.daemon.CompleteLate()
	p.daemon.Restore()
	if checkOf(t, f, CheckCleanup).Code != CodeNotReached && checkOf(t, f, CheckCleanup).Result == evidence.PreflightSupported {
		p.nothingLeft(t)
		return
	}
	w := New(Config{Home: Home{Dir: filepath.Join(p.top, "home")}, Driver: p.driver})
	met, err := w.Supervise(context.Background(), Pass{Custody: p.custody(t)}, nil)
	require.NoError(t, err)
	require.Empty(t, p.daemon.Containers(), "%v: %v", f.Lines(), met)
	for _, m := range met { // what a late create may still make stays under custody (req E5)
		require.True(t, m.Action == ActionCleared || m.Action == ActionUnconfirmed && strings.Contains(m.Detail, executor.OpenUnanswered), "%+v", m)
	}
	left, err := os.ReadDir(filepath.Join(p.top, "place"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	if len(left) > 0 { // the next preflight removes what a container might have used
		require.NoError(t, sweepPrivate(filepath.Join(p.top, "place")))
		left, err = os.ReadDir(filepath.Join(p.top, "place"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
