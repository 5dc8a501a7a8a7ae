package evidence

// Limits of a manifest. A profile's own bounds are tighter; these keep a decoder safe.
const (
	MaxManifestEntries = 100_000   // the workspace bound, the largest of all profiles
	MaxManifestText    = 10 << 20  // paths and targets together; leaves room for the rest in MaxValue
	MaxManifestFile    = 64 << 20  // one file, in every profile
	MaxLinkTarget      = 4095      // PATH_MAX without its NUL
	MaxPath            = 2048      // leaves room for the mount point in PATH_MAX
	MaxPathComponent   = 255       // NAME_MAX of the usual filesystems
	MaxPathDepth       = 128       // components; each costs an open directory while walking
	MaxLinkHops        = 40        // links followed for one path, as Linux does
	MaxLinkSteps       = 5_000_000 // components walked for all links of a manifest; about a second
)
