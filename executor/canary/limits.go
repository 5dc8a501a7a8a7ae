package canary

import (
	"time"

	"github.com/baildock/baildock/evidence"
)

const (
	maxReport = 64 << 10 // bytes of a report; a whole one has below 8 KiB
	maxValue  = 4 << 10  // bytes of one value read inside
	maxFound  = 16       // names that a search lists before it gives up
	maxSearch = 20_000   // entries that a search looks at

	// How far a hostile action goes where no boundary stops it, so that a failed one harms nobody.
	extraBytes = 8 << 20 // beyond the bound of memory, scratch or output
	extraTasks = 8       // beyond the bound of processes
)

// Limits are those of every canary's recipe. Rows name the values that the container must show for them.
func Limits() evidence.Limits {
	return evidence.Limits{
		Wall: 20 * time.Second, Output: 64 << 10, Memory: 64 << 20, Scratch: 4 << 20, PIDs: 32, NanoCPUs: 1_000_000_000,
	}
}
