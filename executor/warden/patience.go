package warden

import (
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
)

// age is how long ago an attempt's last event was written, by the writer's clock (ns since the epoch): a
// hint. A time to come counts as long ago.
func age(last int64) time.Duration {
	since := time.Since(time.Unix(0, last))
	if since < 0 {
		return fencePatience
	}
	return since
}

func lastTime(a journal.Attempt) int64 { return a.Events[len(a.Events)-1].Time }

// TriedBefore reports whether a recovery tried to close every custody that is open, in vain: only then
// may it be given up.
func TriedBefore(a journal.Attempt) bool {
	unconfirmed := map[evidence.HandleKey]bool{}
	fenced := false
	for _, e := range a.Events {
		p, _, err := journal.Decode(e)
		if err != nil {
			return false
		}
		switch p := p.(type) {
		case evidence.AttemptFenced:
			fenced = true
		case evidence.CleanupUnconfirmed:
			unconfirmed[p.Handle] = fenced
		}
	}
	return triedAll(a.Fold.Custodies, func(h evidence.HandleKey) bool { return unconfirmed[h] })
}

// triedAll reports whether some custody is open, and each that is was tried.
func triedAll(cs evidence.Custodies, tried func(evidence.HandleKey) bool) bool {
	open := cs.Open()
	for _, c := range open {
		if !tried(c.Handle) {
			return false
		}
	}
	return len(open) > 0
}

// sinceFailure is how long an attempt is left alone yet, because recoveries of it failed: from
// firstPatience on, doubled by every fence, up to lastPatience.
func sinceFailure(fences int, tried bool, last int64) time.Duration {
	if fences == 0 || !tried {
		return 0
	}
	pause := firstPatience
	for range min(fences, maxDoublings) - 1 {
		pause *= 2
	}
	return min(pause, lastPatience) - age(last)
}

// waiting is an attempt that is left alone for a while.
func waiting(generation uint64, wait time.Duration) Supervised {
	return Supervised{Action: ActionWaiting, Generation: generation,
		Detail: "a recovery could not confirm its cleanup; the next try is in " + wait.Round(time.Second).String()}
}
