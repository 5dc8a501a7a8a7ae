// Package evidencetest makes legal histories of attempts for tests: deterministic, complete, and
// easy to bend at one place.
//
//	h := evidencetest.Success()
//	h.Exited.ExitCode = 3
//	a, err := evidence.Fold(h.Events()...)
//
// Bytes that events name are in Blobs, so that a test can store what a real run would.
package evidencetest

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/baildock/baildock/evidence"
)

// History is one attempt from registration to the removal of its snapshot. A nil
// part is left out of Events; nothing checks that the rest is still legal.
type History struct {
	Recipe      evidence.Recipe
	Environment evidence.Environment
	Manifest    evidence.Manifest

	Registered   *evidence.AttemptRegistered
	Claimed      *evidence.AttemptClaimed
	Preflight    *evidence.PreflightObserved
	Materialized *evidence.SourceMaterialized
	BeforeCreate *evidence.RuntimeObserved
	Custody      *evidence.CustodyTaken
	Created      *evidence.ContainerCreated
	BeforeStart  *evidence.RuntimeObserved
	Isolation    *evidence.IsolationObserved
	Ordered      *evidence.StartOrdered
	Started      *evidence.ContainerStarted
	Kernel       *evidence.KernelObserved
	Stop         *evidence.StopOrdered
	Exited       *evidence.ContainerExited
	Output       *evidence.OutputCaptured
	AfterExit    *evidence.RuntimeObserved
	Removal      *evidence.RemovalOrdered
	Removed      *evidence.RemovalObserved
	Mutated      *evidence.WorkspaceMutated
	Policy       *evidence.PolicyChecked
	Snapshot     *evidence.SnapshotRemoved

	Plain [][]byte                // what events name by its plain digest, beside recipe and environment
	Blobs []evidence.Withholdable // every withholdable byte string named by an event
}

// Handle is the custody of every history, Container its container.
var (
	Handle    = evidence.HandleKey{0: 0xaa, 15: 1}
	Container = evidence.ContainerID(sha256.Sum256([]byte("container")))
)

// Success is a run over a commit of two files that prints two lines and exits 0, on a cgroup v1
// runtime under a reduced claim, on a kernel that was looked at.
func Success() *History {
	h := &History{}
	nonce := evidence.Nonce{0: 7}
	h.Environment = evidence.Environment{Version: 1, Nonce: &nonce, Vars: []evidence.EnvVar{{Name: "GREETING", Value: "hello"}}}
	h.Recipe = evidence.Recipe{
		Version: 1, Profile: evidence.ProfileCommand, Image: evidence.ImageID(sha256.Sum256([]byte("image"))),
		Executable: "/bin/tool", Args: []string{"-l", "."}, Environment: h.Environment.Digest(), Nonce: &nonce,
		Limits: evidence.Limits{Wall: time.Minute, Output: 256 << 10, Memory: 256 << 20, Scratch: 64 << 20, PIDs: 64, NanoCPUs: 1_000_000_000},
	}
	m, err := evidence.NewManifest([]evidence.ManifestEntry{file("a.txt", "one\n"), file("dir/b.txt", "two\n")})
	must(err)
	h.Manifest = m
	profile, err := evidence.ProfileByName(evidence.ProfileCommand)
	must(err)
	h.Registered = &evidence.AttemptRegistered{
		Attempt: "one", Subject: evidence.Subject{Kind: evidence.SubjectCommit, Revision: "0123456789abcdef0123456789abcdef01234567"},
		Profile: profile.Name, Table: profile.Digest(), Recipe: h.Recipe.Digest(), Environment: h.Environment.Digest(),
	}
	machine := evidence.MachineID(sha256.Sum256([]byte("machine")))
	boot := evidence.Nonce{0: 0xb0}
	h.Claimed = &evidence.AttemptClaimed{
		Generation: 1, Accepted: []evidence.Reduction{evidence.ReducedCgroupV1},
		Home:     evidence.HomeIdentity{Machine: &machine, Boot: boot, Home: evidence.HomeID{1}, Inode: 42},
		Deadline: uint64(time.Hour),
	}
	encoded, err := m.Marshal()
	must(err)
	digest, err := m.Digest()
	must(err)
	h.Materialized = &evidence.SourceMaterialized{
		Manifest: digest, Files: uint64(len(m.Entries)), Bytes: m.Bytes(), Entries: h.Keep("manifest", encoded),
	}
	id := evidence.RuntimeIdentity{
		Daemon: evidence.DaemonIdentity{Engine: "ENGINE", Machine: &machine, Boot: boot, SocketDev: 1, SocketIno: 2},
		Build:  evidence.BuildIdentity{Version: "20.10.24", API: "1.41", Kernel: "6.1", OS: "linux", Arch: "amd64", Runtime: "runc"},
	}
	h.BeforeCreate = h.runtime(evidence.BeforeCreate, id)
	h.BeforeStart = h.runtime(evidence.BeforeStart, id)
	h.AfterExit = h.runtime(evidence.AfterExit, id)
	h.Custody = &evidence.CustodyTaken{Handle: Handle, Kind: evidence.CustodyContainer, Name: "baildock-one", Request: h.Request(), Daemon: id.Daemon}
	h.Created = &evidence.ContainerCreated{Handle: Handle, Container: Container}
	h.Isolation = &evidence.IsolationObserved{Handle: Handle}
	h.Isolation.Controls, h.Isolation.Values = h.controls("isolation", profile.Controls, evidence.Observed)
	h.Ordered = &evidence.StartOrdered{Handle: Handle}
	h.Started = &evidence.ContainerStarted{Handle: Handle}
	h.Kernel = &evidence.KernelObserved{Handle: Handle}
	h.Kernel.Controls, h.Kernel.Values = h.controls("kernel", profile.Controls[:min(3, len(profile.Controls))], evidence.Kernel)
	h.Exited = &evidence.ContainerExited{Handle: Handle, Status: "exited", OOMEvent: evidence.OOMNone, Duration: uint64(120 * time.Millisecond)}
	h.Output = &evidence.OutputCaptured{Handle: Handle, Stdout: h.stream("stdout", "a.txt\n"), Stderr: h.stream("stderr", "warning\n")}
	h.Removal = &evidence.RemovalOrdered{Handle: Handle, Container: Container}
	h.Removed = &evidence.RemovalObserved{Handle: Handle, State: evidence.CleanupTerminated}
	h.Snapshot = &evidence.SnapshotRemoved{}
	return h
}

