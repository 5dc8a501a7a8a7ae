package config

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/baildock/baildock/evidence/redact"
)

// hidden stands for every value of the environment, sensitive or not.
const hidden = redact.Marker

// Print returns the effective configuration as YAML: every field with the value that holds, in one
// order, and a marker for each value of the environment. Load reads it as the same configuration,
// those values apart; a sensitive literal must be written in again first.
func (c Config) Print() []byte {
	block := mappingOf(
		"version", number("1"), "platform", text(string(c.Platform)), "network", text(string(c.Network)),
		"image_provenance", text("digest-required"),
		"required_uid", number(strconv.FormatUint(uint64(c.UID), 10)), "required_gid", number(strconv.FormatUint(uint64(c.GID), 10)),
		"cpu_limit", number(formatCores(c.Limits.NanoCPUs)), "memory_limit", text(formatSize(c.Limits.Memory)),
		"pids_limit", number(strconv.FormatUint(c.Limits.PIDs, 10)), "tmpfs_size", text(formatSize(c.Limits.Scratch)),
		"timeout", text(formatDuration(c.Limits.Wall)), "output_limit", text(formatSize(c.Limits.Output)),
		"require_evidence_outside_agent_repo", boolean(true), "allow_privileged", boolean(false), "allow_host_network", boolean(false),
		"allow_docker_socket_mount", boolean(false), "allow_device_exposure", boolean(false), "allow_host_namespace_sharing", boolean(false),
		"writable_paths", texts(c.Writable),
	)
	if len(c.Environment) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, v := range c.Environment {
			list.Content = append(list.Content, v.node())
		}
		add(block, "environment", list)
	}
	if p := c.Policy; p != nil {
		policy := mappingOf()
		for _, l := range []struct {
			name  string
			globs []string
		}{{"allowed", p.Allowed}, {"forbidden", p.Forbidden}, {"protected_tests", p.Protected}} {
			if len(l.globs) > 0 {
				add(policy, l.name, texts(l.globs))
			}
		}
		if p.MaxFiles != nil {
			add(policy, "max_files", number(strconv.FormatUint(*p.MaxFiles, 10)))
		}
		if p.MaxBytes != nil {
			add(policy, "max_bytes", number(strconv.FormatUint(*p.MaxBytes, 10)))
		}
		add(policy, "no_executable_changes", boolean(p.NoExecutableChanges))
		add(policy, "no_new_links", boolean(p.NoNewLinks))
		add(block, "policy", policy)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(mappingOf("sandbox", mappingOf("type", text("docker"), "image", text(c.Image.Reference)), Block, block)); err != nil {
		panic(err) // only nodes of ours, into memory
	}
	return b.Bytes()
}

func (v Variable) node() *yaml.Node {
	n := mappingOf("name", text(v.Name), "source", text(string(v.Source)))
	if v.Source == SourceLiteral {
		add(n, "value", text(v.Value.String()))
	}
	add(n, "required", boolean(v.Required))
	add(n, "sensitive", boolean(v.Sensitive))
	add(n, "allow_sensitive", boolean(v.Allowed))
	return n
}

func mappingOf(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		add(n, pairs[i].(string), pairs[i+1].(*yaml.Node))
	}
	return n
}

func add(n *yaml.Node, name string, value *yaml.Node) {
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
}

// text is encoded with quotes where YAML would read something else.
func text(s string) *yaml.Node {
	var n yaml.Node
	n.SetString(s)
	return &n
}

func number(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }
func boolean(b bool) *yaml.Node  { return number(strconv.FormatBool(b)) }

func texts(all []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range all {
		n.Content = append(n.Content, text(s))
	}
	return n
}

func formatSize(v uint64) string {
	for i, unit := range []string{"g", "m", "k"} {
		if shift := 30 - 10*i; v>>shift<<shift == v && v > 0 {
			return fmt.Sprintf("%d%s", v>>shift, unit)
		}
	}
	return strconv.FormatUint(v, 10)
}

func formatCores(nano uint64) string {
	s := fmt.Sprintf("%d.%09d", nano/1_000_000_000, nano%1_000_000_000)
	s = strings.TrimRight(s, "0")
	if strings.HasSuffix(s, ".") {
		s += "0"
	}
	return s
}

func formatDuration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}} {
		if d%u.unit == 0 {
			return fmt.Sprintf("%d%s", d/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
