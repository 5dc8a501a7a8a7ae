package canary

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/baildock/baildock/evidence"
)

// Action is what a step does.
type Action string

// Actions. Each says what its argument is; values are text.
const (
	Create      Action = "create"       // a new file at a path, which is removed again
	Mkdir       Action = "mkdir"        // a new directory at a path, which is removed again
	Write       Action = "write"        // opens a path for writing, writes nothing
	Read        Action = "read"         // value: the beginning of a file
	Stat        Action = "stat"         // looks a path up
	Fill        Action = "fill"         // writes a file at a path past the scratch bound, and removes it
	Connect     Action = "connect"      // `tcp4|udp4|tcp6 ADDRESS PORT`
	Interfaces  Action = "interfaces"   // value: names of interfaces that are up, loopback apart
	Routes      Action = "routes"       // value: interfaces that have a route, loopback apart
	MountOption Action = "mount_option" // `PATH OPTION`; value: yes, no, or no mount
	Mounts      Action = "mounts"       // value: mount points that are writable and belong to no pseudo file system of the kernel
	Mount       Action = "mount"        // a tmpfs at a path
	Remount     Action = "remount"      // a path writable
	Chroot      Action = "chroot"       // to a path
	Unshare     Action = "unshare"      // one kind of namespace
	Mknod       Action = "mknod"        // `c|b MAJOR MINOR` in the scratch directory
	Hostname    Action = "hostname"     // sets it
	Clock       Action = "clock"        // sets it to what it is
	Status      Action = "status"       // value: a field of /proc/self/status, fields joined by one space
	Rlimit      Action = "rlimit"       // value: soft and hard limit
	Environ     Action = "environ"      // value: the sorted environment, a line each
	Process     Action = "process"      // value: the own process ID
	Processes   Action = "processes"    // value: how many processes /proc shows
	Cgroup      Action = "cgroup"       // value: the own cgroup's path, `/` where every hierarchy says so
	Limit       Action = "limit"        // value: memory, swap (beyond memory), cpu or pids as the cgroup's files say
	Search      Action = "search"       // value: paths of what looks like a secret, a line each
	Fork        Action = "fork"         // children, past the bound of processes
	Allocate    Action = "allocate"     // memory, past the bound
	Flood       Action = "flood"        // output, past the bound
	Sleep       Action = "sleep"        // past the wall time
)

// Step is one action and what must come of it: one of the errors or, without an error, exactly the value.
type Step struct {
	Action Action   `cbor:"1,keyasint" json:"action"`
	On     string   `cbor:"2,keyasint,omitempty" json:"on,omitempty"`
	Errnos []string `cbor:"3,keyasint,omitempty" json:"errnos,omitempty"` // any of these
	Value  *string  `cbor:"4,keyasint,omitempty" json:"value,omitempty"`  // null: it must fail
	Why    string   `cbor:"5,keyasint,omitempty" json:"why,omitempty"`    // where it can come out right for more than one reason
}

// Canary is one row.
type Canary struct {
	Name    evidence.CanaryName `cbor:"1,keyasint" json:"name"`
	Area    string              `cbor:"2,keyasint" json:"area"`
	Shows   string              `cbor:"3,keyasint" json:"shows"`
	Outcome evidence.Outcome    `cbor:"4,keyasint" json:"outcome"` // what its attempt must come to
	Steps   []Step              `cbor:"5,keyasint" json:"steps"`
}

// Reports tells canaries that end with a report from those whose outcome alone says it.
func (c Canary) Reports() bool { return c.Outcome == evidence.OutcomeSuccess }

// All lists the canaries of `command/v1`, sorted by name.
func All() []Canary {
	out := slices.Concat(network(), filesystem(), privileges(), processes(), namespaces(), bounds())
	slices.SortFunc(out, func(a, b Canary) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Find returns one canary.
func Find(name evidence.CanaryName) (Canary, bool) {
	for _, c := range All() {
		if c.Name == name {
			return c, true
		}
	}
	return Canary{}, false
}

// Corpus is what a context names that asks for a qualified runtime: the canaries, and the digest of the whole
// table together with the limits they run under.
func Corpus() evidence.Corpus {
	all := All()
	c := evidence.Corpus{Version: 1, Definition: sha256.Sum256(evidence.Marshal([]any{"baildock.canaries.v1", evidence.ProfileCommand, Limits(), all}))}
	for _, x := range all {
		c.Canaries = append(c.Canaries, evidence.Canary{Name: x.Name, Outcome: x.Outcome})
	}
	return c
}
