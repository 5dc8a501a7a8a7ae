package report_test

import (
	"bytes"
	"encoding/json"
	"html"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/containment"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
)

// containmentOf is the section of a report's first attempt, and the object it shows.
func containmentOf(t *testing.T, h *evidencetest.History, withhold ...bundle.Class) (verify.Report, report.Section, containment.Evidence) {
	t.Helper()
	f, file := exported(t, h, withhold...)
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.NotEqual(t, verify.Invalid, r.Verdict, "%v", r.Checks)
	for _, s := range report.Of(r).Parts[0].Sections {
		if s.Key == "containment" {
			return r, s, r.Attempts[0].Containment
		}
	}
	t.Fatal("no section on containment")
	return r, report.Section{}, containment.Evidence{}
}

func shownFacts(s report.Section) (out []string) {
	for _, f := range s.Facts {
		out = append(out, string(f.Name)+": "+string(f.Value))
	}
	return out
}

// req P3: every format shows the one object of the verification.
func TestContainmentInEveryFormat(t *testing.T) {
	r, s, e := containmentOf(t, evidencetest.Contained())
	b, err := e.Marshal()
	require.NoError(t, err)
	back, err := containment.Parse(b)
	require.NoError(t, err)
	require.Equal(t, e, back)
	shown := shownFacts(s)
	require.Equal(t, report.Shown("Containment: contained"), s.Title)
	require.Contains(t, shown, "requested: known: platform linux-docker-engine, network none, image provenance digest-required, tool with 2 arguments")
	require.Contains(t, shown, "writable: ${RUN_ROOT}/workspace")
	require.Contains(t, shown, "preflight: daemon: experimental (cgroup-v1)")
	require.Contains(t, shown, "controls: held: 46 of 46 observed and equal on the container that ran")
	require.Contains(t, shown, "environment: known: fixed HOME, LANG, LC_ALL, PATH; configured API_TOKEN; values not recorded")
	require.Contains(t, shown, "workspace: changed: 0 modified, 1 added, 0 deleted, 0 renamed")
	require.Contains(t, shown, "policy: kept")
	require.Contains(t, shown, "policy: max_files: held")
	require.Contains(t, shown, "cleanup: complete: 1 containers, workspace removed")

	view := report.Of(r)
	for _, format := range report.Formats() {
		var out bytes.Buffer
		require.NoError(t, report.Write(&out, format, view))
		text := html.UnescapeString(out.String())
		require.NotContains(t, text, evidencetest.Secret)
		for _, fact := range s.Facts {
			want := string(fact.Value)
			switch format {
			case report.FormatJSON:
				quoted, err := json.Marshal(want)
				require.NoError(t, err)
				want = string(quoted)
			case report.FormatMarkdown:
				text = strings.ReplaceAll(text, "`", "")
			}
			require.Contains(t, text, want, "%s: %s", format, fact.Name)
		}
	}
}

// req P3: what goes wrong reads so, and what is withheld reads withheld.
func TestContainmentThatIsNot(t *testing.T) {
	h := evidencetest.Contained()
	none := uint64(0)
	p := evidence.WorkspacePolicy{Allowed: []string{"**"}, MaxFiles: &none}.Normal()
	encoded, err := p.Marshal()
	require.NoError(t, err)
	d, err := p.Digest()
	require.NoError(t, err)
	terms := *h.Recipe.Contained
	terms.Policy = &d
	h.Plain, h.Recipe.Contained, h.Registered.Policy, h.Policy.Policy = [][]byte{encoded}, &terms, &d, d
	h.Registered.Recipe = h.Recipe.Digest()
	h.Custody.Request = h.Request()
	h.Policy.Checks[1].Held = false
	_, s, _ := containmentOf(t, h)
	require.Contains(t, s.Facts, report.Fact{Name: "policy", Value: "max_files: BROKEN", Tone: report.Bad})
	require.Contains(t, s.Facts, report.Fact{Name: "policy", Value: "broken", Tone: report.Bad})

	_, s, e := containmentOf(t, evidencetest.Contained(), bundle.ClassRecipe, bundle.ClassEnv)
	require.Equal(t, containment.StateWithheld, e.Requested.State)
	require.Contains(t, shownFacts(s), "environment: withheld: fixed HOME, LANG, LC_ALL, PATH; configured none; values not recorded")
	require.Contains(t, shownFacts(s), "image: bound: configured withheld, repository digest withheld, local ID withheld, of the container withheld")

	_, s, e = containmentOf(t, evidencetest.Success())
	require.Equal(t, containment.NotApplicable, e.Containment)
	require.Equal(t, report.Shown("Containment: not applicable, the profile is command/v1"), s.Title)
	require.Contains(t, shownFacts(s), "preflight: not applicable")
	require.NotContains(t, strings.Join(shownFacts(s), "\n"), "policy")

	h = evidencetest.Contained()
	h.Exited.Interference = []string{"update"}
	h.Isolation.Controls[0].Kind = "accepted"
	_, s, _ = containmentOf(t, h)
	require.Contains(t, strings.Join(shownFacts(s), "\n"), "; somebody acted on the container afterwards")
	require.Contains(t, s.Facts, report.Fact{Name: "controls", Tone: report.Bad,
		Value: "not held: 46 of 46 observed and equal on the container that ran; somebody acted on the container afterwards"})
}
