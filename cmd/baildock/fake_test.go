package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// proposal is what the fake daemon's agent prints.
const proposal = `{"version":1,"changes":[{"path":"dir/a.txt","hex":"68690a"},{"path":"a.txt","hex":null}]}`

// TestFakeScripts shows verbs that need runs, on a daemon that contains nothing: the commands are
// scripts of the fake daemon.
func TestFakeScripts(t *testing.T) {
	daemon := fakedaemon.Start(t, fakedaemon.Options{Engine: fakedaemon.Engine27()})
	id, err := daemon.AddImage(fakedaemon.Image{Name: "tool:1"})
	require.NoError(t, err)
	for name, steps := range map[string][]fakedaemon.Step{
		"/bin/agent":    {fakedaemon.Stdout(proposal + "\n")},
		"/bin/chatty":   {fakedaemon.Stdout("working\n" + proposal)},
		"/bin/same":     {fakedaemon.Stdout(`{"version":1,"changes":[{"path":"a.txt","hex":"746578740a"}]}`)},
		"/bin/reserved": {fakedaemon.Stdout(`{"version":1,"changes":[{"path":".GIT/hooks/x","hex":"00"}]}`)},
		"/bin/check":    {fakedaemon.Stdout("fine\n")},
		"/bin/fails":    {fakedaemon.Stderr("no\n"), fakedaemon.Exit(1)},
	} {
		daemon.Script(name, fakedaemon.Program{Steps: steps})
	}
	scripts(t, filepath.Join("testdata", "fake"), 2, func(e *testscript.Env) error {
		e.Values[daemonKey{}] = daemon
		e.Setenv("SOCKET", daemon.Socket)
		e.Setenv("IMAGE", id)
		return nil
	}, "attempt", "candidate", "change", "images", "judgement", "rerun")
	require.Empty(t, daemon.Containers(), "every container was removed")
}
