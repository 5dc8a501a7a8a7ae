package warden

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// req M2: a container that contains less than was asked for says so from within, whatever its inspection
// shows; each look of the probe has a check that fails for it.
func TestPreflightOfWhatTheProbeSees(t *testing.T) {
	line := func(name, value string) func(*SelfReport) {
		return func(r *SelfReport) {
			for i := range r.Status {
				if r.Status[i].Name == name {
					r.Status[i].Value = value
				}
			}
		}
	}
	full := "000001ffffffffff"
	for name, c := range map[string]struct {
		bend  func(*SelfReport)
		check string
		code  string
	}{
		"root":                  {line("Uid", "0 0 0 0"), CheckIdentity, CodeMismatched},
		"root in effect":        {line("Uid", "1000 0 1000 1000"), CheckIdentity, CodeMismatched},
		"root's group":          {line("Gid", "0 0 0 0"), CheckIdentity, CodeMismatched},
		"more groups":           {line("Groups", "0 1000"), CheckIdentity, CodeMismatched},
		"capabilities":          {line("CapEff", full), CheckIdentity, CodeMismatched},
		"bounding set":          {line("CapBnd", full), CheckIdentity, CodeMismatched},
		"ambient":               {line("CapAmb", full), CheckIdentity, CodeMismatched},
		"may gain privileges":   {line("NoNewPrivs", "0"), CheckIdentity, CodeMismatched},
		"no filter":             {line("Seccomp", "0"), CheckIdentity, CodeMismatched},
		"no status":             {func(r *SelfReport) { r.Status = []StatusField{} }, CheckIdentity, CodeMismatched},
		"another marker":        {func(r *SelfReport) { r.Marker[0] ^= 1 }, CheckMarker, CodeMismatched},
		"no marker":             {func(r *SelfReport) { r.Marker = nil }, CheckMarker, CodeUnreadable},
		"a longer marker":       {func(r *SelfReport) { r.Marker = append(r.Marker, 'x') }, CheckMarker, CodeMismatched},
		"writable root":         {func(r *SelfReport) { r.Root.ReadOnly = false }, CheckFilesystem, CodeMismatched},
		"a file in the root":    {func(r *SelfReport) { r.Root.Create = 0 }, CheckFilesystem, CodeMismatched},
		"scratch unwritable":    {func(r *SelfReport) { r.Scratch.Create = uint(unix.EACCES) }, CheckFilesystem, CodeUnwritable},
		"scratch on a disk":     {func(r *SelfReport) { r.Scratch.Type = unix.EXT4_SUPER_MAGIC }, CheckFilesystem, CodeUnbounded},
		"scratch too large":     {func(r *SelfReport) { r.Scratch.Size *= 2 }, CheckFilesystem, CodeUnbounded},
		"scratch too small":     {func(r *SelfReport) { r.Scratch.Size /= 2 }, CheckFilesystem, CodeUnbounded},
		"scratch without size":  {func(r *SelfReport) { r.Scratch.Block = 0 }, CheckFilesystem, CodeUnbounded},
		"scratch without bound": {func(r *SelfReport) { r.Scratch.Beyond = 0 }, CheckFilesystem, CodeUnbounded},
		"a route out":           {func(r *SelfReport) { r.Routes = []string{"eth0"} }, CheckRoutes, CodeMismatched},
		"routes not seen":       {func(r *SelfReport) { r.Failed = []string{lookRoutes} }, CheckRoutes, CodeMismatched},
		"a later version":       {func(r *SelfReport) { r.Version = 2 }, CheckMarker, CodeReport},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbation(t, fakedaemon.Options{Engine: fakedaemon.Engine27()})
			p.bend = c.bend
			f := p.examine(t)
			require.False(t, f.Go(), "%v", f.Lines())
			require.Equal(t, c.code, checkOf(t, f, c.check).Code, "%v", f.Lines())
			for _, other := range f.Checks {
				if c.code != CodeReport && other.Name != c.check {
					require.Equal(t, evidence.PreflightSupported, other.Result, "%v", f.Lines())
				}
			}
			p.nothingLeft(t)
		})
	}
}

