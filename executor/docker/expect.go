package docker

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// expectations maps each name a profile's table may write as ${name} to this run's value, as parseTree
// gives it.
type expectations map[string]any

func expect(p executor.Plan, img executor.Image, id evidence.ContainerID) expectations {
	security, err := securityOptions(p.Seccomp)
	if err != nil {
		// An unknown naming renders no request; nothing inspected can equal it.
		security = []string{fmt.Sprintf("unknown naming %q", p.Seccomp)}
	}
	labels := map[string]string{}
	maps.Copy(labels, img.Labels) // an image's labels are merged into its containers'
	labels[executor.LabelRequest] = p.Request.String()
	labels[executor.LabelHandle] = p.Handle.String()
	limit := func(name string, n uint64) map[string]any { return map[string]any{"Name": name, "Hard": n, "Soft": n} }

	values := map[string]any{
		"id":           id.Hex(),
		"name":         "/" + p.Name,
		"image":        p.Recipe.Image.String(),
		"executable":   p.Recipe.Executable,
		"args":         p.Recipe.Args,
		"env":          environment(p),
		"labels":       labels,
		"user":         userOf(p),
		"hostname":     p.Profile.Hostname,
		"work_dir":     p.Profile.WorkDir,
		"mounts_asked": mountsAsked(p),
		"mounts_made":  mountsMade(p),
		"tmpfs":        map[string]any{p.Profile.ScratchPath: scratchOptions(p)},
		"security":     security,
		"ulimits":      []any{limit("core", p.Profile.Core), limit("nofile", p.Profile.Nofile)},
		"network":      p.Profile.Network,
		"networks":     []evidence.Network{p.Profile.Network},
		"memory":       p.Recipe.Limits.Memory,
		"nano_cpus":    p.Recipe.Limits.NanoCPUs,
		"pids":         p.Recipe.Limits.PIDs,
	}
	e := expectations{}
	for k, v := range values {
		tree, err := parseTree([]byte(compact(v)))
		if err != nil {
			panic(fmt.Sprintf("docker: value of ${%s}: %v", k, err)) // everything above has a JSON form
		}
		e[k] = tree
	}
	return e
}

// mountsAsked is how a create request's mounts are shown.
func mountsAsked(p executor.Plan) []any {
	var out []any
	for _, b := range bindsOf(p) {
		m := map[string]any{
			"Type": "bind", "Source": b.source, "Target": b.target, "BindOptions": map[string]any{"Propagation": "rprivate"},
		}
		if b.readOnly { // left out where it is false
			m["ReadOnly"] = true
		}
		out = append(out, m)
	}
	return out
}

// mountsMade is how the daemon shows what it made of them, by destination.
func mountsMade(p executor.Plan) []any {
	binds := bindsOf(p)
	slices.SortFunc(binds, func(a, b bind) int { return strings.Compare(a.target, b.target) })
	var out []any
	for _, b := range binds {
		out = append(out, map[string]any{
			"Type": "bind", "Source": b.source, "Destination": b.target, "Mode": "", "RW": !b.readOnly, "Propagation": "rprivate",
		})
	}
	return out
}

// sortMounts puts an inspected container's mounts in order of their destination: the daemon keeps none.
func sortMounts(tree map[string]any) {
	list, ok := tree["Mounts"].([]any)
	if !ok {
		return
	}
	at := func(m any) string {
		object, _ := m.(map[string]any)
		text, _ := object["Destination"].(string)
		return text
	}
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(at(a), at(b)) })
}

var placeholder = regexp.MustCompile(`\$\{[a-z_]+\}`)

// want fills a rule's text in and parses it.
func (e expectations) want(rule evidence.FieldRule) (any, error) {
	if v, ok := e[strings.TrimSuffix(strings.TrimPrefix(rule.Want, "${"), "}")]; ok && strings.HasPrefix(rule.Want, "${") {
		return v, nil
	}
	var missing []string
	text := rule.Want
	if strings.Contains(text, "${") {
		text = placeholder.ReplaceAllStringFunc(text, func(s string) string {
			v, ok := e[s[2:len(s)-1]]
			if !ok {
				missing = append(missing, s)
			}
			return compact(v)
		})
	}
	if missing != nil {
		return nil, fmt.Errorf("field %s: no value for %s", rule.Path, strings.Join(missing, " "))
	}
	v, err := parseTree([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("field %s: expectation %s: %w", rule.Path, text, err)
	}
	return v, nil
}
