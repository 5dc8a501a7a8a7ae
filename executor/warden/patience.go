package warden

import (
	"time"

	"github.com/baildock/baildock/evidence/journal"
)

// age is how long ago the attempt's last event was written, by the writer's clock: a hint. A time to
// come counts as long ago.
func age(a journal.Attempt) time.Duration {
	since := time.Since(time.Unix(0, a.Events[len(a.Events)-1].Time))
	if since < 0 {
		return fencePatience
	}
	return since
}

// sinceFailure is how long an attempt is left alone yet, because recoveries of it failed: from
// firstPatience on, doubled by every fence, up to lastPatience.
func sinceFailure(a journal.Attempt) time.Duration {
	open := a.Fold.Custodies.Open()
	if !a.Fold.Fenced() || len(open) == 0 || !TriedBefore(a) {
		return 0
	}
	pause := firstPatience
	for range min(len(a.Fold.Fences), maxDoublings) - 1 {
		pause *= 2
	}
	return min(pause, lastPatience) - age(a)
}
