package witness

// Every size this package refuses to exceed, with its reason.
const (
	MaxWitnesses = 64        // of a policy; a note of 64 KiB holds several hundred cosignatures
	MaxPolicy    = 64 << 10  // bytes of a policy's text: MaxWitnesses keys of the longest name, and comments
	MaxProof     = 63        // hashes of a consistency proof (C2SP tlog-witness)
	MaxRequest   = 128 << 10 // bytes of a request: a proof and a note
)
