package faults

import (
	"bytes"
	"net/http"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/fakedaemon"
)

const (
	wall        = 20 * time.Second // of every scene: longer than the driver's deadline for a call
	outputLimit = 4 << 10
)

// scene is one attempt and how it ends when nothing fails.
type scene struct {
	name    string
	program fakedaemon.Program
	engine  fakedaemon.Engine
	agent   bool               // an agent that edits its workspace first, under a policy that its edits keep
	cancel  time.Duration      // the caller gives up after it; 0 = never
	faults  []fakedaemon.Fault // that belong to the scene
	outcome evidence.Outcome   // undisturbed
	detail  string             // undisturbed
}

func steps(s ...fakedaemon.Step) fakedaemon.Program { return fakedaemon.Program{Steps: s} }

var scenes = []scene{
	{
		name: "good", outcome: evidence.OutcomeSuccess, detail: "ok",
		program: steps(fakedaemon.Stdout("hello\n"), fakedaemon.Stderr("warning\n"), fakedaemon.Sleep(10*time.Millisecond), fakedaemon.Exit(0)),
	},
	{
		name: "named", outcome: evidence.OutcomeSuccess, detail: "ok", engine: fakedaemon.Engine27(),
		program: steps(fakedaemon.Stdout("hello\n"), fakedaemon.Stderr("warning\n"), fakedaemon.Sleep(10*time.Millisecond), fakedaemon.Exit(0)),
	},
	{
		name: "fails", outcome: evidence.OutcomeFailed, detail: "exit_nonzero",
		program: steps(fakedaemon.Stdout("no\n"), fakedaemon.Exit(3)),
	},
	{
		name: "hangs", outcome: evidence.OutcomeTimedOut, detail: "timeout",
		program: steps(fakedaemon.Stdout("well\n"), fakedaemon.Never()),
	},
	{
		name: "cancelled", outcome: evidence.OutcomeCancelled, detail: "cancelled", cancel: 3 * time.Second,
		program: steps(fakedaemon.Never()),
	},
	{
		name: "floods", outcome: evidence.OutcomeOutputLimit, detail: "output_limit",
		program: steps(fakedaemon.Write(false, bytes.Repeat([]byte("x"), outputLimit+1)), fakedaemon.Never()),
	},
	{
		name: "child out of memory", outcome: evidence.OutcomeIncomplete, detail: "oom",
		program: steps(fakedaemon.ChildOOM(), fakedaemon.Exit(0)),
	},
	{
		name: "killed", outcome: evidence.OutcomeIncomplete, detail: "exit_137",
		program: steps(fakedaemon.Exit(137)),
	},
	{
		name: "not startable", outcome: evidence.OutcomeIncomplete, detail: "start_failed",
		program: fakedaemon.Program{StartError: &fakedaemon.StartError{}},
	},
	{
		name: "writer left behind", outcome: evidence.OutcomeIncomplete, detail: "capture_incomplete",
		program: fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Stdout("some\n"), fakedaemon.Exit(0)}, HoldOutput: time.Minute},
	},
	{
		name: "create unanswered", outcome: evidence.OutcomeIncomplete, detail: "create_unanswered",
		program: steps(fakedaemon.Exit(0)), faults: []fakedaemon.Fault{{Call: fakedaemon.CallCreate, Effect: fakedaemon.DropReply{}}},
	},
	{
		name: "create refused", outcome: evidence.OutcomeUnavailable, detail: "create_refused",
		program: steps(fakedaemon.Exit(0)), faults: []fakedaemon.Fault{{Call: fakedaemon.CallCreate, Effect: fakedaemon.Refuse{Status: http.StatusConflict}}},
	},
	{
		name: "create denied and done", outcome: evidence.OutcomeIncomplete, detail: "create_unanswered",
		program: steps(fakedaemon.Exit(0)), faults: []fakedaemon.Fault{{Call: fakedaemon.CallCreate, Effect: fakedaemon.FailedDone{Status: http.StatusConflict}}},
	},
	{
		name: "agent", outcome: evidence.OutcomeSuccess, detail: "ok", agent: true,
		program: steps(fakedaemon.Stdout("hello\n"), fakedaemon.Stderr("warning\n"), fakedaemon.Sleep(10*time.Millisecond), fakedaemon.Exit(0)),
	},
	{
		name: "slow to die", outcome: evidence.OutcomeTimedOut, detail: "timeout",
		program: fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Never()}, KillDelay: 4 * time.Second},
	},
}