// Events lists the parts in order, without AttemptFinished.
func (h *History) Events() []evidence.Payload {
	var out []evidence.Payload
	out = add(out, h.Registered)
	out = add(out, h.Claimed)
	out = add(out, h.Preflight)
	out = add(out, h.Materialized)
	out = add(out, h.BeforeCreate)
	out = add(out, h.Custody)
	out = add(out, h.Created)
	out = add(out, h.BeforeStart)
	out = add(out, h.Isolation)
	out = add(out, h.Ordered)
	out = add(out, h.Started)
	out = add(out, h.Kernel)
	out = add(out, h.Stop)
	out = add(out, h.Exited)
	out = add(out, h.Output)
	out = add(out, h.AfterExit)
	out = add(out, h.Removal)
	out = add(out, h.Removed)
	out = add(out, h.Mutated)
	out = add(out, h.Policy)
	return add(out, h.Snapshot)
}

// Finished is Events followed by the AttemptFinished they lead to.
func (h *History) Finished() []evidence.Payload {
	events := h.Events()
	a, err := evidence.Fold(events...)
	must(err)
	return append(events, evidence.AttemptFinished{Record: evidence.RecordOf(&a).Digest()})
}

// Request is the digest every label and custody of the history carries.
func (h *History) Request() evidence.RequestDigest {
	r := h.Registered
	rev := evidence.Revision{Commit: r.Subject.Revision}
	if r.Subject.Kind == evidence.SubjectDirectory {
		rev.Manifest = &h.Materialized.Manifest
	}
	return evidence.Request{
		Attempt: r.Attempt, Generation: 1, Binding: r.Binding, Revision: rev,
		Recipe: r.Recipe, Toolchain: r.Toolchain, Environment: r.Environment, Profile: r.Table,
	}.Digest()
}

// Keep remembers bytes under a salt derived from their name and returns the reference to them.
func (h *History) Keep(name string, b []byte) evidence.BlobRef {
	w := evidence.Withhold(salt(name), b)
	h.Blobs = append(h.Blobs, w)
	return w.Ref
}

func (h *History) runtime(p evidence.ObservationPoint, id evidence.RuntimeIdentity) *evidence.RuntimeObserved {
	return &evidence.RuntimeObserved{
		Point: p, Identity: &id, Reductions: []evidence.Reduction{evidence.ReducedCgroupV1}, Seccomp: evidence.SeccompReported,
	}
}

func (h *History) controls(name string, specs []evidence.ControlSpec, kind evidence.EvidenceKind) ([]evidence.Control, evidence.BlobRef) {
	var cs []evidence.Control
	var vs []evidence.ControlValue
	for _, s := range specs {
		v := evidence.ControlValue{ID: s.ID, Salt: salt(fmt.Sprint(name, s.ID)), Expected: "true", Found: "true"}
		vs = append(vs, v)
		cs = append(cs, evidence.Control{ID: s.ID, Kind: kind, Equal: true, Value: evidence.SaltedSum(v.Salt, []byte(v.Found))})
	}
	return cs, h.Keep(name, evidence.Marshal(vs))
}

func (h *History) stream(name, text string) evidence.Stream {
	ref := h.Keep(name, []byte(text))
	return evidence.Stream{
		Stored: uint64(len(text)), Received: uint64(len(text)), Bytes: ref,
		ReceivedHash: evidence.SaltedSum(salt(name), []byte(text)), EndOfStream: true,
	}
}

func salt(name string) evidence.Salt {
	return sha256.Sum256(append([]byte("evidencetest salt "), name...))
}

func file(path, content string) evidence.ManifestEntry {
	return evidence.ManifestEntry{
		Path: path, Mode: evidence.ModeFile, Size: uint64(len(content)),
		SHA256: evidence.ContentDigest(sha256.Sum256([]byte(content))),
	}
}

func add[P evidence.Payload](out []evidence.Payload, p *P) []evidence.Payload {
	if p == nil {
		return out
	}
	// A copy, through its encoding: later bends of the history don't change what was listed.
	var c P
	must(evidence.Unmarshal(evidence.Marshal(*p), &c))
	return append(out, c)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
