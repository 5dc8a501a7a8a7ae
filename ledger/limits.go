package ledger

// Every size the ledger refuses to exceed, with its reason.
const (
	MaxData   = 1 << 20   // one event's payload; the append limit of the distributed backend's servers
	MaxMeta   = 4096      // schema, actor, cause and nonce need far less
	MaxBatch  = 256       // events in one append
	MaxType   = 64        // bytes of an event type's name
	MaxMedia  = 128       // bytes of a media type
	MaxStream = 128       // bytes of a stream's name; the longest product name is runtime-<64 hex>
	MaxBlob   = 512 << 20 // one blob; above the largest thing kept (a manifest of 100,000 entries)
)
