// Package docker drives Docker Engine for one contained command: it implements executor.Driver over
// one local Unix socket with the Engine API.
//
// # What it never does
//
// It reads no DOCKER_* variable, context, configuration or credential. It pulls nothing, mounts no
// socket, runs no exec, and has no way to ask for a privilege: the create request is rendered from
// an executor.Plan, which has no field for one. It never retries: an unanswered call is reported as
// such, and what it means is its caller's decision.
//
// # Calls
//
// Each call has a connection of its own, a deadline (5 s; 30 s for create) and a bound on its
// reply (256 KiB). Streams have bounds of their own; limits.go lists all with reasons. The API
// version is negotiated by the first call and kept. A failure is an *executor.Fault. Answered is
// true only for a complete reply with an error status; a lost, late, oversized or unreadable one
// says nothing about what the daemon did. executor.ErrAbsent is returned only when the daemon's own
// message says that exactly the container asked for doesn't exist: a 404 of another server proves
// nothing.
//
// # From profile to evidence
//
//	render.go    plan → create request; pure, golden files in testdata/create_*.json
//	compare.go   inspect reply + profile table → one Finding a control; pure
//	kernel.go    the host's /proc and cgroup files → Findings of the live process
//	identity.go  info and version replies + this machine → identity, reductions, refusals; pure
//
// The comparison is a closed world. A profile's table (evidence.Profile.Fields) rules fields by
// path; every other field of the reply must be zero, so a daemon that adds a setting this version
// has not heard of is refused until the table knows it. Lists and objects under a rule are compared
// whole. A repeated key or a reply that is not JSON makes every control unavailable.
//
// The kernel's view is read through a handle on /proc/<pid>, which the kernel binds to the process:
// a number given to another process can't be mistaken for it, and the process must stand in a
// cgroup named after the container. What can't be read is unavailable with a reason, never zero.
//
// # Example
//
//	d, err := docker.Open("/var/run/docker.sock")
//	rt, err := d.Probe(ctx)                  // identity, reductions, refusals
//	made, err := d.Create(ctx, plan)         // after custody is durable
//	in, err := d.Inspect(ctx, made.ID)
//	iso := d.Compare(plan, image, rt, in)    // any unequal finding or unknown field refuses
//	out, err := d.Attach(ctx, made.ID)
//	done, err := d.Wait(ctx, made.ID)
//	err = d.Start(ctx, made.ID)
//	exit := <-done
//	err = d.Remove(ctx, made.ID)
//	_, err = d.Inspect(ctx, made.ID)         // executor.ErrAbsent: only now it is gone
//
// Tests against a real daemon have the build tag `live`; a missing daemon fails them.
package docker
