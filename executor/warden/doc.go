// Package warden runs attempts against the ledger: it locks and claims one, puts its source in
// place, lets package executor drive the container, removes the source and finishes the attempt.
// Whatever it knows it reads from events, and whatever it does is an event first.
//
// Words: a home is the directory that ledger, keys, locks and snapshots lie in; the lock of an
// attempt is a file in it that its runner holds for as long as it works; the watchdog is another
// process that kills the container when its runner dies; the hard deadline is the moment after
// which even a living runner may be fenced; a probe is an attempt of baildock's own binary that
// shows what a daemon's interface can't; a preflight runs one more, under the controls of an agent and
// as nobody's attempt, before an agent gets anything.
//
//	dog, err := warden.StartWatchdog("/proc/self/exe", "watchdog", "--docker-socket", socket)
//	defer dog.Close()
//	w := warden.New(warden.Config{Home: home, Journal: j, Driver: d, Watchdog: dog, …})
//	res, err := w.Run(ctx, warden.RunRequest{Attempt: "nightly-7", Path: "/src/project", Accepted: accepted}, progress)
//	os.Exit(res.Verdict.Exit)
//
// What lies in a home for an attempt:
//
//	locks/<attempt>                                  the lock; deleted once the attempt is finished
//	execution/<attempt>/<generation>/snapshot-<32 hex>   its source; removed once no container can mount it
//	execution/.preflight-<32 hex>, and its .lock     the marker that a preflight's probe reads; removed with it, or by the next one
//
// The watchdog is a child of the same binary in a session of its own. It reads the container's
// full ID from its standard input, never from its arguments, answers `guarding`, and waits. A line
// `release` ends it; the end of the input means that the runner died, and the container is killed
// by full ID until it is seen exited, absent, or still only created a minute later.
package warden
