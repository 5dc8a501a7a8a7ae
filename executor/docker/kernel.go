package docker

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// bridgeInterface is what the daemon names a container's interface on its bridge.
const bridgeInterface = "eth0"

// kernelControls are the controls of a table that the host's files can show, in ID order.
func kernelControls(p evidence.Profile) []evidence.ControlID {
	return slices.DeleteFunc(slices.Clone(shownByKernel), func(id evidence.ControlID) bool {
		return !slices.ContainsFunc(p.Controls, func(c evidence.ControlSpec) bool { return c.ID == id })
	})
}

var shownByKernel = []evidence.ControlID{
	evidence.CtlUser, evidence.CtlGroups, evidence.CtlNetwork, evidence.CtlReadOnlyRoot, evidence.CtlSource,
	evidence.CtlScratch, evidence.CtlNoMounts, evidence.CtlCapabilities, evidence.CtlNoNewPrivs, evidence.CtlSeccomp,
	evidence.CtlPIDSpace, evidence.CtlIPCSpace, evidence.CtlUTSSpace, evidence.CtlCgroupSpace, evidence.CtlMountSpace,
	evidence.CtlCgroup, evidence.CtlMemory, evidence.CtlSwap, evidence.CtlCPU, evidence.CtlPIDs, evidence.CtlNofile,
	evidence.CtlCore, evidence.CtlWorkspace,
}

// Kernel looks once. The process must stand in the container's cgroup; otherwise it is another
// one, and nothing it shows counts.
func (d *Driver) Kernel(p executor.Plan, id evidence.ContainerID, pid int) executor.KernelSight {
	if pid <= 0 {
		return blind(p.Profile, reasonGone, errors.New("the process had ended before it could be looked at"))
	}
	proc, err := openProcess(d.host, pid)
	if err != nil {
		reason := reasonMissing
		if isGone(err) {
			reason = reasonGone
		}
		return blind(p.Profile, reason, err)
	}
	defer proc.close()
	s := &sight{host: d.host, plan: p, proc: proc, found: map[evidence.ControlID]executor.Finding{}}
	text, err := proc.read("cgroup")
	if err != nil {
		return blind(p.Profile, proc.why(err), err)
	}
	if !proc.alive() {
		return blind(p.Profile, reasonGone, errors.New("the process has ended"))
	}
	if s.groups, err = parseCgroups(d.host, text); err != nil {
		return blind(p.Profile, reasonMalformed, err)
	}
	if !s.groups.belongs(id) {
		return blind(p.Profile, reasonAmbiguous, errors.New("the process is in no cgroup of the container"))
	}
	s.equal(evidence.CtlCgroup, "the container's own", "the container's own", true)
	s.credentials()
	s.spaces()
	s.network()
	s.mounts()
	s.limits()
	s.resources()

	var out executor.KernelSight
	for _, c := range kernelControls(p.Profile) {
		out.Findings = append(out.Findings, s.found[c])
	}
	if n, err := s.groups.oomKills(); err == nil {
		out.OOMKills, out.OOMKnown = n, true
	}
	return out
}

// blind makes every control unavailable.
func blind(p evidence.Profile, reason string, err error) executor.KernelSight {
	var out executor.KernelSight
	for _, c := range kernelControls(p) {
		out.Findings = append(out.Findings, executor.Finding{ID: c, Kind: evidence.Unavailable, Found: clip(err.Error(), maxFact), Reason: reason})
	}
	return out
}

// sight collects the findings of one look.
type sight struct {
	host   string
	plan   executor.Plan
	proc   *process
	groups *cgroups
	found  map[evidence.ControlID]executor.Finding
}

func (s *sight) equal(id evidence.ControlID, expected, found string, equal bool) {
	reason := ""
	if !equal {
		reason = reasonMismatched
	}
	s.set(id, expected, found, reason)
}

func (s *sight) set(id evidence.ControlID, expected, found, reason string) {
	s.found[id] = executor.Finding{ID: id, Kind: evidence.Kernel, Equal: reason == "", Expected: expected, Found: clip(found, maxMessage), Reason: reason}
}

func (s *sight) unavailable(err error, ids ...evidence.ControlID) {
	s.because(s.proc.why(err), err, ids...)
}

func (s *sight) because(reason string, err error, ids ...evidence.ControlID) {
	for _, id := range ids {
		s.found[id] = executor.Finding{ID: id, Kind: evidence.Unavailable, Found: clip(err.Error(), maxFact), Reason: reason}
	}
}

