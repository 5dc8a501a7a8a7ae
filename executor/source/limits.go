package source

import "github.com/baildock/baildock/evidence"

// Limits bound a source. Each is the largest value allowed.
type Limits struct {
	Files       int    // files and links
	Bytes       uint64 // all files together
	FileBytes   uint64 // one file
	Directories int    // directories visited, empty ones too; in a commit each time a tree is used
	Skipped     int    // reserved names in a directory; each is reported
	Advice      string // the likely fix, closing each refusal; empty: that of a snapshot
}

func (l Limits) advice() string {
	if l.Advice != "" {
		return l.Advice
	}
	return notLarge
}

// DefaultLimits are those of `command/v1` (req B3): a snapshot is copied and hashed before every
// run, so a large repository needs another profile, not a larger number.
var DefaultLimits = Limits{Files: 10_000, Bytes: 256 << 20, FileBytes: 64 << 20, Directories: 10_000, Skipped: 1_000}

const notLarge = "this is not the large-repository profile; check a smaller directory"

// Bounds that don't depend on the profile.
const (
	maxTreeObject  = 4 << 20 // a git tree of 10,000 entries with the longest names is smaller
	maxCommit      = 1 << 20 // a commit or tag object; messages are far smaller
	maxAncestors   = 100_000 // commits passed by ~N
	maxAlternates  = 16      // object directories a repository borrows from, in all
	maxPeel        = 16      // tags that name tags
	minAbbreviated = 4       // hex digits of an abbreviated hash, as git has it
	directoryChunk = 512     // names read from a directory at once
	copyBuffer     = 128 << 10
	maxGitFile     = 4096 // a `.git` file or commondir: one path
)

// pass counts what a listing has seen.
type pass struct {
	limits      Limits
	files       int
	bytes       uint64
	directories int
}

// file counts one file or link before anything of it is read.
func (p *pass) file(path string, mode evidence.Mode, size uint64) error {
	if p.files++; p.files > p.limits.Files {
		return refuse(CodeTooManyFiles, "", "the source has more than %d files: %s", p.limits.Files, p.limits.advice())
	}
	if mode == evidence.ModeLink {
		return nil
	}
	if size > p.limits.FileBytes {
		return refuse(CodeFileTooLarge, path, "file of %d bytes, at most %d: %s", size, p.limits.FileBytes, p.limits.advice())
	}
	if p.bytes += size; p.bytes > p.limits.Bytes {
		return refuse(CodeTooLarge, "", "the source has more than %d bytes: %s", p.limits.Bytes, p.limits.advice())
	}
	return nil
}

func (p *pass) directory() error {
	if p.directories++; p.directories > p.limits.Directories {
		return refuse(CodeTooManyFiles, "", "the source has more than %d directories: %s", p.limits.Directories, p.limits.advice())
	}
	return nil
}

// Bounds of a git status (req O1). What lies beyond is said, not guessed.
const (
	maxIndexFile   = 64 << 20  // a `.git/index` of 100,000 entries has about 10 MiB
	maxTreePaths   = 200_000   // paths of the commit compared with the index
	maxStatusHash  = 256 << 20 // bytes of files whose index entry doesn't settle whether they changed
	MaxStatusLines = 1_000     // lines kept
	maxIgnoreFile  = 1 << 20   // one .gitignore
	maxIgnoreRules = 20_000    // rules of all of them
)
