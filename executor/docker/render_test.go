package docker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// req C4, req N4: equal plans give equal bytes, and the profile is named where the API can.
func TestRenderGolden(t *testing.T) {
	for _, c := range []struct {
		naming evidence.SeccompNaming
		file   string
	}{{evidence.SeccompReported, "create_reported.json"}, {evidence.SeccompNamed, "create_named.json"}} {
		req, err := render(goldenPlan(c.naming))
		require.NoError(t, err)
		golden(t, c.file, indent(t, req))
		again, err := render(goldenPlan(c.naming))
		require.NoError(t, err)
		require.Equal(t, req, again)
	}
}

// req N4: no plan, whatever it holds, can be rendered into privileges.
func TestRenderRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*executor.Plan){
		"relative source":     func(p *executor.Plan) { p.Source = "snapshot" },
		"unclean source":      func(p *executor.Plan) { p.Source = "/srv/../etc" },
		"source with colon":   func(p *executor.Plan) { p.Source = "/srv/a:b" },
		"source with comma":   func(p *executor.Plan) { p.Source = "/srv/a,readonly=false" },
		"source with newline": func(p *executor.Plan) { p.Source = "/srv/a\nb" },
		"source with NUL":     func(p *executor.Plan) { p.Source = "/srv/a\x00b" },
		"no name":             func(p *executor.Plan) { p.Name = "" },
		"path as name":        func(p *executor.Plan) { p.Name = "../x" },
		"long name":           func(p *executor.Plan) { p.Name = strings.Repeat("a", 129) },
		"other profile":       func(p *executor.Plan) { p.Recipe.Profile = "other/v1" },
		"other environment":   func(p *executor.Plan) { p.Environment.Vars = nil },
		"unknown naming":      func(p *executor.Plan) { p.Seccomp = "" },
		"argument not UTF-8":  func(p *executor.Plan) { p.Recipe.Args = []string{"\xff"} },
	} {
		t.Run(name, func(t *testing.T) {
			p := goldenPlan(evidence.SeccompReported)
			spoil(&p)
			_, err := render(p)
			require.Error(t, err)
		})
	}
}
