package peer

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// Access lists, as far as an evidence ledger depends on them: the defaults for users' and for
// system streams, which $settings changes, and a stream's own.

func (n *Node) mayWrite(ctx context.Context, name string) error {
	if owner, ok := strings.CutPrefix(name, "$$"); ok {
		return n.may(ctx, owner, "$mw")
	}
	return n.may(ctx, name, "$w")
}

func (n *Node) mayDelete(ctx context.Context, name string) error { return n.may(ctx, name, "$d") }

// mayReadAll: only admins read $all, unless its own list says otherwise.
func (n *Node) mayReadAll(ctx context.Context) error { return n.may(ctx, "$all", "$r") }

func (n *Node) may(ctx context.Context, name, what string) error {
	u, err := n.caller(ctx)
	if err != nil {
		return err
	}
	if u.Admin || slices.Contains(n.allowed(name, what), "$all") {
		return nil
	}
	return errDenied()
}

// allowed are the roles a list names for something.
func (n *Node) allowed(name, what string) []string {
	l := n.cluster.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.streams["$$"+name]; s != nil && len(s.records) > 0 {
		var own struct {
			ACL map[string]any `json:"$acl"`
		}
		if json.Unmarshal(s.records[len(s.records)-1].data, &own) == nil && own.ACL[what] != nil {
			return roles(own.ACL[what])
		}
	}
	system := strings.HasPrefix(name, "$")
	if s := l.streams["$settings"]; s != nil && len(s.records) > 0 {
		var defaults map[string]map[string]any
		key := "$userStreamAcl"
		if system {
			key = "$systemStreamAcl"
		}
		if json.Unmarshal(s.records[len(s.records)-1].data, &defaults) == nil && defaults[key][what] != nil {
			return roles(defaults[key][what])
		}
	}
	if system {
		return []string{"$admins"}
	}
	return []string{"$all"}
}

func roles(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, r := range v {
			if s, ok := r.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
