package projections

import "time"

const (
	batchEvents  = 4096    // events of one transaction: long enough to carry its syncs
	batchBytes   = 4 << 20 // and their bytes, so that large events don't fill memory
	batchesAhead = 2       // batches read and decoded while another is stored
	maxLive      = 20000   // unfinished attempts folded in memory; beyond it their streams are read again
	maxProblem   = 512     // bytes of a problem's text in a row
	maxListed    = 10      // candidates an ambiguous prefix lists
	busyTimeout  = 10 * time.Second
	lockPause    = 5 * time.Millisecond // between two tries at the file's lock
)
