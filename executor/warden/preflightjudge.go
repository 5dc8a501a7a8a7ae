package warden

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Codes of what a trial shows.
const (
	CodeCreate      = "create_refused"
	CodeWarnings    = "create_warnings"
	CodeChanged     = "runtime_changed"
	CodeUndetected  = "undetected" // a prohibited option would have been let through
	CodeStart       = "start_failed"
	CodeExit        = "exit_nonzero"
	CodeOutput      = "unexpected_output"
	CodeReport      = "report_unreadable"
	CodeMismatched  = "mismatched"
	CodeUnbounded   = "unbounded"
	CodeUnwritable  = "unwritable"
	CodeUnreadable  = "unreadable"
	CodeUnconfirmed = "cleanup_unconfirmed"
)

// What an unequal control means for which check.
var (
	limitControls = []evidence.ControlID{
		evidence.CtlMemory, evidence.CtlSwap, evidence.CtlOOMKiller, evidence.CtlCPU, evidence.CtlPIDs, evidence.CtlBlockIO,
		evidence.CtlNofile, evidence.CtlCore,
	}
	filesystemControls = []evidence.ControlID{evidence.CtlReadOnlyRoot, evidence.CtlScratch, evidence.CtlWorkspace}
	prohibitedControls = []evidence.ControlID{
		evidence.CtlNetwork, evidence.CtlPorts, evidence.CtlNoMounts, evidence.CtlNoDevices, evidence.CtlCapabilities, evidence.CtlNoNewPrivs,
		evidence.CtlSeccomp, evidence.CtlUnprivileged, evidence.CtlLSM, evidence.CtlPIDSpace, evidence.CtlIPCSpace, evidence.CtlUTSSpace,
		evidence.CtlCgroupSpace, evidence.CtlUserSpace, evidence.CtlCgroup, evidence.CtlRuntime, evidence.CtlNoSysctls,
		evidence.CtlMaskedPaths, evidence.CtlNoExec,
	}
)

// judge adds a check for each thing a trial was to show. What it doesn't show is left to be not_reached.
func (t *trial) judge(f *executor.Findings) {
	created := t.judgeContainer(f)
	if c := t.driver.seen(); c != nil {
		t.judgeControls(f, CheckLimits, limitControls)
		t.judgeProhibited(f, c)
	}
	if created && t.judgeRun(f) {
		t.judgeReport(f)
	} else if c := t.driver.seen(); c != nil && len(unequal(c.out, filesystemControls)) > 0 {
		t.judgeControls(f, CheckFilesystem, filesystemControls)
	}
	t.judgeCleanup(f)
}

