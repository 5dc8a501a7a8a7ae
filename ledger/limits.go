package ledger

// Every size the ledger refuses to exceed, with its reason.
const (
	MaxData   = 1 << 20                                                  // one event's payload; the append limit of the distributed backend's servers
	MaxMeta   = 4096                                                     // schema, actor, cause and nonce need far less
	MaxBatch  = 256                                                      // events in one append
	MaxType   = 64                                                       // bytes of an event type's name
	MaxMedia  = 128                                                      // bytes of a media type
	MaxStream = 128                                                      // bytes of a stream's name; the longest product name is runtime-<64 hex>
	MaxAppend = 4 << 20                                                  // meta and data of one append together; bounds what a commit holds in memory
	MaxLeaf   = MaxData + MaxMeta + MaxStream + MaxType + MaxMedia + 128 // one encoded leaf: its items, prev and CBOR heads
	MaxOrigin = 255                                                      // bytes of an origin, so that its note lines stay short
	MaxNote   = 64 << 10                                                 // a signed checkpoint with every cosignature it may carry
	MaxBlob   = 512 << 20                                                // one blob; above the largest thing kept (a manifest of 100,000 entries)
)
