// Package executor drives a container daemon for one attempt: it observes the daemon, creates one
// container from one plan, holds it against its profile, starts it, watches it, captures its
// output, and removes it, telling a Recorder each step. It knows no ledger, reaches no verdict,
// and claims nothing that it did not observe.
//
// Words: a driver speaks to a daemon (executor/docker is one); a plan is everything a create is
// rendered from; a sighting is a daemon and image before the create; a finding is one control as
// found; custody is the recorded claim on a container that may exist; a guard is the watchdog of
// one container.
//
//	err := executor.Run(ctx, executor.Config{Driver: d, Recorder: rec, Watchdog: w}, executor.Job{
//		Attempt: "fmt-1", Profile: profile, Recipe: recipe, Environment: env,
//		Request: request.Digest(), Source: snapshot.Dir, Accepted: accepted,
//	})
//
// The order of events is fixed, and each is durable before the step after it is taken:
//
//	RuntimeObserved(before_create)                      the daemon, the image; refusals end here
//	CustodyTaken                                        before the create is sent
//	ContainerCreated | CreateRuledOut                   the ID, or proof that there is none
//	RuntimeObserved(before_start) IsolationObserved StartOrdered      one commit; the last only if all is equal
//	ContainerStarted | StartFailed
//	KernelObserved
//	StopOrdered                                         tried for a second beside the kill
//	ContainerExited OutputCaptured RuntimeObserved(after_exit)        one commit
//	RemovalOrdered
//	RemovalObserved | CleanupUnconfirmed                the daemon says "no such container", or custody stays open
//
// Rules that hold everywhere: a call's lost answer proves nothing; a kill waits for nobody; the
// caller's cancelled context stops the command, never the record or the cleanup; what can't be
// read is unequal; whatever ends a run, panics included, cleanup runs and custody is closed only
// by an inspection that finds nothing.
package executor
