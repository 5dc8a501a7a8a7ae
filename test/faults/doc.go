// Package faults breaks attempts in every way it can enumerate, and holds what is left against what
// must hold whatever happened. Nothing here is a model: the warden, the executor and the driver are
// the real ones, the daemon is executor/fakedaemon, and its state, not its replies, is the truth.
//
// Words: a site is a home, a ledger and a daemon with strangers' containers on it; a scene is one
// attempt of a scripted program that ends in one known way when nothing fails; a cell is a scene
// with one thing broken: a daemon call, an append, a process, an order of steps. After each cell the
// same invariants are checked (invariants_test.go), and again after recovery:
//
//   - the history is legal as stored, each record derives again, each byte's digest is right;
//   - only a run of which everything is true, by the daemon's own log, is a success, and nothing
//     recovered is one;
//   - no container of ours is left that open custody doesn't name, and no stranger's is touched;
//   - a create, a start and a removal follow their durable intent; each names what it means by full ID;
//   - an attempt ends once, or stays running with its open custody and exit status 6;
//   - it all takes less time than the runner's hard deadline allows.
//
// Cells run under a fake clock (testing/synctest) with connections made in memory: deadlines are the
// real ones and cost nothing, and a goroutine that outlives its run fails its cell.
//
// A race (races_test.go) has several participants on one attempt. A scheduler lets one of them at a
// time take its next step, an append or a call of the daemon, and plays every order of their steps in
// which somebody is interrupted at most so many times (orders_test.go): the bound stands at each race.
//
// The short forms run with `go test`; BAILDOCK_FULL=1 runs every cell. Each test prints how many
// cells it ran, in a line that begins with "count: " and is shown by `make test`, and asserts the number against
// one counted apart from what was broken; each random one prints its seed, which BAILDOCK_SEED repeats.
package faults
