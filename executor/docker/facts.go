package docker

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"

	"github.com/baildock/baildock/evidence"
)

// facts are what a daemon says about itself that decides how it contains, and that stays the same
// while it runs. Counters, clocks and sizes are left out: they change under a running attempt.
type facts struct {
	Version         uint            `cbor:"1,keyasint"` // 1
	OperatingSystem string          `cbor:"2,keyasint"`
	OSVersion       string          `cbor:"3,keyasint"`
	CgroupDriver    string          `cbor:"4,keyasint"`
	CgroupVersion   string          `cbor:"5,keyasint"`
	StorageDriver   string          `cbor:"6,keyasint"`
	LoggingDriver   string          `cbor:"7,keyasint"`
	DefaultRuntime  string          `cbor:"8,keyasint"`
	Runtimes        []runtimeFact   `cbor:"9,keyasint"`  // sorted by name
	Security        []string        `cbor:"10,keyasint"` // sorted
	Limits          []bool          `cbor:"11,keyasint"` // memory, swap, CPU period, CPU quota, PIDs
	LiveRestore     bool            `cbor:"12,keyasint"`
	InitBinary      string          `cbor:"13,keyasint"`
	Commits         []string        `cbor:"14,keyasint"` // containerd, runc, init
	Components      []componentFact `cbor:"15,keyasint"` // sorted by name
	Authorization   []string        `cbor:"16,keyasint"` // authorization plugins, sorted
	Root            string          `cbor:"17,keyasint"` // the daemon's data directory
}

type runtimeFact struct {
	Name string   `cbor:"1,keyasint"`
	Path string   `cbor:"2,keyasint"`
	Type string   `cbor:"3,keyasint"`
	Args []string `cbor:"4,keyasint"`
}

type componentFact struct {
	Name    string `cbor:"1,keyasint"`
	Version string `cbor:"2,keyasint"`
	Commit  string `cbor:"3,keyasint"`
}

func digestFacts(info system.Info, v types.Version) evidence.FactsDigest {
	f := facts{
		Version:         1,
		OperatingSystem: info.OperatingSystem,
		OSVersion:       info.OSVersion,
		CgroupDriver:    info.CgroupDriver,
		CgroupVersion:   info.CgroupVersion,
		StorageDriver:   info.Driver,
		LoggingDriver:   info.LoggingDriver,
		DefaultRuntime:  info.DefaultRuntime,
		Security:        slices.Sorted(slices.Values(info.SecurityOptions)),
		Limits:          []bool{info.MemoryLimit, info.SwapLimit, info.CPUCfsPeriod, info.CPUCfsQuota, info.PidsLimit},
		LiveRestore:     info.LiveRestoreEnabled,
		InitBinary:      info.InitBinary,
		Commits:         []string{info.ContainerdCommit.ID, info.RuncCommit.ID, info.InitCommit.ID},
		Authorization:   slices.Sorted(slices.Values(info.Plugins.Authorization)),
		Root:            info.DockerRootDir,
	}
	for name, r := range info.Runtimes {
		f.Runtimes = append(f.Runtimes, runtimeFact{name, r.Path, r.Type, r.Args})
	}
	slices.SortFunc(f.Runtimes, func(a, b runtimeFact) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range v.Components {
		f.Components = append(f.Components, componentFact{c.Name, c.Version, c.Details["GitCommit"]})
	}
	slices.SortFunc(f.Components, func(a, b componentFact) int {
		return strings.Compare(a.Name+"\x00"+a.Version, b.Name+"\x00"+b.Version)
	})
	return sha256.Sum256(evidence.Marshal(f))
}
