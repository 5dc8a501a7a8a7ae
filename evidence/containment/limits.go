package containment

// Bounds of one object (req P2).
const (
	MaxText    = 512      // characters of one text
	MaxItems   = 64       // entries of one list
	MaxNesting = 8        // objects and lists in each other; there are four
	MaxBytes   = 32 << 10 // of canonical JSON

	maxName     = 64  // characters of a code or a name
	maxWritable = 128 // characters of a writable path
	hashDigits  = 16  // of a container's hash
)
