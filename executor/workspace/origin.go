package workspace

import (
	"encoding/json"
	"strconv"
)

// origin is what is kept of where a workspace came from (req O1). Paths are quoted as in Go, in ASCII,
// since they may be any bytes.
func (b Baseline) origin() []byte {
	type git struct {
		Head        string   `json:"head"`   // empty: no commit yet
		Branch      string   `json:"branch"` // empty: detached
		Status      []string `json:"status"` // XY, a space, the quoted path
		More        int      `json:"more"`   // lines beyond
		Unavailable string   `json:"unavailable,omitempty"`
	}
	type skipped struct {
		Path string `json:"path"`
		Why  string `json:"why"`
	}
	v := struct {
		Version  int       `json:"version"`
		Git      *git      `json:"git"` // null: no git working tree
		Skipped  []skipped `json:"skipped"`
		Stripped int       `json:"stripped"`
	}{Version: 1, Skipped: []skipped{}, Stripped: b.Stripped}
	if g := b.Git; g != nil {
		v.Git = &git{Head: g.Head, Branch: g.Branch, Status: []string{}, More: g.More, Unavailable: g.Unavailable}
		for _, l := range g.Status {
			v.Git.Status = append(v.Git.Status, string([]byte{l.Index, l.Worktree, ' '})+strconv.QuoteToASCII(l.Path))
		}
	}
	for _, s := range b.Skipped {
		v.Skipped = append(v.Skipped, skipped{Path: strconv.QuoteToASCII(s.Path), Why: string(s.Why)})
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err) // only texts and numbers
	}
	return append(out, '\n')
}