// req M2, req M3: a probe that ends otherwise than it should, and an inspection that shows less than was
// asked for.
func TestPreflightOfOtherEnds(t *testing.T) {
	onInspect := func(pointer string, value any) *fakedaemon.Fault {
		return &fakedaemon.Fault{Call: fakedaemon.CallInspect, Times: fakedaemon.Always, Effect: fakedaemon.Override{Pointer: pointer, Value: value}}
	}
	for name, c := range map[string]struct {
		steps  []fakedaemon.Step
		fault  *fakedaemon.Fault
		set    func(*testing.T, *probation)
		check  string
		code   string
		starts int
	}{
		"exits with 1":         {steps: []fakedaemon.Step{fakedaemon.Exit(1)}, check: CheckRun, code: CodeExit, starts: 1},
		"runs out of memory":   {steps: []fakedaemon.Step{fakedaemon.OOM()}, check: CheckRun, code: CodeExit, starts: 1},
		"says something":       {steps: []fakedaemon.Step{fakedaemon.Stderr("at /home/joe")}, check: CheckRun, code: CodeOutput, starts: 1},
		"says too much":        {steps: []fakedaemon.Step{fakedaemon.Stdout(strings.Repeat("x", probeOutput))}, check: CheckRun, code: "output_limit", starts: 1},
		"says more":            {steps: []fakedaemon.Step{fakedaemon.Stdout("x")}, check: CheckMarker, code: CodeReport, starts: 1},
		"somebody's exec":      {steps: []fakedaemon.Step{fakedaemon.Suffer(fakedaemon.ActExec)}, check: CheckRun, code: executor.RefusedInterfere, starts: 1},
		"privileged":           {fault: onInspect("/HostConfig/Privileged", true), check: CheckProhibited, code: "mismatched"},
		"host's processes":     {fault: onInspect("/HostConfig/PidMode", "host"), check: CheckProhibited, code: "mismatched"},
		"a socket":             {fault: onInspect("/HostConfig/Binds", []string{"/var/run/docker.sock:/s"}), check: CheckContainer, code: executor.RefusedControls},
		"memory downgraded":    {fault: onInspect("/HostConfig/Memory", 0), check: CheckLimits, code: "zero"},
		"writable root":        {fault: onInspect("/HostConfig/ReadonlyRootfs", false), check: CheckFilesystem, code: "zero"},
		"a field unknown":      {fault: onInspect("/HostConfig/Novelty", true), check: CheckContainer, code: executor.RefusedUnknown},
		"no place for custody": {set: func(t *testing.T, p *probation) { p.look.Custody = nil }, check: CheckContainer, code: CodeCustody},
		"custody unwritable": {set: func(t *testing.T, p *probation) {
			require.NoError(t, os.WriteFile(filepath.Join(p.top, "custody"), nil, 0o600))
			t.Cleanup(func() { require.NoError(t, os.Remove(filepath.Join(p.top, "custody"))) })
		}, check: CheckContainer, code: CodeCustody},
		"no probe's image": {set: func(t *testing.T, p *probation) {
			p.look.Probe.Image = func(context.Context) (evidence.ImageID, error) { return evidence.ImageID{}, errors.New("at /home/joe") }
		}, check: CheckContainer, code: CodeNoProbe},
		"no place for the marker": {set: func(t *testing.T, p *probation) { p.look.Dir = "relative" }, check: CheckContainer, code: CodePrivate},
		"limits out of range":     {set: func(t *testing.T, p *probation) { p.job.Recipe.Limits.Memory = 1 }, check: CheckContainer, code: CodeBroken},
		"no request can be made":  {set: func(t *testing.T, p *probation) { p.look.Dir = filepath.Join(p.top, "place", "a,b") }, check: CheckContainer, code: CodeCreate},
		"image by another digest": {set: func(t *testing.T, p *probation) {
			p.job.Recipe.Contained.Reference = "tool@sha256:" + strings.Repeat("0", 64)
		}, check: executor.CheckImage, code: executor.CodePin},
		"image by another ID":            {set: func(t *testing.T, p *probation) { p.job.Recipe.Image = evidence.ImageID{1} }, check: executor.CheckImage, code: executor.RefusedNoImage},
		"network unknown":                {set: func(t *testing.T, p *probation) { p.job.Profile.Network = "host" }, check: executor.CheckNetwork, code: executor.CodeNetwork},
		"a comparison that sees nothing": {set: func(t *testing.T, p *probation) { p.look.Driver = blind{p.look.Driver.(*docker.Driver)} }, check: CheckProhibited, code: CodeUndetected, starts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbation(t, fakedaemon.Options{Engine: fakedaemon.Engine27()})
			p.steps = c.steps
			if c.fault != nil {
				p.daemon.Fault(*c.fault)
			}
			if c.set != nil {
				c.set(t, p)
			}
			f := p.examine(t)
			require.False(t, f.Go(), "%v", f.Lines())
			require.Equal(t, c.code, checkOf(t, f, c.check).Code, "%v", f.Lines())
			require.NotContains(t, strings.Join(f.Lines(), "\n"), "joe")
			require.Equal(t, c.starts, p.daemon.Count(fakedaemon.CallStart))
			p.daemon.ClearFaults()
			require.Empty(t, p.daemon.Containers())
		})
	}
}

