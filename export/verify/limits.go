package verify

// What a policy file may not exceed, with the reason.
const (
	MaxPolicy  = 128 << 10 // bytes of the file; holds every list below at its longest
	MaxTrusted = 16        // ledgers and keys trusted; each is tried at most once a bundle
)
