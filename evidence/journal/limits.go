package journal

import "time"

const (
	// maxRaces bounds how often one use case reads again after losing a version to somebody else.
	// Losing this often means that a stream is written in a loop.
	maxRaces = 64
	// maxUnknown bounds the retries of an append whose outcome is unknown; with the pauses below
	// they span about six seconds, longer than a busy database or a leader election of a cluster.
	maxUnknown = 12
	// firstPause doubles after every retry but the first, which is made at once, up to maxPause.
	firstPause = 5 * time.Millisecond
	maxPause   = time.Second
)
