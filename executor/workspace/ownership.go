package workspace

import (
	"encoding/json"

	"github.com/baildock/baildock/evidence"
)

// Ownership says what of a prepared directory belongs to whom (req O2). Paths are portable: a role, and
// what lies below it.
type Ownership struct {
	Version   int                    `json:"version"`         // 1
	Workspace string                 `json:"workspace"`       // the agent's, mounted
	Evidence  string                 `json:"evidence"`        // baildock's, never mounted
	Writable  evidence.WritablePaths `json:"writable_paths"`  // inside the workspace, as the agent sees them
	Baseline  string                 `json:"baseline"`        // where what was there before is kept
	Cleanup   []string               `json:"cleanup_targets"` // all that Remove removes, in its order
	Reserved  []string               `json:"reserved_paths"`  // names that never enter a workspace
	Bounds    Bounds                 `json:"bounds"`
}

// Bounds are those a workspace is held to, before and after.
type Bounds struct {
	Entries    int `json:"entries"`
	FileBytes  int `json:"file_bytes"`
	TotalBytes int `json:"total_bytes"`
	LinkTarget int `json:"link_target_bytes"`
}

const runRoot = "${RUN_ROOT}"

func newOwnership(writable evidence.WritablePaths) Ownership {
	tree, own := runRoot+"/"+treeName, runRoot+"/"+evidenceName
	return Ownership{
		Version: 1, Workspace: tree, Evidence: own, Writable: writable,
		Baseline: own + "/" + baselineName,
		Cleanup:  []string{tree, own, runRoot},
		Reserved: []string{".git", ".baildock*"},
		Bounds: Bounds{
			Entries: evidence.MaxWorkspaceEntries, FileBytes: evidence.MaxWorkspaceFile,
			TotalBytes: evidence.MaxWorkspaceBytes, LinkTarget: evidence.MaxLinkTarget,
		},
	}
}

// Marshal is the JSON text, one line.
func (o Ownership) Marshal() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // only texts and numbers
	}
	return append(b, '\n')
}
