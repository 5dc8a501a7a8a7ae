package containment_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/containment"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/schemas"
)

// largest is a run with as much to say as events can hold.
func largest(t testing.TB) (*evidencetest.History, containment.Blobs) {
	h := evidencetest.Contained()
	checks := []evidence.PreflightCheck{}
	for i := range evidence.MaxChecks {
		checks = append(checks, evidence.PreflightCheck{Name: fmt.Sprintf("c%063d", i), Result: evidence.PreflightExperimental, Code: strings.Repeat("c", 64)})
	}
	h.Preflight.Checks, h.Preflight.Result = checks, evidence.PreflightExperimental
	h.Policy.Checks = nil
	for i := range evidence.MaxChecks {
		h.Policy.Checks = append(h.Policy.Checks, evidence.CheckedRule{Name: evidence.PolicyCheck(fmt.Sprintf("c%063d", i))})
	}
	h.Recipe.Contained.Writable = nil
	for i := range evidence.MaxWritable {
		h.Recipe.Contained.Writable = append(h.Recipe.Contained.Writable, fmt.Sprintf("%02d", i)+strings.Repeat("𝄞", 500))
	}
	for i := range 64 {
		h.Environment.Committed = append(h.Environment.Committed, evidence.EnvCommitment{Name: fmt.Sprintf("V%0127d", i)})
	}
	return h, containment.Blobs{Recipe: &h.Recipe, Environment: &h.Environment, Values: values(t, h)}
}

// req P2: whatever the events hold, the object stays within its bounds and says what it left out.
func TestLargest(t *testing.T) {
	h, blobs := largest(t)
	e := containment.Of(fold(t, h, false), blobs)
	b, err := e.Marshal()
	require.NoError(t, err)
	require.NoError(t, valid(t, schema(t), b))
	require.LessOrEqual(t, len(b), containment.MaxBytes)
	require.Greater(t, e.Preflight.Omitted, 0)
	require.Equal(t, evidence.MaxChecks, e.Preflight.Omitted+len(e.Preflight.Checks))
	require.Equal(t, e.Controls.Total, e.Controls.Omitted+len(e.Controls.List))
	require.Equal(t, e.Controls.Total, e.Controls.Held, "what is left out of a list is counted")
	t.Logf("%d bytes", len(b))
}

// Marshal and Parse refuse what isn't an object of this version, and so does the schema.
func TestRefused(t *testing.T) {
	s := schema(t)
	good := func() containment.Evidence {
		h := evidencetest.Contained()
		return containment.Of(fold(t, h, true), whole(t, h))
	}
	for name, bend := range map[string]func(*containment.Evidence){
		"another name":       func(e *containment.Evidence) { e.Schema = "agent" },
		"another version":    func(e *containment.Evidence) { e.Version = 2 },
		"containment":        func(e *containment.Evidence) { e.Containment = "yes" },
		"claim":              func(e *containment.Evidence) { e.Claim = "total" },
		"profile":            func(e *containment.Evidence) { e.Profile = "other/v1" },
		"reduction":          func(e *containment.Evidence) { e.Reductions = []evidence.Reduction{"tired"} },
		"requested":          func(e *containment.Evidence) { e.Requested.State = "held" },
		"preflight":          func(e *containment.Evidence) { e.Preflight.State = "known" },
		"preflight check":    func(e *containment.Evidence) { e.Preflight.Checks[0].Result = "fine" },
		"image":              func(e *containment.Evidence) { e.Image.State = "held" },
		"controls":           func(e *containment.Evidence) { e.Controls.State = "known" },
		"control":            func(e *containment.Evidence) { e.Controls.List[0].State = "requested" },
		"evidence":           func(e *containment.Evidence) { e.Controls.List[0].Evidence = "believed" },
		"environment":        func(e *containment.Evidence) { e.Environment.State = "held" },
		"workspace":          func(e *containment.Evidence) { e.Workspace.State = "held" },
		"policy":             func(e *containment.Evidence) { e.Workspace.Policy.State = "fine" },
		"execution":          func(e *containment.Evidence) { e.Execution.State = "ok" },
		"stage":              func(e *containment.Evidence) { e.Execution.Stage = "lunch" },
		"cleanup":            func(e *containment.Evidence) { e.Cleanup.State = "held" },
		"copy":               func(e *containment.Evidence) { e.Cleanup.Workspace = "gone" },
		"container":          func(e *containment.Evidence) { e.Cleanup.Containers[0].State = "gone" },
		"long text":          func(e *containment.Evidence) { e.Requested.Executable = strings.Repeat("a", 513) },
		"null list":          func(e *containment.Evidence) { e.Environment.Fixed = nil },
		"long list":          func(e *containment.Evidence) { e.Environment.Fixed = make([]string, 65) },
		"large as a whole":   func(e *containment.Evidence) { e.Environment.Fixed = many(64); e.Environment.Configured = many(64) },
		"text that's broken": func(e *containment.Evidence) { e.Execution.Detail = "\xff" },
	} {
		e := good()
		bend(&e)
		_, err := e.Marshal()
		require.Error(t, err, name)
		if name == "large as a whole" || name == "text that's broken" {
			continue // JSON Schema counts no bytes, and JSON holds no broken text
		}
		b := e.JSON()
		require.Error(t, valid(t, s, b), name)
		_, err = containment.Parse(b)
		require.Error(t, err, name)
	}
	b, err := good().Marshal()
	require.NoError(t, err)
	for _, text := range []string{"", "null", "{}", string(b) + " ", " " + string(b), string(b) + string(b), string(b[:len(b)-1]) + `,"more":1}`,
		strings.Replace(string(b), `"version":1,`, `"version":1,"version":1,`, 1), strings.Replace(string(b), `:`, `: `, 1),
		strings.Repeat(" ", containment.MaxBytes) + string(b)} {
		_, err := containment.Parse([]byte(text))
		require.Error(t, err, "%.40q", text)
	}
}

func many(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Repeat("x", 500)
	}
	return all
}

// Schemas stand alone; those that hold the object hold all of it.
func TestSchemasAgree(t *testing.T) {
	defs := func(name string) map[string]any {
		s, err := schemas.Find(name)
		require.NoError(t, err)
		var doc struct {
			Defs map[string]any `json:"$defs"`
		}
		require.NoError(t, json.Unmarshal([]byte(s.Text), &doc))
		return doc.Defs
	}
	own := defs("containment-evidence")
	require.NotEmpty(t, own)
	for _, name := range []string{"verify", "inspect"} {
		for def, want := range own {
			require.Equal(t, want, defs(name)[def], "%s in %s", def, name)
		}
	}
}