// credentials reads user, groups, capabilities, no-new-privileges and the seccomp mode. runc loads
// the filter as its last act before the command's own exec, after the start was answered: mode 0 is
// looked at again for a moment. A process can't drop a filter, so waiting hides nothing.
func (s *sight) credentials() {
	ids := []evidence.ControlID{evidence.CtlUser, evidence.CtlGroups, evidence.CtlCapabilities, evidence.CtlNoNewPrivs, evidence.CtlSeccomp}
	st, err := s.proc.status()
	for deadline := time.Now().Add(settleLimit); err == nil && st["Seccomp"] == "0" && time.Now().Before(deadline); {
		time.Sleep(settleStep)
		st, err = s.proc.status()
	}
	if err != nil {
		s.unavailable(err, ids...)
		return
	}
	if state := st["State"]; state == "" || state[0] == 'Z' || state[0] == 'X' {
		s.because(reasonGone, errors.New("the process has ended"), ids...)
		return
	}
	four := func(n uint32) string { return strings.TrimSpace(strings.Repeat(fmt.Sprintf("%d ", n), 4)) }
	uid, gid := s.plan.Profile.User(s.plan.Recipe)
	s.field(evidence.CtlUser, st, "uid "+four(uid)+" gid "+four(gid),
		func(v []string) string { return "uid " + v[0] + " gid " + v[1] }, "Uid", "Gid")
	group := strconv.FormatUint(uint64(gid), 10)
	if g, ok := st["Groups"]; ok && g == "" {
		s.equal(evidence.CtlGroups, group, "none", true)
	} else {
		s.field(evidence.CtlGroups, st, group, func(v []string) string { return v[0] }, "Groups")
	}
	none := strings.TrimSpace(strings.Repeat("0000000000000000 ", 5))
	s.field(evidence.CtlCapabilities, st, none, func(v []string) string { return strings.Join(v, " ") },
		"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
	s.field(evidence.CtlNoNewPrivs, st, "1", func(v []string) string { return v[0] }, "NoNewPrivs")
	s.field(evidence.CtlSeccomp, st, "2", func(v []string) string { return v[0] }, "Seccomp")
}

// field compares lines of the status file joined by a function.
func (s *sight) field(id evidence.ControlID, st map[string]string, expected string, join func([]string) string, names ...string) {
	var values []string
	for _, n := range names {
		v, ok := st[n]
		if !ok {
			s.because(reasonMissing, fmt.Errorf("the kernel reports no %s", n), id)
			return
		}
		values = append(values, v)
	}
	found := join(values)
	s.equal(id, expected, found, found == expected)
}

// spaces compares namespaces with this process's own.
func (s *sight) spaces() {
	own, err := os.OpenRoot(s.host + "/proc/self")
	if err != nil {
		s.because(reasonMissing, err, evidence.CtlPIDSpace, evidence.CtlIPCSpace, evidence.CtlUTSSpace, evidence.CtlCgroupSpace, evidence.CtlMountSpace)
		return
	}
	defer own.Close()
	for _, n := range []struct {
		name string
		id   evidence.ControlID
	}{
		{"pid", evidence.CtlPIDSpace}, {"ipc", evidence.CtlIPCSpace}, {"uts", evidence.CtlUTSSpace},
		{"cgroup", evidence.CtlCgroupSpace}, {"mnt", evidence.CtlMountSpace},
	} {
		s.space(own, n.name, n.id)
	}
}

// space reports whether the process has a namespace other than ours.
func (s *sight) space(own *os.Root, name string, id evidence.ControlID) bool {
	ours, err := own.Readlink("ns/" + name)
	if err != nil {
		s.because(reasonMissing, err, id)
		return false
	}
	theirs, err := s.proc.space(name)
	if err != nil {
		s.unavailable(err, id)
		return false
	}
	if !strings.HasPrefix(theirs, name+":[") {
		s.because(reasonMalformed, fmt.Errorf("namespace link %q", clip(theirs, maxFact)), id)
		return false
	}
	s.equal(id, "not "+ours, theirs, ours != theirs)
	return ours != theirs
}

// network wants an own namespace without any route but the loopback's and, on a bridge, that of its
// one interface.
func (s *sight) network() {
	own, err := os.OpenRoot(s.host + "/proc/self")
	if err != nil {
		s.because(reasonMissing, err, evidence.CtlNetwork)
		return
	}
	defer own.Close()
	if !s.space(own, "net", evidence.CtlNetwork) {
		return
	}
	v4, err := s.proc.read("net/route")
	if err != nil {
		s.unavailable(err, evidence.CtlNetwork)
		return
	}
	v6, err := s.proc.read("net/ipv6_route")
	if err != nil && !(isGone(err) && s.proc.alive()) { // a kernel without IPv6 has no such file
		s.unavailable(err, evidence.CtlNetwork)
		return
	}
	interfaces := []string{"lo"}
	expected := "own namespace, no route but loopback"
	if s.plan.Profile.Network == evidence.NetworkBridge {
		interfaces, expected = append(interfaces, bridgeInterface), "own namespace, no route but loopback and the bridge's"
	}
	foreign := []string{}
	for i, line := range slices.Collect(strings.Lines(v4)) {
		if f := strings.Fields(line); i > 0 && len(f) > 0 && !slices.Contains(interfaces, f[0]) {
			foreign = append(foreign, f[0])
		}
	}
	for line := range strings.Lines(v6) {
		if f := strings.Fields(line); len(f) > 0 && !slices.Contains(interfaces, f[len(f)-1]) {
			foreign = append(foreign, f[len(f)-1])
		}
	}
	found := expected
	if len(foreign) > 0 {
		found = "routes over " + strings.Join(foreign, " ")
	}
	s.equal(evidence.CtlNetwork, expected, found, len(foreign) == 0)
}

// limits reads the process's resource limits.
func (s *sight) limits() {
	text, err := s.proc.read("limits")
	if err != nil {
		s.unavailable(err, evidence.CtlNofile, evidence.CtlCore)
		return
	}
	for _, l := range []struct {
		id   evidence.ControlID
		line string
		want uint64
	}{{evidence.CtlNofile, "Max open files", s.plan.Profile.Nofile}, {evidence.CtlCore, "Max core file size", s.plan.Profile.Core}} {
		soft, hard, ok := limitOf(text, l.line)
		if !ok {
			s.because(reasonMalformed, fmt.Errorf("no line %q", l.line), l.id)
			continue
		}
		want := strconv.FormatUint(l.want, 10)
		s.equal(l.id, want+" "+want, soft+" "+hard, soft == want && hard == want)
	}
}

// resources reads the cgroup's limits as the kernel holds them.
func (s *sight) resources() {
	l := s.plan.Recipe.Limits
	memory := l.Memory / uint64(os.Getpagesize()) * uint64(os.Getpagesize()) // the kernel counts in pages
	s.bound(evidence.CtlMemory, "memory", "memory.limit_in_bytes", "memory.max", memory, memory)
	s.bound(evidence.CtlSwap, "memory", "memory.memsw.limit_in_bytes", "memory.swap.max", memory, 0)
	s.bound(evidence.CtlPIDs, "pids", "pids.max", "pids.max", l.PIDs, l.PIDs)
	s.cpu(l.NanoCPUs)
}

// bound compares one limit, whose meaning differs between cgroup versions.
func (s *sight) bound(id evidence.ControlID, controller, v1, v2 string, wantV1, wantV2 uint64) {
	text, isV2, err := s.groups.read(controller, v1, v2)
	if err != nil {
		s.because(s.cgroupReason(err), err, id)
		return
	}
	want := wantV1
	if isV2 {
		want = wantV2
	}
	expected := strconv.FormatUint(want, 10)
	if text == "max" {
		s.set(id, expected, text, reasonDowngraded)
		return
	}
	n, ok := new(big.Int).SetString(text, 10)
	switch {
	case !ok:
		s.because(reasonMalformed, fmt.Errorf("limit %q", clip(text, maxFact)), id)
	case n.Sign() < 0 || n.Cmp(new(big.Int).SetUint64(want)) > 0:
		s.set(id, expected, text, reasonDowngraded)
	default:
		s.equal(id, expected, text, text == expected)
	}
}

// cpu compares quota with period: Docker chooses the period.
func (s *sight) cpu(nano uint64) {
	text, isV2, err := s.groups.read("cpu", "cpu.cfs_quota_us", "cpu.max")
	if err == nil && !isV2 {
		var period string
		period, _, err = s.groups.read("cpu", "cpu.cfs_period_us", "cpu.max")
		text += " " + period
	}
	if err != nil {
		s.because(s.cgroupReason(err), err, evidence.CtlCPU)
		return
	}
	q, p, _ := strings.Cut(text, " ")
	period, err := strconv.ParseUint(p, 10, 63)
	if err != nil || period == 0 {
		s.because(reasonMalformed, fmt.Errorf("CPU limit %q", clip(text, maxFact)), evidence.CtlCPU)
		return
	}
	quota := new(big.Int).Mul(new(big.Int).SetUint64(nano), new(big.Int).SetUint64(period))
	quota.Div(quota, big.NewInt(1_000_000_000))
	expected := quota.String() + " " + p
	n, ok := new(big.Int).SetString(q, 10)
	switch {
	case q == "max", ok && (n.Sign() < 0 || n.Cmp(quota) > 0):
		s.set(evidence.CtlCPU, expected, text, reasonDowngraded)
	default:
		s.equal(evidence.CtlCPU, expected, text, text == expected)
	}
}

// cgroupReason tells a cgroup that ended with its process from one that can't be seen.
func (s *sight) cgroupReason(err error) string {
	if errors.Is(err, errNoCgroup) {
		return reasonMissing
	}
	return s.proc.why(err)
}
