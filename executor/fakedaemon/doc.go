// Package fakedaemon is a Docker daemon for tests: the Engine API over a real Unix socket, with
// images, containers, networks and events, but without containers. The official client and
// executor/docker talk to it unchanged. What a container runs is a script, and every call can go
// wrong in every way that a daemon, a connection or somebody else with the socket can make it.
//
// # Use
//
//	d := fakedaemon.Start(t, fakedaemon.Options{Images: []fakedaemon.Image{{Name: "tool:1"}}})
//	d.Script("/bin/tool --all", fakedaemon.Program{Steps: []fakedaemon.Step{
//		fakedaemon.Stdout("hello\n"), fakedaemon.Sleep(time.Second), fakedaemon.Exit(3)}})
//	d.Fault(fakedaemon.Fault{Call: fakedaemon.CallCreate, Effect: fakedaemon.DropReply{}})
//	driver, err := docker.Open(d.Socket)
//	…
//	require.Zero(t, d.Count(fakedaemon.CallStart), "no start was sent")
//	require.Empty(t, d.Containers())
//
// Start ends the daemon, and every goroutine of it, with the test. Serve is the same in a process
// of its own.
//
// # Words
//
// A Call is a kind of request; Calls lists them. A Program is the script of a container's process,
// chosen by command line, executable or image (Daemon.Script), or by a function
// (Options.Program). A Fault lets an Effect hit some requests of one call: the nth, every second,
// all from the nth on. Kinds lists the kinds of effects, Default gives the plain fault of a kind
// on a call, and Cells gives the whole table, for tests that enumerate it. An Action is what
// somebody else does to a container: at a moment given by a request (Interfere), by a step of its
// program (Suffer), or now (Daemon.Interfere).
//
// An effect acts at one of five places in a request's life:
//
//	before doing, unlocked    Refuse, DropBefore, Slow, Late
//	directly before doing     Replaced, Swapped, Changed, Interfere{Before}
//	instead of doing          Absent, Ignored
//	directly after doing      Interfere, FailedDone, Warned, Malformed, RepeatedKey, Oversized,
//	                          Override, Missing, WrongLabel, NoLabel, Flip
//	while sending             DropReply, SlowReply, Stalled, Truncated; of streams Cut, Silent, Lost
//
// To spoil only what is read before the start, or only after the exit, let Fault.If look at the
// state of the container a request names:
//
//	d.Fault(fakedaemon.Fault{Call: fakedaemon.CallInspect, Times: fakedaemon.Always,
//		If:     func(r fakedaemon.Request) bool { return r.State == "exited" },
//		Effect: fakedaemon.Override{Pointer: "/HostConfig/Memory", Value: 0}})
//
// Requests records every request with its path and body. Containers, EventLog and Inspection tell
// the truth whatever the faults made the replies say.
//
// # What it is like, and what it isn't
//
// Replies have the fields, order, empty values, status codes, header and error texts of Engine
// 20.10 (API 1.41), as observed on one; a live test holds its inspect and list replies, and the
// events of a run, against the real daemon's. Engine27 (API 1.47) follows the published API
// description. Some habits of the daemon that its users must survive are kept on purpose:
//
//   - removing a container answers a wait for its next exit with status 0 if it never ran;
//   - an attached client of a container that isn't running is left hanging by its removal;
//   - an explicit network disconnect of a running container is reported twice;
//   - a container on the network none can't be connected to another before it left none;
//   - a start that fails leaves the container created, with an exit code and an error text;
//   - a daemon that restarts without live restore reports no exit for what it killed.
//
// It differs where nothing real is behind it. A kill takes effect before its reply; there is no
// wait between stop signal and SIGKILL. Execs do nothing and exit 0. Copies move nothing. A
// container's PID belongs to no process, unless the test gives it one. Restart policies,
// auto-removal, health checks, logs and builds are recorded or missing, never acted on. Events are
// never dropped for a slow reader.
package fakedaemon
