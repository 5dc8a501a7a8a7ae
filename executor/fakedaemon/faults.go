package fakedaemon

import "fmt"

// Fault makes an effect happen to some of the requests of one call, counted from when the fault is
// set: the Nth, and from there each Every-th, Times in all.
type Fault struct {
	Call   Call
	Nth    int                // first request hit; 0 = 1
	Times  int                // how many are hit; 0 = 1, Always = no end
	Every  int                // from one hit to the next; 0 = 1. 2 with Always makes answers flip
	If     func(Request) bool // only requests it holds for are counted; called with the daemon locked
	Effect Effect
}

// Always as Fault.Times means no end.
const Always = -1

// Effect is what a fault does. The types of this package are the only ones.
type Effect interface {
	Kind() FaultKind
}

// An effect has one or more of these, in the order of a request's life.
type (
	// gate acts before doing, without the lock; stop ends the request with the reply, if any.
	gate interface {
		gate(*exchange) (rep *reply, stop bool)
	}
	// enterer acts directly before doing, under the lock.
	enterer interface{ enter(*exchange) }
	// replacer answers in place of doing, under the lock.
	replacer interface {
		instead(*exchange) (reply, bool)
	}
	// leaver changes the world or the reply after doing, under the lock.
	leaver interface{ leave(*exchange, *reply) }
	// sender sends the reply itself, without the lock, or returns false.
	sender interface{ send(*exchange, *reply) bool }
	// pointed names a field of the reply.
	pointed interface{ pointer() string }
	// streamer sets how a stream goes wrong.
	streamer interface{ stream(*stream) }
)

// FaultKind names a kind of effect.
type FaultKind string

// The kinds of effects; each effect type tells its own.
const (
	KindRefuse      FaultKind = "refuse"       // an error status, nothing done
	KindAbsent      FaultKind = "absent"       // "no such …" about an object that is there
	KindIgnored     FaultKind = "ignored"      // success, nothing done
	KindDropBefore  FaultKind = "drop_before"  // connection closed, nothing done
	KindDropReply   FaultKind = "drop_reply"   // done, connection closed without a reply
	KindLate        FaultKind = "late"         // done only when released
	KindSlow        FaultKind = "slow"         // done after a while
	KindSlowReply   FaultKind = "slow_reply"   // done at once, answered after a while
	KindStalled     FaultKind = "stalled"      // half of the reply, the rest after a while
	KindTruncated   FaultKind = "truncated"    // half of the reply, then the connection closes
	KindMalformed   FaultKind = "malformed"    // not JSON, not a frame
	KindRepeatedKey FaultKind = "repeated_key" // JSON that names a key twice
	KindOversized   FaultKind = "oversized"    // beyond every bound
	KindFailedDone  FaultKind = "failed_done"  // done, yet answered with an error status
	KindDeniedDone  FaultKind = "denied_done"  // done, yet answered that the request was at fault
	KindOverride    FaultKind = "override"     // a field of the reply has another value
	KindMissing     FaultKind = "missing"      // a field of the reply is left out
	KindWrongLabel  FaultKind = "wrong_label"  // a label has another value
	KindNoLabel     FaultKind = "no_label"     // a label is left out
	KindFlip        FaultKind = "flip"         // every second answer is overridden
	KindWarned      FaultKind = "warned"       // a create with warnings
	KindCut         FaultKind = "cut"          // a stream that breaks in the middle
	KindSilent      FaultKind = "silent"       // a stream that stays open and says nothing more
	KindLost        FaultKind = "lost"         // events that never come
	KindReplaced    FaultKind = "replaced"     // another engine ID from now on, the same objects
	KindSwapped     FaultKind = "swapped"      // another daemon from now on, without our objects
	KindChanged     FaultKind = "changed"      // other runtime facts from now on
	KindInterfere   FaultKind = "interfere"    // somebody else acts on the container
)

// Kinds lists every kind.
func Kinds() []FaultKind {
	return []FaultKind{
		KindRefuse, KindAbsent, KindIgnored, KindDropBefore, KindDropReply, KindLate, KindSlow, KindSlowReply, KindStalled, KindTruncated,
		KindMalformed, KindRepeatedKey, KindOversized, KindFailedDone, KindDeniedDone, KindOverride, KindMissing, KindWrongLabel, KindNoLabel, KindFlip,
		KindWarned, KindCut, KindSilent, KindLost, KindReplaced, KindSwapped, KindChanged, KindInterfere,
	}
}

// armed is a fault that was set.
type armed struct {
	Fault
	seen int // requests counted so far
}

func (a *armed) hits(r *Request) bool {
	if a.Call != r.Call || a.If != nil && !a.If(*r) {
		return false
	}
	a.seen++
	first, every, times := max(a.Nth, 1), max(a.Every, 1), a.Times
	if times == 0 {
		times = 1
	}
	since := a.seen - first
	return since >= 0 && since%every == 0 && (times < 0 || since/every < times)
}

// Fault sets faults. Several may hit the same request: each acts in the order it was set.
func (d *Daemon) Fault(faults ...Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range faults {
		if f.Effect == nil || routeOf(f.Call) == nil {
			panic(fmt.Sprintf("fake daemon: fault on %q with effect %T", f.Call, f.Effect))
		}
		if p, ok := f.Effect.(pointed); ok {
			checkPointer(p.pointer())
		}
		d.faults = append(d.faults, &armed{Fault: f})
	}
}

// ClearFaults takes every fault back. Calls that are still to complete stay so.
func (d *Daemon) ClearFaults() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = nil
}

func (d *Daemon) hit(r *Request) []Effect {
	var hits []Effect
	for _, a := range d.faults {
		if a.hits(r) {
			hits = append(hits, a.Effect)
			r.Faults = append(r.Faults, string(a.Effect.Kind()))
		}
	}
	return hits
}
