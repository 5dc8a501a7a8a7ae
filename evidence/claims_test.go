package evidence_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// triggers are the facts that each statement needs, all of them and no others.
var triggers = map[evidence.StatementID][]string{
	"BD-C1": {"Authentic"}, "BD-C2": {"Rederived"}, "BD-C3": {"Complete"}, "BD-C4": {"Witnessed"},
	"BD-C5": {"Rederived", "Started"}, "BD-C6": {"Rederived", "Mutations"}, "BD-C7": {"Qualified"},
	"BD-N1": {"Attempts"}, "BD-N2": {"Started"}, "BD-N3": {"Started"}, "BD-N4": {"Started"}, "BD-N5": {"Started"},
	"BD-N6": {"Toolchain"}, "BD-N7": {"NoToolchain"}, "BD-N8": {"Attempts"}, "BD-N9": {"Placed"}, "BD-N10": {"Placed"},
	"BD-N11": {"Unbound"}, "BD-N12": {"Reduced"}, "BD-N13": {"Missing"}, "BD-N14": {"Endorsed"}, "BD-N15": {"Attempts"},
	"BD-N16": {"Unqualified"}, "BD-N17": {"Contained"}, "BD-N18": {"Agent"}, "BD-N19": {"Bridge"}, "BD-N20": {"Desktop"},
	"BD-N21": {"Policy"}, "BD-N22": {"Agent"}, "BD-N23": {"Uncontained"}, "BD-N24": {"Qualified"},
}

func showing(facts ...string) (s evidence.Showing) {
	for _, f := range facts {
		reflect.ValueOf(&s).Elem().FieldByName(f).SetBool(true)
	}
	return s
}

func applies(s evidence.Showing, id evidence.StatementID) bool {
	for _, one := range s.Statements() {
		if one.ID == id {
			return true
		}
	}
	return false
}

// req P4: each statement of the catalogue fires on its trigger, not without any part of it, and on no
// other fact; each fact is some statement's.
func TestStatementTriggers(t *testing.T) {
	require.Empty(t, evidence.Showing{}.Statements())
	used := map[string]bool{}
	for _, s := range evidence.Catalogue() {
		facts := triggers[s.ID]
		require.NotEmpty(t, facts, "%s has no trigger here", s.ID)
		require.Equal(t, s.Claim, strings.HasPrefix(string(s.ID), "BD-C"), s.ID)
		require.True(t, applies(showing(facts...), s.ID), s.ID)
		var others []string
		for i := range reflect.TypeFor[evidence.Showing]().NumField() {
			others = append(others, reflect.TypeFor[evidence.Showing]().Field(i).Name)
		}
		for i, f := range facts {
			used[f] = true
			require.False(t, applies(showing(append(append([]string{}, facts[:i]...), facts[i+1:]...)...), s.ID), "%s without %s", s.ID, f)
			without := []string{}
			for _, o := range others {
				if o != f {
					without = append(without, o)
				}
			}
			require.False(t, applies(showing(without...), s.ID), "%s on everything but %s", s.ID, f)
		}
	}
	require.Len(t, evidence.Catalogue(), len(triggers))
	require.Len(t, used, reflect.TypeFor[evidence.Showing]().NumField())
	require.Len(t, showing("Attempts", "Authentic").Statements(), 4)
}

// The facts of an attempt come from its record.
func TestShowAttempt(t *testing.T) {
	facts := func(bend func(*evidencetest.History), h *evidencetest.History) (on []string) {
		bend(h)
		a, err := evidence.Fold(h.Events()...)
		require.NoError(t, err)
		var s evidence.Showing
		s.ShowAttempt(evidence.RecordOf(&a))
		v := reflect.ValueOf(s)
		for i := range v.NumField() {
			if v.Field(i).Bool() {
				on = append(on, v.Type().Field(i).Name)
			}
		}
		return on
	}
	none := func(*evidencetest.History) {}
	require.Equal(t, []string{"Attempts", "Started", "NoToolchain", "Unbound", "Reduced", "Uncontained", "Unqualified"}, facts(none, evidencetest.Success()))
	require.Equal(t, []string{"Attempts", "Started", "NoToolchain", "Unbound", "Reduced", "Contained", "Agent", "Mutations", "Policy", "Unqualified"}, facts(none, evidencetest.Contained()))
	require.Equal(t, []string{"Attempts", "NoToolchain", "Unbound", "Contained"}, facts(func(h *evidencetest.History) {
		*h = evidencetest.History{Registered: h.Registered}
	}, evidencetest.Contained()))
	require.Contains(t, facts(func(h *evidencetest.History) {
		*h = evidencetest.History{Registered: h.Registered}
		h.Registered.Toolchain = &evidence.ToolchainDigest{1}
	}, evidencetest.Success()), "Toolchain")

	bridge, err := evidence.Recipe{Profile: evidence.ProfileContained, Contained: &evidence.ContainedTerms{Network: evidence.NetworkBridge}}.Table()
	require.NoError(t, err)
	var s evidence.Showing
	s.ShowAttempt(evidence.Record{Profile: evidence.ProfileContained, Table: bridge.Digest(), Claim: evidence.ClaimReduced, Reductions: []evidence.Reduction{evidence.ReducedDesktop}})
	require.True(t, s.Bridge)
	require.True(t, s.Desktop)
	s.ShowAttempt(evidence.Record{Profile: evidence.ProfileCommand})
	require.True(t, s.Bridge && s.Uncontained && s.Contained, "one attempt takes nothing from another")
}

// docs/claims.md is printed from the catalogue; BAILDOCK_UPDATE=1 writes it.
func TestClaimsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What evidence shows, and what it doesn't\n\n" +
		"Printed from the catalogue in package `evidence`; a test compares the two. `verify` and every report print the\n" +
		"statements that apply to what they show, and no others. IDs are never reused.\n")
	for _, part := range []struct {
		claim bool
		title string
	}{{true, "Claims"}, {false, "Non-claims"}} {
		fmt.Fprintf(&b, "\n## %s\n\n| ID | statement | printed when |\n|---|---|---|\n", part.title)
		for _, s := range evidence.Catalogue() {
			if s.Claim == part.claim {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", s.ID, s.Text, when(triggers[s.ID]))
			}
		}
	}
	const path = "../docs/claims.md"
	if os.Getenv("BAILDOCK_UPDATE") == "1" {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(have))
}

func when(facts []string) string {
	words := map[string]string{
		"Authentic": "everything that was checked is good", "Rederived": "outcome and record were derived again",
		"Complete": "claim and completeness were checked", "Witnessed": "the reader's witness policy is met",
		"Placed": "the evidence is as of an index", "Endorsed": "only the bundle key is trusted", "Missing": "blobs are missing",
		"Attempts": "an attempt is shown", "Started": "a command was started", "Toolchain": "a toolchain is bound",
		"NoToolchain": "no toolchain is bound", "Unbound": "an attempt is bound to no change", "Reduced": "a claim is reduced",
		"Contained": "a contained run is shown", "Agent": "an agent was started", "Uncontained": "another run is shown",
		"Bridge": "the network was bridge", "Desktop": "the platform is a desktop's", "Mutations": "what an agent changed is known",
		"Policy": "a workspace policy was checked", "Qualified": "a judgement that stands rests on a qualified runtime",
		"Unqualified": "a command was started, and no judgement rests on a qualified runtime",
	}
	all := make([]string, len(facts))
	for i, f := range facts {
		all[i] = words[f]
	}
	return strings.Join(all, "; ")
}