// judgeContainer says whether the container was made, is what was asked for, and was told to start.
func (t *trial) judgeContainer(f *executor.Findings) bool {
	unavailable := func(code, reason string) bool {
		f.Add(CheckContainer, evidence.PreflightUnavailable, code, reason)
		return false
	}
	before, ok := t.rec.observed(evidence.BeforeCreate)
	if !ok {
		return unavailable(CodeBroken, errorText(t.err))
	}
	if len(before.Refusals) > 0 {
		return unavailable(before.Refusals[0], t.rec.text(before.Detail))
	}
	if before.Identity == nil || f.Identity == nil || !before.Identity.Equal(*f.Identity) {
		return unavailable(CodeChanged, "the daemon that would run the probe is not the one that was looked at")
	}
	if _, taken := last[evidence.CustodyTaken](t.rec); !taken {
		return unavailable(CodeCustody, errorText(t.err))
	}
	if out, ok := last[evidence.CreateRuledOut](t.rec); ok {
		return unavailable(CodeCreate, strings.TrimSpace(t.rec.text(out.Detail)+" "+errorText(t.err)))
	}
	made, ok := last[evidence.ContainerCreated](t.rec)
	if !ok || made.Discovered {
		return unavailable(executor.OpenUnanswered, errorText(t.err))
	}
	if made.Warnings > 0 {
		f.Add(CheckContainer, evidence.PreflightUnsafe, CodeWarnings, t.rec.text(made.Detail))
		return false
	}
	iso, ok := last[evidence.IsolationObserved](t.rec)
	if !ok {
		return unavailable(CodeBroken, errorText(t.err))
	}
	if len(iso.Refusals) > 0 {
		result := evidence.PreflightUnavailable
		// What could not be read is unavailable; what was read and is wrong is unsafe.
		if c := t.driver.seen(); c != nil && !slices.ContainsFunc(c.out.Findings, func(x executor.Finding) bool { return x.Kind == evidence.Unavailable }) {
			result = evidence.PreflightUnsafe
		}
		f.Add(CheckContainer, result, iso.Refusals[0], t.named(iso))
		return false
	}
	if _, ordered := last[evidence.StartOrdered](t.rec); !ordered {
		again, _ := t.rec.observed(evidence.BeforeStart)
		return unavailable(CodeChanged, t.rec.text(again.Detail))
	}
	f.Add(CheckContainer, evidence.PreflightSupported, "", fmt.Sprintf("%d controls equal, inspected by ID", len(iso.Controls)))
	return true
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// named lists the controls and fields that an isolation refuses, without what was found there.
func (t *trial) named(iso evidence.IsolationObserved) string {
	var names []string
	for i, c := range iso.Controls {
		if !c.Equal && i < len(t.job.Profile.Controls) {
			names = append(names, t.job.Profile.Controls[i].Name+" is "+c.Reason)
		}
	}
	if c := t.driver.seen(); c != nil {
		names = append(names, c.out.Unknown...)
	}
	return strings.Join(names, ", ")
}

// unequal lists those of some controls that a comparison refuses. One that it leaves out is among them.
func unequal(iso executor.Isolation, of []evidence.ControlID) []executor.Finding {
	var out []executor.Finding
	for _, id := range of {
		i := slices.IndexFunc(iso.Findings, func(x executor.Finding) bool { return x.ID == id })
		if i < 0 {
			out = append(out, executor.Finding{ID: id, Kind: evidence.Unavailable, Reason: "missing"})
		} else if !iso.Findings[i].Equal {
			out = append(out, iso.Findings[i])
		}
	}
	return out
}

// judgeControls judges one check by some controls alone.
func (t *trial) judgeControls(f *executor.Findings, check string, of []evidence.ControlID) bool {
	bad := unequal(t.driver.seen().out, of)
	if len(bad) == 0 {
		f.Add(check, evidence.PreflightSupported, "", "")
		return true
	}
	result := evidence.PreflightUnsafe
	if bad[0].Kind == evidence.Unavailable {
		result = evidence.PreflightUnavailable
	}
	var names []string
	for _, b := range bad {
		for _, spec := range t.job.Profile.Controls {
			if spec.ID == b.ID {
				names = append(names, spec.Name+" is "+b.Reason)
			}
		}
	}
	f.Add(check, result, bad[0].Reason, strings.Join(names, ", "))
	return false
}

// judgeProhibited says whether the container is free of what hands over its host, and whether each such
// option would have been noticed on what this daemon shows of a container.
func (t *trial) judgeProhibited(f *executor.Findings, c *comparison) {
	if len(unequal(c.out, prohibitedControls)) > 0 {
		t.judgeControls(f, CheckProhibited, prohibitedControls)
		return
	}
	through, err := executor.Undetected(t.driver.Driver, c.plan, c.image, c.rt, c.in)
	switch {
	case err != nil:
		f.Add(CheckProhibited, evidence.PreflightUnavailable, CodeUnreadable, err.Error())
	case len(through) > 0:
		f.Add(CheckProhibited, evidence.PreflightUnsafe, CodeUndetected, strings.Join(through, ", "))
	default:
		f.Add(CheckProhibited, evidence.PreflightSupported, "", fmt.Sprintf("%d options absent, each of which would be refused", executor.Prohibitions()))
	}
}

// judgeRun says whether the probe ran to its end and nobody else had a hand in it.
func (t *trial) judgeRun(f *executor.Findings) bool {
	result, code, reason := t.ran()
	f.Add(CheckRun, result, code, reason)
	return result == evidence.PreflightSupported
}

func (t *trial) ran() (evidence.PreflightResult, string, string) {
	failed, _ := last[evidence.StartFailed](t.rec)
	stopped, wasStopped := last[evidence.StopOrdered](t.rec)
	exit, exited := last[evidence.ContainerExited](t.rec)
	out, captured := last[evidence.OutputCaptured](t.rec)
	start, _ := t.rec.observed(evidence.BeforeStart)
	after, looked := t.rec.observed(evidence.AfterExit)
	switch {
	case failed.Code != "":
		return evidence.PreflightUnavailable, CodeStart, t.rec.text(failed.Detail)
	case exited && len(exit.Interference) > 0:
		return evidence.PreflightUnsafe, executor.RefusedInterfere, strings.Join(exit.Interference, ", ")
	case wasStopped:
		return evidence.PreflightUnavailable, string(stopped.Cause), ""
	case !exited || !captured || !looked:
		return evidence.PreflightUnavailable, CodeBroken, errorText(t.err)
	case len(exit.Faults) > 0:
		return evidence.PreflightUnavailable, exit.Faults[0], t.rec.text(exit.Detail)
	case exit.OOMEvent == evidence.OOMUnknown:
		return evidence.PreflightUnavailable, executor.RefusedLost, "the events of the daemon do not tell how the container ended"
	case exit.Status != "exited" || exit.ExitCode != 0 || exit.OOMFlag || exit.OOMEvent != evidence.OOMNone || exit.OOMKills > 0 || exit.Unrecorded != "":
		return evidence.PreflightUnavailable, CodeExit, fmt.Sprintf("status %s, exit code %d", exit.Status, exit.ExitCode)
	case out.Incomplete || out.Stdout.Truncated || out.Stderr.Truncated:
		return evidence.PreflightUnavailable, out.Code, "the output of the probe is incomplete"
	case out.Stderr.Received > 0:
		return evidence.PreflightUnavailable, CodeOutput, t.rec.text(&out.Stderr.Bytes)
	case len(after.Refusals) > 0 || after.Identity == nil || start.Identity == nil || !after.Identity.Equal(*start.Identity):
		return evidence.PreflightUnavailable, CodeChanged, t.rec.text(after.Detail)
	case t.err != nil:
		return evidence.PreflightUnavailable, CodeBroken, t.err.Error()
	}
	return evidence.PreflightSupported, "", ""
}

// judgeReport judges what the probe said of itself.
func (t *trial) judgeReport(f *executor.Findings) {
	out, _ := last[evidence.OutputCaptured](t.rec)
	r, err := parseSelf(t.rec.kept(out.Stdout.Bytes))
	if err != nil {
		for _, check := range []string{CheckFilesystem, CheckIdentity, CheckMarker, CheckRoutes} {
			f.Add(check, evidence.PreflightUnavailable, CodeReport, err.Error())
		}
		return
	}
	t.judgeFilesystem(f, r)
	t.judgeIdentity(f, r)
	switch {
	case bytes.Equal(r.Marker, t.marker):
		f.Add(CheckMarker, evidence.PreflightSupported, "", "")
	case len(r.Marker) == 0:
		f.Add(CheckMarker, evidence.PreflightUnavailable, CodeUnreadable, "what is bound into a container can't be read there; does the daemon see this filesystem, and does its security module let containers in?")
	default:
		f.Add(CheckMarker, evidence.PreflightUnsafe, CodeMismatched, "another directory was bound than the one that was asked for")
	}
	bridged := t.job.Profile.Network == evidence.NetworkBridge
	if bridged == (len(r.Routes) > 0) && !slices.Contains(r.Failed, lookRoutes) {
		f.Add(CheckRoutes, evidence.PreflightSupported, "", fmt.Sprintf("network %s, %d interfaces with routes", t.job.Profile.Network, len(r.Routes)))
	} else {
		f.Add(CheckRoutes, evidence.PreflightUnsafe, CodeMismatched, fmt.Sprintf("network %s, and %d interfaces with routes", t.job.Profile.Network, len(r.Routes)))
	}
}

func parseSelf(b []byte) (SelfReport, error) {
	var r SelfReport
	if err := evidence.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("the report of the probe can't be read: %w", err)
	}
	if r.Version != 1 {
		return r, fmt.Errorf("the report of the probe has version %d", r.Version)
	}
	return r, nil
}

