package bundle

// Every size a bundle's reader refuses to exceed, with its reason.
const (
	MaxBundle    = 64 << 20                       // the whole file; room for a manifest and outputs of several attempts
	MaxPayload   = MaxBundle - MaxProtected - 256 // leaves room for the header, the signature and their heads
	MaxItems     = 1 << 20                        // CBOR items; bounds memory, since an item costs up to 64 bytes in it
	MaxDepth     = 8                              // payload, streams, stream, events, event, proof, hash
	MaxElements  = 1 << 17                        // entries of one list
	MaxJudged    = 64                             // attempts of one bundle
	MaxStreams   = 1024                           // each judged stream brings at most MaxBasis basis streams and one cited
	MaxEvents    = 1 << 15                        // events of all streams together
	MaxProof     = 63                             // hashes of one proof; the deepest tree that can be counted
	MaxSchemas   = 32                             // schema digests
	MaxProtected = 16 << 10                       // the protected header; its longest part is the judged streams' names
	MaxIdentity  = 4096                           // ledger.pub
)
