package config

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/baildock/baildock/evidence"
)

// Load reads a configuration file (req L1 to L3). It does no I/O: name is only shown. The error is an
// *Errors with everything that is wrong, in the file's order; errors.As finds the first *Error.
func Load(name string, b []byte) (Config, error) {
	root, errs := parse(b)
	if len(errs) > 0 {
		return Config{}, &Errors{Name: name, All: errs}
	}
	r := &reader{}
	c := defaults()
	r.mapping(root, "", []field{
		{"sandbox", true, func(n *yaml.Node, path string) { r.sandbox(n, path, &c) }},
		{Block, true, func(n *yaml.Node, path string) { r.block(n, path, &c) }},
	})
	if len(r.errs) > 0 {
		slices.SortStableFunc(r.errs, func(a, b *Error) int { return a.Line - b.Line })
		return Config{}, &Errors{Name: name, All: r.errs}
	}
	return c, nil
}

// Block is the name of the block that makes a file a contained run's.
const Block = "contained_execution"

func defaults() Config {
	return Config{
		Platform: evidence.PlatformEngine, Network: evidence.NetworkNone, UID: 1000, GID: 1000,
		Limits: evidence.Limits{
			Wall: 10 * time.Minute, Output: 1 << 20, Memory: 512 << 20, Scratch: 256 << 20, PIDs: 256, NanoCPUs: 1_000_000_000,
		},
		Writable: evidence.WritablePaths{evidence.WholeWorkspace},
	}
}

func (r *reader) sandbox(n *yaml.Node, path string, c *Config) {
	r.mapping(n, path, []field{
		{"type", true, func(n *yaml.Node, path string) { r.oneOf(n, path, "docker") }},
		{"image", true, func(n *yaml.Node, path string) {
			s, ok := r.text(n, path)
			if !ok {
				return
			}
			var err error
			if c.Image, err = parseImage(s); err != nil {
				r.refuse(n, path, "%v", err)
			}
		}},
	})
}

func (r *reader) block(n *yaml.Node, path string, c *Config) {
	id := func(to *uint32, of string) func(n *yaml.Node, path string) {
		return func(n *yaml.Node, path string) {
			if n.Kind == yaml.ScalarNode && n.Value == "0" && n.ShortTag() == "!!int" {
				r.refuse(n, path, "the agent never runs as root; give a %s from 1", of)
				return
			}
			if v, ok := r.integer(n, path, 1, MaxUserID); ok {
				*to = uint32(v)
			}
		}
	}
	size := func(to *uint64, least, most uint64) func(n *yaml.Node, path string) {
		return func(n *yaml.Node, path string) { *to, _ = r.size(n, path, least, most) }
	}
	r.mapping(n, path, []field{
		{"version", true, func(n *yaml.Node, path string) {
			if v, ok := r.integer(n, path, 0, 1<<62); ok && v != 1 {
				r.refuse(n, path, "version %d is not known; this baildock reads version 1", v)
			}
		}},
		{"platform", false, func(n *yaml.Node, path string) {
			s, _ := r.oneOf(n, path, string(evidence.PlatformEngine), string(evidence.PlatformDesktop))
			c.Platform = evidence.Platform(s)
		}},
		{"network", false, func(n *yaml.Node, path string) { c.Network = r.network(n, path) }},
		{"image_provenance", false, func(n *yaml.Node, path string) { r.oneOf(n, path, "digest-required") }},
		{"required_uid", false, id(&c.UID, "UID")},
		{"required_gid", false, id(&c.GID, "GID")},
		{"cpu_limit", false, func(n *yaml.Node, path string) { c.Limits.NanoCPUs, _ = r.cores(n, path, MinNanoCPUs, MaxNanoCPUs) }},
		{"memory_limit", false, size(&c.Limits.Memory, MinMemory, MaxMemory)},
		{"pids_limit", false, func(n *yaml.Node, path string) { c.Limits.PIDs, _ = r.integer(n, path, MinPIDs, MaxPIDs) }},
		{"tmpfs_size", false, size(&c.Limits.Scratch, MinTmpfs, MaxTmpfs)},
		{"timeout", false, func(n *yaml.Node, path string) { c.Limits.Wall, _ = r.duration(n, path, MinTimeout, MaxTimeout) }},
		{"output_limit", false, size(&c.Limits.Output, MinOutput, MaxOutput)},
		{"require_evidence_outside_agent_repo", false, r.only(true, "evidence never lies where the agent can write")},
		{"allow_privileged", false, r.only(false, "a privileged container contains nothing")},
		{"allow_host_network", false, r.only(false, "the host's network is never shared")},
		{"allow_docker_socket_mount", false, r.only(false, "the daemon's socket gives away the host")},
		{"allow_device_exposure", false, r.only(false, "no device of the host is shown")},
		{"allow_host_namespace_sharing", false, r.only(false, "no namespace of the host is shared")},
		{"writable_paths", false, func(n *yaml.Node, path string) { c.Writable = r.writable(n, path) }},
		{"environment", false, func(n *yaml.Node, path string) { c.Environment = r.environment(n, path) }},
		{"policy", false, func(n *yaml.Node, path string) { c.Policy = r.policy(n, path) }},
	})
}

func (r *reader) network(n *yaml.Node, path string) evidence.Network {
	if n.Kind == yaml.ScalarNode && n.Value == "host" {
		r.refuse(n, path, "the host's network is never shared; allowed: none, bridge")
		return ""
	}
	s, _ := r.oneOf(n, path, string(evidence.NetworkNone), string(evidence.NetworkBridge))
	return evidence.Network(s)
}