func (t *trial) judgeFilesystem(f *executor.Findings, r SelfReport) {
	if len(unequal(t.driver.seen().out, filesystemControls)) > 0 {
		t.judgeControls(f, CheckFilesystem, filesystemControls)
		return
	}
	unsafe := func(code, format string, args ...any) {
		f.Add(CheckFilesystem, evidence.PreflightUnsafe, code, fmt.Sprintf(format, args...))
	}
	asked, s := uint64(t.job.Recipe.Limits.Scratch), r.Scratch
	switch {
	case !r.Root.ReadOnly || r.Root.Create == 0:
		unsafe(CodeMismatched, "the root is not read-only as seen from within")
	case s.Create != 0:
		f.Add(CheckFilesystem, evidence.PreflightUnavailable, CodeUnwritable, fmt.Sprintf("a file in /tmp can't be written, error %d", s.Create))
	case s.Type != unix.TMPFS_MAGIC || s.Block == 0 || s.Size != (asked+s.Block-1)/s.Block*s.Block:
		unsafe(CodeUnbounded, "/tmp has %d bytes; a tmpfs of %d was asked for", s.Size, asked)
	case s.Beyond != uint(unix.ENOSPC):
		unsafe(CodeUnbounded, "/tmp gave more than its %d bytes, error %d", s.Size, s.Beyond)
	default:
		f.Add(CheckFilesystem, evidence.PreflightSupported, "", fmt.Sprintf("read-only root, /tmp of %d bytes and not one block more", s.Size))
	}
}

