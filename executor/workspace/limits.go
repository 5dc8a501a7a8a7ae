package workspace

import (
	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// Limits of one workspace (req O6). Entries, sizes and link targets have theirs in package evidence,
// since whoever verifies holds a manifest to the same ones.
var sourceLimits = source.Limits{
	Files:       evidence.MaxWorkspaceEntries,
	Directories: evidence.MaxWorkspaceEntries,
	Bytes:       evidence.MaxWorkspaceBytes,
	FileBytes:   evidence.MaxWorkspaceFile,
	Skipped:     1_000,
	Advice:      "this is not the large-repository profile; give the agent a smaller directory",
}

const (
	// MinFree is what the disk keeps free beside a copy, and while an agent writes into it: so much that
	// the ledger and everything else on that disk go on.
	MinFree = 1 << 30
	// MinFreeRunning is where a run is stopped. It is smaller, so that a run doesn't stop at its first file.
	MinFreeRunning = MinFree / 2

	maxWorkers  = 8         // more don't help: a copy is bound by the kernel's work on names
	filesPerJob = 256       // files of one directory that one worker takes
	copyBuffer  = 128 << 10 // bytes read at once

	maxDiffFile  = 1 << 20   // a text larger than this is named, not shown
	maxKept      = 256 << 20 // texts kept as they were, for diffs; beyond it changes are named, not shown
	maxPatchFile = 64 << 20  // one patch, uncut
	textSniff    = 8000      // bytes without NUL that make a file text, as git has it
)
