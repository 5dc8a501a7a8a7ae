// Package warden runs attempts against the ledger: it locks and claims one, puts its source in
// place, lets package executor drive the container, removes the source and finishes the attempt.
// It also ends attempts in place of their runners: for an operator, and unattended.
// Whatever it knows it reads from events, and whatever it does is an event first.
//
// Words: a home is the directory that ledger, keys, locks and snapshots lie in; the lock of an
// attempt is a file in it that its runner holds for as long as it works; the watchdog is another
// process that kills the container when its runner dies; the hard deadline is the moment after
// which even a living runner may be fenced; a probe is an attempt of baildock's own binary that
// shows what a daemon's interface can't.
//
//	dog, err := warden.StartWatchdog("/proc/self/exe", "watchdog", "--docker-socket", socket)
//	defer dog.Close()
//	w := warden.New(warden.Config{Home: home, Journal: j, Driver: d, Watchdog: dog, …})
//	res, err := w.Run(ctx, warden.RunRequest{Attempt: "nightly-7", Path: "/src/project", Accepted: accepted}, progress)
//	os.Exit(res.Verdict.Exit)
//
// An attempt is taken from its runner by a fence, an event that makes the next generation: nothing
// the runner appends afterwards is stored. Then its custody is closed by the same steps a runner
// takes, its directories are removed and it is finished; what can't be confirmed gone leaves it
// running, with the generation to retry at. A supervisor does so for the attempts of this home whose
// lock is free:
//
//	res, err := w.Recover(ctx, warden.RecoverRequest{Attempt: "nightly-7", Generation: 1, By: evidence.FencedByCancel, Reason: "…"}, progress)
//	met, err := w.Supervise(ctx, warden.Pass{Lister: projection, Audit: true}, progress)
//
// What lies in a home for an attempt:
//
//	locks/<attempt>                                  the lock; deleted once the attempt is finished
//	execution/<attempt>/<generation>/snapshot-<32 hex>   its source; removed once no container can mount it
//
// The watchdog is a child of the same binary in a session of its own. It reads the container's
// full ID from its standard input, never from its arguments, answers `guarding`, and waits. A line
// `release` ends it; the end of the input means that the runner died, and the container is killed
// by full ID until it is seen exited, absent, or still only created a minute later.
package warden