func (t *trial) judgeIdentity(f *executor.Findings, r SelfReport) {
	uid, gid := t.job.Profile.User(t.job.Recipe)
	four := func(n uint32) string { return strings.TrimSpace(strings.Repeat(fmt.Sprintf("%d ", n), 4)) }
	none := strings.Repeat("0", 16)
	want := map[string][]string{
		"Uid": {four(uid)}, "Gid": {four(gid)}, "NoNewPrivs": {"1"}, "Seccomp": {"2"},
		"Groups": {"", fmt.Sprint(gid)}, // an engine may list the primary group again
		"CapAmb": {none}, "CapBnd": {none}, "CapEff": {none}, "CapInh": {none}, "CapPrm": {none},
	}
	found := map[string]string{}
	for _, line := range r.Status {
		found[line.Name] = line.Value
	}
	var bad []string
	for _, name := range selfLines {
		if v, there := found[name]; !there || !slices.Contains(want[name], v) {
			bad = append(bad, fmt.Sprintf("%s is %q", name, v))
		}
	}
	if len(bad) > 0 {
		f.Add(CheckIdentity, evidence.PreflightUnsafe, CodeMismatched, strings.Join(bad, ", "))
		return
	}
	f.Add(CheckIdentity, evidence.PreflightSupported, "", fmt.Sprintf("%d:%d without capabilities, under a filter", uid, gid))
}

// judgeCleanup says whether the container is gone (req M4), and the directory it had.
func (t *trial) judgeCleanup(f *executor.Findings) {
	open, unconfirmed := last[evidence.CleanupUnconfirmed](t.rec)
	removed, gone := last[evidence.RemovalObserved](t.rec)
	_, never := last[evidence.CreateRuledOut](t.rec)
	_, taken := last[evidence.CustodyTaken](t.rec)
	switch {
	case unconfirmed && t.open > 0:
		f.Add(CheckCleanup, evidence.PreflightUnavailable, open.Code, "the container of the probe may still be there; baildock supervise removes it: "+t.rec.text(open.Detail))
	case t.open > 0 || taken && !gone && !never:
		f.Add(CheckCleanup, evidence.PreflightUnavailable, CodeUnconfirmed, "the container of the probe may still be there; baildock supervise removes it")
	case t.left != nil:
		f.Add(CheckCleanup, evidence.PreflightUnavailable, CodePrivate, t.left.Error())
	case gone:
		f.Add(CheckCleanup, evidence.PreflightSupported, "", string(removed.State)+", absence confirmed by ID")
	case never || !taken:
		f.Add(CheckCleanup, evidence.PreflightSupported, "", "nothing was created")
	}
}
