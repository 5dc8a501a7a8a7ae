package evidence

// Limits of a workspace (req O6) and of what is said about it.
const (
	MaxWorkspaceEntries   = 100_000  // files, links and directories
	MaxWorkspaceFile      = 64 << 20 // one file
	MaxWorkspaceBytes     = 1 << 30  // all files together
	MaxWorkspaceText      = 10 << 20 // paths and link targets together; leaves room for the rest in MaxValue
	MaxWritable           = 16       // writable paths of one workspace; each is a mount
	MaxMutations          = 100_000  // changes of one run
	MaxMutationText       = 5 << 20  // their paths and link targets together; two states each must fit MaxValue too
	MaxWorkspacePolicy    = 64 << 10 // one policy's canonical bytes: its lists of globs, each full
	MaxPolicyDetailPaths  = 8        // paths shown of those that break one check
	MaxPolicyDetailQuoted = 120      // bytes of one of them, quoted
)
