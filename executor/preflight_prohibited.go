package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// prohibition is an option that no container of ours has, as an inspection would show it.
type prohibition struct {
	path  string // of the inspection, dotted
	value any
}

// prohibitions are the options that hand a container something of its host. A plan has no field for any
// of them; each is held against the comparison that would have to notice it.
var prohibitions = []prohibition{
	{"HostConfig.Privileged", true},
	{"HostConfig.PidMode", "host"},
	{"HostConfig.IpcMode", "host"},
	{"HostConfig.UTSMode", "host"},
	{"HostConfig.UsernsMode", "host"},
	{"HostConfig.CgroupnsMode", "host"},
	{"HostConfig.NetworkMode", "host"},
	{"HostConfig.Binds", []string{"/var/run/docker.sock:/var/run/docker.sock"}},
	{"HostConfig.Mounts", []map[string]any{{"Type": "bind", "Source": "/", "Target": "/host"}}},
	{"Mounts", []map[string]any{{"Type": "bind", "Source": "/var/run/docker.sock", "Destination": "/var/run/docker.sock", "RW": true}}},
	{"HostConfig.VolumesFrom", []string{"other"}},
	{"HostConfig.Devices", []map[string]any{{"PathOnHost": "/dev/mem", "PathInContainer": "/dev/mem", "CgroupPermissions": "rwm"}}},
	{"HostConfig.DeviceRequests", []map[string]any{{"Driver": "any", "Count": -1}}},
	{"HostConfig.DeviceCgroupRules", []string{"a *:* rwm"}},
	{"HostConfig.CapAdd", []string{"SYS_ADMIN"}},
	{"HostConfig.CapDrop", []string{}},
	{"HostConfig.SecurityOpt", []string{"seccomp=unconfined"}},
	{"HostConfig.ReadonlyRootfs", false},
	{"HostConfig.Tmpfs", map[string]string{"/tmp": "rw"}},
	{"HostConfig.GroupAdd", []string{"0"}},
	{"HostConfig.Runtime", "other"},
	{"HostConfig.Memory", 0},
	{"HostConfig.NanoCpus", 0},
	{"HostConfig.PidsLimit", 0},
	{"HostConfig.PortBindings", map[string]any{"80/tcp": []map[string]string{{"HostPort": "80"}}}},
	{"HostConfig.MaskedPaths", []string{}},
	{"HostConfig.ReadonlyPaths", []string{}},
	{"HostConfig.Sysctls", map[string]string{"kernel.core_pattern": "core"}},
	{"Config.User", "0:0"},
}

// Prohibitions is how many options Undetected tries.
func Prohibitions() int { return len(prohibitions) }

// Undetected lists each prohibited option that the driver's comparison would let through, had the
// daemon given it to this container: the inspection is changed in that one place and compared again
// (req M2). It is empty where every one is refused, and makes no call.
func Undetected(d Driver, p Plan, img Image, rt Runtime, in Inspection) ([]string, error) {
	accepts := func(change func(map[string]any) error) (bool, error) {
		var tree map[string]any
		numbers := json.NewDecoder(bytes.NewReader(in.Raw))
		numbers.UseNumber()
		if err := numbers.Decode(&tree); err != nil {
			return false, fmt.Errorf("read the inspection again: %w", err)
		}
		if err := change(tree); err != nil {
			return false, err
		}
		raw, err := json.Marshal(tree)
		if err != nil {
			return false, fmt.Errorf("write the inspection again: %w", err)
		}
		changed := in
		changed.Raw = raw
		return holds(p, d.Compare(p, img, rt, changed)), nil
	}
	// What is refused unchanged would be refused for any reason.
	same, err := accepts(func(map[string]any) error { return nil })
	if err != nil || !same {
		return nil, errors.Join(errors.New("the inspection, written again, does not compare equal"), err)
	}
	var out []string
	for _, x := range prohibitions {
		through, err := accepts(func(tree map[string]any) error { return put(tree, strings.Split(x.path, "."), x.value) })
		if err != nil {
			return nil, err
		}
		if through {
			out = append(out, x.path)
		}
	}
	return out, nil
}

// holds reports whether a comparison lets a container start.
func holds(p Plan, iso Isolation) bool {
	return len(iso.Unknown) == 0 && len(iso.Findings) == len(p.Profile.Controls) &&
		!slices.ContainsFunc(iso.Findings, func(f Finding) bool { return !f.Equal })
}

func put(tree map[string]any, path []string, value any) error {
	for len(path) > 1 {
		next, ok := tree[path[0]].(map[string]any)
		if !ok {
			return fmt.Errorf("the inspection has no object %s", path[0])
		}
		tree, path = next, path[1:]
	}
	tree[path[0]] = value
	return nil
}
