package docker

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// runtimeName is the only runtime a request names.
const runtimeName = "runc"

// shmSize is named although no container of ours has /dev/shm: unnamed, it would be the daemon's
// own setting and could not be compared.
const shmSize = 64 << 20

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$`)

// render turns a plan into one create request. It is pure: equal plans give equal requests.
func render(p executor.Plan) (container.CreateRequest, error) {
	var none container.CreateRequest
	switch {
	case !namePattern.MatchString(p.Name):
		return none, fmt.Errorf("container name %q is not 2 to 128 of a-z A-Z 0-9 _ . -", p.Name)
	case !filepath.IsAbs(p.Source) || filepath.Clean(p.Source) != p.Source || strings.ContainsAny(p.Source, ",:\n\x00"):
		return none, fmt.Errorf("source %q is not an absolute, clean path without mount delimiters", p.Source)
	case !utf8.ValidString(strings.Join(append(environment(p), append(p.Recipe.Argv(), p.Source)...), "")):
		// JSON would replace the bytes without a word, and another command would run.
		return none, errors.New("an argument, environment value or the source path is not UTF-8, which a create request can't carry")
	case p.Profile.Name != p.Recipe.Profile:
		return none, fmt.Errorf("recipe asks for profile %q, the plan has %q", p.Recipe.Profile, p.Profile.Name)
	case p.Environment.Digest() != p.Recipe.Environment:
		return none, fmt.Errorf("environment is not the one the recipe binds")
	case p.Profile.Writable != (p.Recipe.Contained != nil):
		return none, fmt.Errorf("profile %q and the recipe's terms don't fit", p.Profile.Name)
	case p.Recipe.Contained != nil && p.Recipe.Contained.Network != p.Profile.Network:
		return none, fmt.Errorf("the recipe asks for network %q, the plan has %q", p.Recipe.Contained.Network, p.Profile.Network)
	}
	if err := p.Environment.Opens(p.Values); err != nil { // req L5: exactly what was committed to
		return none, err
	}
	if uid, gid := p.Profile.User(p.Recipe); uid == 0 || gid == 0 {
		return none, errors.New("a container never runs as root")
	}
	opts, err := securityOptions(p.Seccomp)
	if err != nil {
		return none, err
	}
	limits := p.Recipe.Limits
	pids := int64(limits.PIDs)
	noInit := false
	return container.CreateRequest{
		Config: &container.Config{
			Hostname:     p.Profile.Hostname,
			User:         userOf(p),
			AttachStdout: true,
			AttachStderr: true,
			Env:          environment(p),
			Cmd:          p.Recipe.Args,
			Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}},
			Image:        p.Recipe.Image.String(),
			WorkingDir:   p.Profile.WorkDir,
			Entrypoint:   []string{p.Recipe.Executable},
			Labels: map[string]string{
				executor.LabelRequest: p.Request.String(),
				executor.LabelHandle:  p.Handle.String(),
			},
			StopSignal: "SIGKILL", // else an image's own choice would be merged in
		},
		HostConfig: &container.HostConfig{
			LogConfig:      container.LogConfig{Type: "none"},
			NetworkMode:    container.NetworkMode(p.Profile.Network),
			RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
			CapDrop:        []string{"ALL"},
			CgroupnsMode:   container.CgroupnsModePrivate,
			IpcMode:        container.IPCModeNone,
			ReadonlyRootfs: true,
			SecurityOpt:    opts,
			Tmpfs:          map[string]string{p.Profile.ScratchPath: scratchOptions(p)},
			ShmSize:        shmSize,
			Runtime:        runtimeName,
			Resources: container.Resources{
				Memory:     int64(limits.Memory),
				MemorySwap: int64(limits.Memory),
				NanoCPUs:   int64(limits.NanoCPUs),
				PidsLimit:  &pids,
				Ulimits: []*container.Ulimit{
					{Name: "core", Soft: int64(p.Profile.Core), Hard: int64(p.Profile.Core)},
					{Name: "nofile", Soft: int64(p.Profile.Nofile), Hard: int64(p.Profile.Nofile)},
				},
			},
			Mounts: mountsOf(p),
			Init:   &noInit, // unset would leave it to the daemon's own setting
		},
		NetworkingConfig: &network.NetworkingConfig{},
	}, nil
}

// bind is one directory of the host that a container sees.
type bind struct {
	source, target string
	readOnly       bool
}

// bindsOf is every bind of a plan, the one of the source first. A workspace of which only parts are
// writable is bound read-only, and each part over it.
func bindsOf(p executor.Plan) []bind {
	root := bind{p.Source, p.Profile.SourcePath, true}
	if !p.Profile.Writable || p.Recipe.Contained == nil {
		return []bind{root}
	}
	out := []bind{root}
	for _, path := range p.Recipe.Contained.Writable {
		if path == evidence.WholeWorkspace {
			out[0].readOnly = false
			continue
		}
		out = append(out, bind{filepath.Join(p.Source, path), p.Profile.SourcePath + "/" + path, false})
	}
	return out
}

func mountsOf(p executor.Plan) []mount.Mount {
	var out []mount.Mount
	for _, b := range bindsOf(p) {
		out = append(out, mount.Mount{
			Type: mount.TypeBind, Source: b.source, Target: b.target, ReadOnly: b.readOnly,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}
	return out
}

// environment is the recipe's entries and then the profile's own, in their order.
func environment(p executor.Plan) []string {
	var env []string
	values := slices.Clone(p.Values)
	slices.SortFunc(values, func(a, b evidence.EnvOpening) int { return strings.Compare(a.Name, b.Name) })
	for _, v := range values {
		env = append(env, v.Name+"="+v.Value)
	}
	for _, v := range p.Environment.Vars {
		env = append(env, v.Name+"="+v.Value)
	}
	for _, v := range p.Profile.Environment {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

func securityOptions(n evidence.SeccompNaming) ([]string, error) {
	switch n {
	case evidence.SeccompNamed:
		return []string{"no-new-privileges", "seccomp=builtin"}, nil
	case evidence.SeccompReported:
		return []string{"no-new-privileges"}, nil
	}
	return nil, fmt.Errorf("seccomp naming %q is neither %s nor %s", n, evidence.SeccompNamed, evidence.SeccompReported)
}

func userOf(p executor.Plan) string {
	uid, gid := p.Profile.User(p.Recipe)
	return fmt.Sprintf("%d:%d", uid, gid)
}

// scratchOptions gives the scratch directory to the command alone. noexec is Docker's default
// for tmpfs; it is named so that inspection shows it.
func scratchOptions(p executor.Plan) string {
	uid, gid := p.Profile.User(p.Recipe)
	return fmt.Sprintf("rw,nosuid,nodev,noexec,size=%d,uid=%d,gid=%d,mode=0700", p.Recipe.Limits.Scratch, uid, gid)
}
