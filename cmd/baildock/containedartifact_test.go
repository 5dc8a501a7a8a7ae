package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/redact"
	"github.com/baildock/baildock/executor/config"
	"github.com/baildock/baildock/executor/warden"
)

// Whatever ends a contained run, its artifact is what its schema says, and every text in it is bounded
// and on one line.
//
// req N5
func TestArtifactOfEveryEnd(t *testing.T) {
	hidden, err := redact.New([]byte(evidencetest.Secret))
	require.NoError(t, err)
	ends := 0
	hold := func(a artifact) string {
		b, err := encodeJSON(a, "  ")
		require.NoError(t, err)
		require.NoError(t, validate("contained-run", b), "%s", b)
		require.NotContains(t, string(b), evidencetest.Secret)
		ends++
		return string(b)
	}
	hold(newArtifact("one"))
	for i := range evidencetest.Contained().Events() {
		a := newArtifact("one")
		a.request(config.Config{Platform: evidence.PlatformEngine, Network: evidence.NetworkNone})
		a.environment(config.Resolved{Omitted: []string{"OTHER"}})
		a.command([]string{"/bin/agent", "--token", evidencetest.Secret, strings.Repeat("x", 9000), "a\nb\x1b[31m\xff"}, hidden)
		f, err := evidence.Fold(evidencetest.Contained().Events()[:i+1]...)
		require.NoError(t, err)
		after := evidence.EntryState{Type: evidence.EntryFile, Mode: 0o644}
		a.result(warden.Result{Fold: f, Verdict: evidence.VerdictOf(&f), Changes: &warden.Changes{
			Mutations: evidence.Mutations{{Path: "dir/" + evidencetest.Secret + "\n\xff", Kind: evidence.MutationAdded, After: &after}},
			Checks:    []evidence.PolicyResult{{Name: evidence.CheckMaxFiles, Held: true, Detail: strings.Repeat("d", 9000)}},
		}}, hidden)
		text := hold(a)
		require.NotContains(t, text, `\u001b`)
	}
	require.Greater(t, ends, 18)
}

// A refusal's text holds no sensitive value and none of this host's paths.
//
// req N5 req M5 req L5
func TestArtifactOfARefusal(t *testing.T) {
	hidden, err := redact.New([]byte(evidencetest.Secret))
	require.NoError(t, err)
	r := &agentRun{program: &program{ui: newUI(io.Discard, io.Discard)}, home: "/srv/somebody/home", artifact: newArtifact("one")}
	r.resolved.Redactor = hidden
	r.source = "/srv/somebody/repository"
	err = r.refuse(stageImage, errors.New("open /srv/somebody/home/x and /srv/somebody/repository/y with "+evidencetest.Secret))
	require.NotContains(t, err.Error(), evidencetest.Secret)
	require.Equal(t, "open ${RUN_ROOT}/x and ${REPOSITORY_ROOT}/y with "+redact.Marker, r.artifact.Error.What)
	require.Equal(t, exitInternal, r.artifact.Exit)
}