// blind is a driver whose comparison finds everything equal.
type blind struct{ *docker.Driver }

func (blind) Compare(p executor.Plan, _ executor.Image, _ executor.Runtime, in executor.Inspection) executor.Isolation {
	var iso executor.Isolation
	for _, c := range p.Profile.Controls {
		iso.Findings = append(iso.Findings, executor.Finding{ID: c.ID, Kind: evidence.Observed, Equal: json.Valid(in.Raw)})
	}
	return iso
}

// req M4: a container that can't be removed is failed cleanup evidence, and stays under custody.
func TestPreflightThatCannotCleanUp(t *testing.T) {
	p := newProbation(t, fakedaemon.Options{Engine: fakedaemon.Engine27(), Faults: []fakedaemon.Fault{
		{Call: fakedaemon.CallRemove, Times: fakedaemon.Always, Effect: fakedaemon.Refuse{}},
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := p.look.Examine(ctx, p.job)
	require.Equal(t, evidence.PreflightUnavailable, f.Result())
	got := checkOf(t, f, CheckCleanup)
	require.Equal(t, executor.OpenPresent, got.Code)
	require.Contains(t, got.Reason, "baildock supervise removes it")
	require.Equal(t, evidence.PreflightSupported, checkOf(t, f, CheckRun).Result, "%v", f.Lines())
	require.Len(t, p.daemon.Containers(), 1)
	p.end(t, f)
	p.nothingLeft(t)
}

// What a report says is read or refused, whatever the bytes are.
func FuzzSelfReport(f *testing.F) {
	f.Add(evidence.Marshal(SelfReport{Version: 1, Status: []StatusField{{"Uid", "1 1 1 1"}}, Routes: []string{"eth0"}, Failed: []string{}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseSelf(b)
		if err == nil {
			require.Equal(t, b, evidence.Marshal(r))
		}
	})
}

// What a probe reports is what this process is: it runs outside of a container here.
func TestPreflightSelf(t *testing.T) {
	var out strings.Builder
	require.NoError(t, PreflightSelf(&out))
	r, err := parseSelf([]byte(out.String()))
	require.NoError(t, err)
	require.Len(t, r.Status, len(selfLines))
	require.Equal(t, []string{"marker"}, r.Failed)
	require.Zero(t, r.Scratch.Create)
	require.NotZero(t, r.Scratch.Size)
	require.NoFileExists(t, "/tmp/.baildock-preflight")
}
