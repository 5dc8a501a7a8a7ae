package executor

import "time"

// Bounds of one run, apart from those of the driver's own calls (req C7) and of the recipe.
const (
	// recordBound is how long one append or blob may take before the run goes on without it. A
	// ledger on a healthy disk answers in milliseconds; a minute would keep a container alive for
	// a disk that never answers.
	recordBound = 30 * time.Second
	// stalledBound replaces recordBound once an append stalled: whatever is left is cleanup.
	stalledBound = time.Second
	// stopBound is how long a stop event is tried; the kill goes out beside it (req D5).
	stopBound = time.Second

	// drainBound is how long output may come after the exit. The daemon closes the streams with
	// the container; later output belongs to a writer that outlived it.
	drainBound = 5 * time.Second
	// exitBound is how long a killed container may take to be seen exited.
	exitBound = 15 * time.Second
	// dieBound is how long the die event may follow the exit; it takes about a millisecond.
	dieBound = 2 * time.Second
	// killPause lies between two tries of a kill that failed.
	killPause = 100 * time.Millisecond

	// removalBound and removalCalls bound what is tried until a container is seen absent.
	removalBound = 30 * time.Second
	removalCalls = 64
	// ReconcileBound and ReconcileCalls bound what is asked of the daemon to close one custody after its
	// runner: a probe, a look-up, an inspection, the removal, and a probe again.
	ReconcileBound = removalBound + 4*daemonBound
	ReconcileCalls = 1 + 1 + 1 + 2*(removalCalls+1) + 1
	// daemonBound is the longest that one call of the driver may take, the create apart.
	daemonBound = 15 * time.Second
	// pollFirst doubles up to pollLast between two looks at a container that is going away.
	pollFirst = 2 * time.Millisecond
	pollLast  = 250 * time.Millisecond

	// sampleEvery is how often the kernel's count of memory kills is read while the container
	// lives; an oom event leads to a sample at once.
	sampleEvery = 100 * time.Millisecond
	// gaugeEvery is how often a workspace is looked at while its command runs; a look that took longer
	// is followed by gaugeRest times its own length.
	gaugeEvery = 500 * time.Millisecond
	gaugeRest  = 10
	// gaugeBound is how long the last look may take: a few hundred thousand entries take a second.
	gaugeBound = 10 * time.Second
	// teeBound is how long the copy of the output may still be written once the run is over.
	teeBound = 2 * time.Second

	// maxEarlyEvents is how many events are kept before the container's ID is known: a busy host
	// makes a few hundred during the longest create.
	maxEarlyEvents = 8192
	// maxDetail is the length of a detail text, in bytes; what is cut off says so.
	maxDetail = 16 << 10
)

// Allowance is the longest a run may take beside its command's wall time: every bound above and
// every deadline of the driver, one after the other, with all appends stalled. Look 15 s, create
// and its look-up 35 s, inspection 20 s, start 5 s, kernel 10 s, exit and drain 40 s, removal
// 50 s, appends 150 s; rounded up.
const Allowance = 6 * time.Minute
