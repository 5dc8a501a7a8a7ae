package docker

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// hostTree is a host's /proc and cgroup files: path → content; a content of "-> x" is a link.
type hostTree map[string]string

func (f hostTree) write(t *testing.T) *Driver {
	root := t.TempDir()
	for name, text := range f {
		p := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			require.NoError(t, os.Symlink(target, p))
			continue
		}
		require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
	}
	return &Driver{host: root}
}

const fixtureStatus = `Name:	subject
State:	S (sleeping)
Uid:	65532	65532	65532	65532
Gid:	65532	65532	65532	65532
Groups:	65532 
NSpid:	42	1
CapInh:	0000000000000000
CapPrm:	0000000000000000
CapEff:	0000000000000000
CapBnd:	0000000000000000
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2
Seccomp_filters:	1
`

const fixtureLimits = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max core file size        0                    0                    bytes     
Max open files            128                  128                  files     
`

const fixtureMounts = `69 45 0:39 / / ro,noatime master:2 - overlay overlay rw,lowerdir=/a:/b
70 69 0:41 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
71 69 0:42 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
72 71 0:43 / /dev/pts rw,nosuid,noexec,relatime - devpts devpts rw,gid=5,mode=620,ptmxmode=666
73 69 0:44 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
74 73 0:45 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
84 71 0:40 / /dev/mqueue rw,nosuid,nodev,noexec,relatime - mqueue mqueue rw
85 69 254:0 /srv/with\040space /source ro,relatime - ext4 /dev/vda rw
86 69 0:46 / /scratch rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=65536k,mode=700,uid=65532,gid=65532
87 69 254:0 /c/resolv.conf /etc/resolv.conf ro,relatime - ext4 /dev/vda rw
88 69 254:0 /c/hostname /etc/hostname ro,relatime - ext4 /dev/vda rw
89 69 254:0 /c/hosts /etc/hosts ro,relatime - ext4 /dev/vda rw
46 70 0:41 /bus /proc/bus ro,nosuid,nodev,noexec,relatime - proc proc rw
50 70 0:47 / /proc/acpi ro,relatime - tmpfs tmpfs ro
51 70 0:42 /null /proc/keys rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
53 73 0:48 / /sys/firmware ro,relatime - tmpfs tmpfs ro
`

const fixtureRoute = "Iface\tDestination\tGateway \tFlags\n"
const fixtureRoute6 = "00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo\n"

// common are the files that both cgroup versions share.
func common(t *testing.T) hostTree {
	f := hostTree{
		"proc/42/stat":           "42 (a) b) S 1 42 42 0",
		"proc/42/status":         fixtureStatus,
		"proc/42/limits":         fixtureLimits,
		"proc/42/mountinfo":      fixtureMounts,
		"proc/42/net/route":      fixtureRoute,
		"proc/42/net/ipv6_route": fixtureRoute6,
	}
	for i, n := range []string{"pid", "ipc", "uts", "cgroup", "mnt", "net"} {
		f["proc/42/ns/"+n] = "-> " + n + ":[402653200" + string(rune('0'+i)) + "]"
		f["proc/self/ns/"+n] = "-> " + n + ":[402653100" + string(rune('0'+i)) + "]"
	}
	return f
}

func fixtureV2(t *testing.T) hostTree {
	f := common(t)
	id := goldenID(t).Hex()
	f["proc/42/cgroup"] = "0::/system.slice/docker-" + id + ".scope\n"
	f["proc/self/mountinfo"] = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	dir := "sys/fs/cgroup/system.slice/docker-" + id + ".scope/"
	f[dir+"memory.max"] = "268435456\n"
	f[dir+"memory.swap.max"] = "0\n"
	f[dir+"memory.events"] = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"
	f[dir+"cpu.max"] = "150000 100000\n"
	f[dir+"pids.max"] = "64\n"
	return f
}

func fixtureV1(t *testing.T) hostTree {
	f := common(t)
	id := goldenID(t).Hex()
	for i, c := range []string{"memory", "cpu,cpuacct", "pids"} {
		f["proc/42/cgroup"] += string(rune('1'+i)) + ":" + c + ":/docker/" + id + "\n"
		f["proc/self/mountinfo"] += "30 25 0:26 / /sys/fs/cgroup/" + c + " rw - cgroup cgroup rw," + c + "\n"
	}
	f["proc/42/cgroup"] += "0::/docker/" + id + "\n"
	dir := "sys/fs/cgroup/memory/docker/" + id + "/"
	f[dir+"memory.limit_in_bytes"] = "268435456\n"
	f[dir+"memory.memsw.limit_in_bytes"] = "268435456\n"
	f[dir+"memory.oom_control"] = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"
	f["sys/fs/cgroup/cpu,cpuacct/docker/"+id+"/cpu.cfs_quota_us"] = "150000\n"
	f["sys/fs/cgroup/cpu,cpuacct/docker/"+id+"/cpu.cfs_period_us"] = "100000\n"
	f["sys/fs/cgroup/pids/docker/"+id+"/pids.max"] = "64\n"
	return f
}

func look(t *testing.T, f hostTree) executor.KernelSight {
	return f.write(t).Kernel(goldenPlan(evidence.SeccompReported), goldenID(t), 42)
}

// req C4, req C6: on both cgroup versions each control is read from the kernel and equal.
func TestKernelHolds(t *testing.T) {
	for name, f := range map[string]hostTree{"v1": fixtureV1(t), "v2": fixtureV2(t)} {
		t.Run(name, func(t *testing.T) {
			s := look(t, f)
			shown := kernelControls(goldenPlan(evidence.SeccompReported).Profile)
			require.Len(t, s.Findings, len(shown))
			for i, x := range s.Findings {
				require.Equal(t, shown[i], x.ID)
				require.Equal(t, evidence.Kernel, x.Kind, "%+v", x)
				require.True(t, x.Equal, "%+v", x)
			}
			require.True(t, s.OOMKnown)
			require.EqualValues(t, 2, s.OOMKills)
		})
	}
}

// req C5, req C6: one changed file changes exactly one control, with its reason; one that can't be read
// makes it unavailable, never zero.
func TestKernelFindings(t *testing.T) {
	id := goldenID(t).Hex()
	v1 := func(rel string) string { return "sys/fs/cgroup/" + rel }
	mem, cpu, pids := v1("memory/docker/"+id+"/"), v1("cpu,cpuacct/docker/"+id+"/"), v1("pids/docker/"+id+"/")
	v2 := v1("system.slice/docker-" + id + ".scope/")
	status, mounts := "proc/42/status", "proc/42/mountinfo"
	for name, c := range map[string]struct {
		file, old, new string // old "" replaces the whole file; new "" as well removes it
		id             evidence.ControlID
		kind           evidence.EvidenceKind
		reason         string
		v2             bool
	}{
		"root":                    {status, "Uid:\t65532", "Uid:\t0", evidence.CtlUser, evidence.Kernel, reasonMismatched, false},
		"group":                   {status, "Gid:\t65532", "Gid:\t0", evidence.CtlUser, evidence.Kernel, reasonMismatched, false},
		"extra group":             {status, "Groups:\t65532", "Groups:\t65532 999", evidence.CtlGroups, evidence.Kernel, reasonMismatched, false},
		"capability":              {status, "CapEff:\t0", "CapEff:\t1", evidence.CtlCapabilities, evidence.Kernel, reasonMismatched, false},
		"bounding set":            {status, "CapBnd:\t000000000000000", "CapBnd:\t00000000a80425f", evidence.CtlCapabilities, evidence.Kernel, reasonMismatched, false},
		"privileges":              {status, "NoNewPrivs:\t1", "NoNewPrivs:\t0", evidence.CtlNoNewPrivs, evidence.Kernel, reasonMismatched, false},
		"no filter":               {status, "Seccomp:\t2", "Seccomp:\t0", evidence.CtlSeccomp, evidence.Kernel, reasonMismatched, false},
		"strict mode":             {status, "Seccomp:\t2", "Seccomp:\t1", evidence.CtlSeccomp, evidence.Kernel, reasonMismatched, false},
		"kernel without seccomp":  {status, "Seccomp:\t2\n", "", evidence.CtlSeccomp, evidence.Unavailable, reasonMissing, false},
		"pid namespace":           {"proc/42/ns/pid", "", "-> pid:[4026531000]", evidence.CtlPIDSpace, evidence.Kernel, reasonMismatched, false},
		"ipc namespace":           {"proc/42/ns/ipc", "", "-> ipc:[4026531001]", evidence.CtlIPCSpace, evidence.Kernel, reasonMismatched, false},
		"uts namespace":           {"proc/42/ns/uts", "", "-> uts:[4026531002]", evidence.CtlUTSSpace, evidence.Kernel, reasonMismatched, false},
		"cgroup namespace":        {"proc/42/ns/cgroup", "", "-> cgroup:[4026531003]", evidence.CtlCgroupSpace, evidence.Kernel, reasonMismatched, false},
		"mount namespace":         {"proc/42/ns/mnt", "", "-> mnt:[4026531004]", evidence.CtlMountSpace, evidence.Kernel, reasonMismatched, false},
		"host network":            {"proc/42/ns/net", "", "-> net:[4026531005]", evidence.CtlNetwork, evidence.Kernel, reasonMismatched, false},
		"odd link":                {"proc/42/ns/net", "", "-> elsewhere", evidence.CtlNetwork, evidence.Unavailable, reasonMalformed, false},
		"link unreadable":         {"proc/42/ns/uts", "", "", evidence.CtlUTSSpace, evidence.Unavailable, reasonMissing, false},
		"own link unreadable":     {"proc/self/ns/uts", "", "", evidence.CtlUTSSpace, evidence.Unavailable, reasonMissing, false},
		"route":                   {"proc/42/net/route", "Flags\n", "Flags\neth0\t00000000\t010011AC\t0003\n", evidence.CtlNetwork, evidence.Kernel, reasonMismatched, false},
		"IPv6 route":              {"proc/42/net/ipv6_route", "       lo\n", "     eth0\n", evidence.CtlNetwork, evidence.Kernel, reasonMismatched, false},
		"writable root":           {mounts, "/ / ro,", "/ / rw,", evidence.CtlReadOnlyRoot, evidence.Kernel, reasonMismatched, false},
		"writable source":         {mounts, "/source ro,", "/source rw,", evidence.CtlSource, evidence.Kernel, reasonMismatched, false},
		"source covered":          {mounts, "46 70", "90 69 0:99 / /source rw - tmpfs tmpfs rw\n46 70", evidence.CtlSource, evidence.Kernel, reasonMismatched, false},
		"scratch may have suid":   {mounts, "/scratch rw,nosuid,", "/scratch rw,", evidence.CtlScratch, evidence.Kernel, reasonMismatched, false},
		"scratch of another size": {mounts, "size=65536k,mode=700", "size=65540k,mode=700", evidence.CtlScratch, evidence.Kernel, reasonMismatched, false},
		"scratch unbounded":       {mounts, "rw,size=65536k,mode=700", "rw,mode=700", evidence.CtlScratch, evidence.Kernel, reasonMismatched, false},
		"no scratch":              {mounts, " /scratch ", " /sys/x ", evidence.CtlScratch, evidence.Kernel, reasonMismatched, false},
		"foreign mount":           {mounts, "46 70", "90 69 0:99 / /data rw - ext4 /dev/vdb rw\n46 70", evidence.CtlNoMounts, evidence.Kernel, reasonMismatched, false},
		"shared memory":           {mounts, "46 70", "90 71 0:99 / /dev/shm rw - tmpfs shm rw\n46 70", evidence.CtlNoMounts, evidence.Kernel, reasonMismatched, false},
		"docker socket":           {mounts, "46 70", "90 69 0:99 /docker.sock /run/docker.sock rw - tmpfs tmpfs rw\n46 70", evidence.CtlNoMounts, evidence.Kernel, reasonMismatched, false},
		"writable hosts":          {mounts, "/etc/hosts ro", "/etc/hosts rw", evidence.CtlNoMounts, evidence.Kernel, reasonMismatched, false},
		"writable cgroups":        {mounts, "/sys/fs/cgroup ro", "/sys/fs/cgroup rw", evidence.CtlNoMounts, evidence.Kernel, reasonMismatched, false},
		"writable mask":           {mounts, "/proc/acpi ro,relatime", "/proc/acpi rw,relatime", evidence.CtlNoMounts, evidence.Kernel, reasonMismatched, false},
		"files":                   {"proc/42/limits", "Max open files            128                  128 ", "Max open files            128                  1024 ", evidence.CtlNofile, evidence.Kernel, reasonMismatched, false},
		"core":                    {"proc/42/limits", "size        0  ", "size        unlimited  ", evidence.CtlCore, evidence.Kernel, reasonMismatched, false},
		"core line gone":          {"proc/42/limits", "Max core", "Max cour", evidence.CtlCore, evidence.Unavailable, reasonMalformed, false},
		"v1 memory unlimited":     {mem + "memory.limit_in_bytes", "", "9223372036854771712\n", evidence.CtlMemory, evidence.Kernel, reasonDowngraded, false},
		"v1 memory lower":         {mem + "memory.limit_in_bytes", "", "4096\n", evidence.CtlMemory, evidence.Kernel, reasonMismatched, false},
		"v1 memory garbage":       {mem + "memory.limit_in_bytes", "", "lots\n", evidence.CtlMemory, evidence.Unavailable, reasonMalformed, false},
		"v1 memory unreadable":    {mem + "memory.limit_in_bytes", "", "", evidence.CtlMemory, evidence.Unavailable, reasonMissing, false},
		"v1 swap unaccounted":     {mem + "memory.memsw.limit_in_bytes", "", "", evidence.CtlSwap, evidence.Unavailable, reasonMissing, false},
		"v1 swap":                 {mem + "memory.memsw.limit_in_bytes", "", "536870912\n", evidence.CtlSwap, evidence.Kernel, reasonDowngraded, false},
		"v1 quota off":            {cpu + "cpu.cfs_quota_us", "", "-1\n", evidence.CtlCPU, evidence.Kernel, reasonDowngraded, false},
		"v1 quota higher":         {cpu + "cpu.cfs_quota_us", "", "150001\n", evidence.CtlCPU, evidence.Kernel, reasonDowngraded, false},
		"v1 no period":            {cpu + "cpu.cfs_period_us", "", "0\n", evidence.CtlCPU, evidence.Unavailable, reasonMalformed, false},
		"v1 pids":                 {pids + "pids.max", "", "max\n", evidence.CtlPIDs, evidence.Kernel, reasonDowngraded, false},
		"v2 memory":               {v2 + "memory.max", "", "max\n", evidence.CtlMemory, evidence.Kernel, reasonDowngraded, true},
		"v2 swap":                 {v2 + "memory.swap.max", "", "max\n", evidence.CtlSwap, evidence.Kernel, reasonDowngraded, true},
		"v2 some swap":            {v2 + "memory.swap.max", "", "4096\n", evidence.CtlSwap, evidence.Kernel, reasonDowngraded, true},
		"v2 cpu":                  {v2 + "cpu.max", "", "max 100000\n", evidence.CtlCPU, evidence.Kernel, reasonDowngraded, true},
		"v2 cpu garbage":          {v2 + "cpu.max", "", "150000\n", evidence.CtlCPU, evidence.Unavailable, reasonMalformed, true},
		"v2 pids":                 {v2 + "pids.max", "", "63\n", evidence.CtlPIDs, evidence.Kernel, reasonMismatched, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixtureV1(t)
			if c.v2 {
				f = fixtureV2(t)
			}
			switch {
			case c.old != "":
				changed := strings.Replace(f[c.file], c.old, c.new, 1)
				require.NotEqual(t, f[c.file], changed)
				f[c.file] = changed
			case c.new == "":
				delete(f, c.file)
			default:
				require.Contains(t, f, c.file)
				f[c.file] = c.new
			}
			seen := false
			for _, x := range look(t, f).Findings {
				if x.ID != c.id {
					if !(x.ID == evidence.CtlNoMounts && strings.HasPrefix(name, "no scratch")) {
						require.True(t, x.Equal, "%+v", x)
					}
					continue
				}
				seen = true
				require.False(t, x.Equal)
				require.Equal(t, c.kind, x.Kind, "%+v", x)
				require.Equal(t, c.reason, x.Reason, "%+v", x)
			}
			require.True(t, seen)
		})
	}
}

// req C6: a process that is gone, a zombie, or another one shows nothing.
func TestKernelBlind(t *testing.T) {
	id := goldenID(t).Hex()
	for name, c := range map[string]struct {
		change func(hostTree)
		reason string
	}{
		"gone": {func(f hostTree) {
			maps.DeleteFunc(f, func(k, _ string) bool { return strings.HasPrefix(k, "proc/42/") })
		}, reasonGone},
		"gone before read": {func(f hostTree) { delete(f, "proc/42/cgroup"); delete(f, "proc/42/stat") }, reasonGone},
		"zombie":           {func(f hostTree) { f["proc/42/stat"] = "42 (x) Z 1 42" }, reasonGone},
		"other container": {func(f hostTree) {
			f["proc/42/cgroup"] = strings.ReplaceAll(f["proc/42/cgroup"], id, strings.Repeat("0", 64))
		}, reasonAmbiguous},
		"no container":  {func(f hostTree) { f["proc/42/cgroup"] = "0::/user.slice\n" }, reasonAmbiguous},
		"only named so": {func(f hostTree) { f["proc/42/cgroup"] = "0::/docker/x-" + id + "\n" }, reasonAmbiguous},
		"one of three": {func(f hostTree) {
			f["proc/42/cgroup"] = "1:memory:/docker/" + id + "\n2:cpu:/\n3:pids:/docker/" + id + "\n"
		}, reasonAmbiguous},
		"malformed cgroup":  {func(f hostTree) { f["proc/42/cgroup"] = "hello" }, reasonMalformed},
		"cgroup unreadable": {func(f hostTree) { delete(f, "proc/42/cgroup") }, reasonMissing},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixtureV1(t)
			c.change(f)
			s := look(t, f)
			require.False(t, s.OOMKnown)
			require.Len(t, s.Findings, 22)
			for _, x := range s.Findings {
				require.Equal(t, evidence.Unavailable, x.Kind)
				require.False(t, x.Equal)
				require.Equal(t, c.reason, x.Reason, "%+v", x)
			}
		})
	}
}

// A process that ends during the look leaves the rest unavailable as gone.
func TestKernelDiesHalfway(t *testing.T) {
	f := fixtureV2(t)
	f["proc/42/status"] = strings.Replace(fixtureStatus, "S (sleeping)", "Z (zombie)", 1)
	f["proc/42/mountinfo"] = ""
	for _, x := range look(t, f).Findings {
		switch x.ID {
		case evidence.CtlUser, evidence.CtlGroups, evidence.CtlCapabilities, evidence.CtlNoNewPrivs, evidence.CtlSeccomp,
			evidence.CtlReadOnlyRoot, evidence.CtlSource, evidence.CtlScratch, evidence.CtlNoMounts:
			require.Equal(t, evidence.Unavailable, x.Kind)
			require.Equal(t, reasonGone, x.Reason)
		default:
			require.True(t, x.Equal, "%+v", x)
		}
	}
}

// The filter is loaded a moment after the start was answered.
func TestKernelWaitsForFilter(t *testing.T) {
	f := fixtureV2(t)
	f["proc/42/status"] = strings.Replace(fixtureStatus, "Seccomp:\t2", "Seccomp:\t0", 1)
	d := f.write(t)
	status := filepath.Join(d.host, "proc/42/status")
	loaded := make(chan error, 1)
	time.AfterFunc(20*time.Millisecond, func() {
		if err := os.WriteFile(status+".new", []byte(fixtureStatus), 0o644); err != nil {
			loaded <- err
			return
		}
		loaded <- os.Rename(status+".new", status)
	})
	s := d.Kernel(goldenPlan(evidence.SeccompReported), goldenID(t), 42)
	require.NoError(t, <-loaded)
	for _, x := range s.Findings {
		require.True(t, x.Equal, "%+v", x)
	}
}

// A count that can't be read is unknown, not zero.
func TestKernelOOMUnknown(t *testing.T) {
	id := goldenID(t).Hex()
	for _, text := range []string{"", "oom_kill x\n", "oom 3\n"} {
		f := fixtureV2(t)
		f["sys/fs/cgroup/system.slice/docker-"+id+".scope/memory.events"] = text
		s := look(t, f)
		require.False(t, s.OOMKnown, text)
	}
}

// A cgroup path that leaves its mount is not followed.
func TestKernelCgroupOutside(t *testing.T) {
	id := goldenID(t).Hex()
	f := fixtureV2(t)
	f["proc/42/cgroup"] = "0::/../../docker-" + id + ".scope\n"
	for _, x := range look(t, f).Findings {
		if x.ID == evidence.CtlMemory || x.ID == evidence.CtlPIDs {
			require.Equal(t, evidence.Unavailable, x.Kind)
			require.Equal(t, reasonMissing, x.Reason)
		}
	}
}
