package kurrentdb

import (
	"time"

	"github.com/baildock/baildock/ledger"
)

// Every size and time the backend refuses to exceed, with its reason.
const (
	maxRequest = 1<<20 - 16<<10 // bytes of one append as the server counts them; its default limit is 1 MiB, and newer servers count types and metadata too
	chunkBytes = 512 << 10      // of a blob or a large event, so that each append stays far below maxRequest
	maxChunks  = ledger.MaxBlob/chunkBytes + 1
	maxRestore = 1024 // times a blob may be forgotten and stored again; each leaves a tombstone that Get passes

	pageEvents = 512     // events read in one go
	pageBytes  = 4 << 20 // and their bytes: what a reader holds in memory
	backEvents = 32      // events of $all looked at in one go, to find the ledger's last

	maxLedgerName = 63 // bytes of ?ledger=NAME

	// Times. Options changes the first two.
	callTimeout = 10 * time.Second // one call; the client itself may wait for ever
	patience    = 30 * time.Second // one operation with all its retries, and how long a lagging node is waited for

	firstBackoff = 10 * time.Millisecond // between attempts, doubled up to lastBackoff
	lastBackoff  = 500 * time.Millisecond
	replaceAfter = 5 * time.Second        // how long a node may lack an event we saw before the log counts as shortened
	doubtAfter   = 3                      // failures in a row before another node is looked for
	grace        = 250 * time.Millisecond // for a call to come back after its deadline
)
