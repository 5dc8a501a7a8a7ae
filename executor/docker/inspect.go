package docker

import (
	"fmt"
	"time"

	"github.com/baildock/baildock/executor"
)

// parseInspection reads the few fields every caller needs. A reply with a repeated key, a missing
// field or another type is no reply at all.
func parseInspection(raw []byte) (executor.Inspection, error) {
	tree, err := parseTree(raw)
	if err != nil {
		return executor.Inspection{}, fmt.Errorf("inspect reply: %w", err)
	}
	r := reader{tree: tree}
	in := executor.Inspection{
		Status:       r.text("State", "Status"),
		Running:      r.bool("State", "Running"),
		PID:          int(r.number("State", "Pid")),
		ExitCode:     r.number("State", "ExitCode"),
		OOMKilled:    r.bool("State", "OOMKilled"),
		StateError:   clip(r.text("State", "Error"), maxMessage),
		StartedAt:    r.time("State", "StartedAt"),
		FinishedAt:   r.time("State", "FinishedAt"),
		RestartCount: r.number("RestartCount"),
		Raw:          raw,
	}
	id := r.text("Id")
	labels := r.object("Config", "Labels")
	if r.err != nil {
		return executor.Inspection{}, fmt.Errorf("inspect reply: %w", r.err)
	}
	if in.ID, err = parseID(id); err != nil {
		return executor.Inspection{}, fmt.Errorf("inspect reply: %w", err)
	}
	in.Request, _ = labels[executor.LabelRequest].(string)
	in.Handle, _ = labels[executor.LabelHandle].(string)
	return in, nil
}

// reader takes typed fields out of a tree and keeps the first thing that was wrong.
type reader struct {
	tree any
	err  error
}

func (r *reader) at(path ...string) any {
	v := r.tree
	for _, k := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

func (r *reader) fail(path []string, kind string, v any) {
	if r.err == nil {
		r.err = fmt.Errorf("%v is %s, not %s", path, clip(compact(v), maxFact), kind)
	}
}

func (r *reader) text(path ...string) string {
	s, ok := r.at(path...).(string)
	if !ok {
		r.fail(path, "a text", r.at(path...))
	}
	return s
}

func (r *reader) bool(path ...string) bool {
	b, ok := r.at(path...).(bool)
	if !ok {
		r.fail(path, "true or false", r.at(path...))
	}
	return b
}

func (r *reader) number(path ...string) int64 {
	n, ok := r.at(path...).(number)
	if !ok {
		r.fail(path, "a number", r.at(path...))
		return 0
	}
	i, err := n.Int64()
	if err != nil {
		r.fail(path, "a whole number", n)
	}
	return i
}

func (r *reader) object(path ...string) map[string]any {
	v := r.at(path...)
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		r.fail(path, "an object", v)
	}
	return m
}

// time reads RFC 3339 with nanoseconds; the daemon's zero time means never.
func (r *reader) time(path ...string) int64 {
	s := r.text(path...)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		r.fail(path, "a time", s)
		return 0
	}
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
