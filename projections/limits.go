package projections

import "time"

const (
	batchEvents  = 4096      // events of one transaction: long enough to carry its syncs
	batchBytes   = 4 << 20   // and their bytes, so that large events don't fill memory
	batchesAhead = 2         // batches read and decoded while another is stored
	maxLive      = 20000     // unfinished attempts folded in memory; beyond it their streams are read again
	maxWords     = 100_000   // names whose numbers are kept in memory; others are looked up
	maxChanges   = 2000      // changes folded in memory; beyond it their streams are read again
	maxSQL       = 64 << 10  // bytes of a statement
	maxAnswer    = 1_000_000 // rows of its answer, which is held in memory
	maxText      = 128 << 20 // bytes of its texts together
	maxCell      = 4 << 20   // bytes of any value the engine makes; its own memory has a bound
	maxProblem   = 512       // bytes of a problem's text in a row
	maxListed    = 10        // candidates an ambiguous prefix lists
	spanEvents   = 4096      // events of one row of timeline_spans; the views name it too
	busyTimeout  = 10 * time.Second
	maxTime      = 2 * time.Minute      // of a statement somebody wrote: one may never end
	lockPause    = 5 * time.Millisecond // between two tries at the file's lock
)
