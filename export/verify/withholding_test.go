package verify_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
)

var updateDocs = flag.Bool("update", false, "rewrite docs/withholding.md")

// withholdable is a bundle of an approved change whose attempt names blobs of every class.
func withholdable(t testing.TB, withhold ...bundle.Class) (*exporttest.Fixture, []byte) {
	t.Helper()
	f := exporttest.New(t)
	h := evidencetest.Success()
	detail := h.Keep("detail", []byte("a warning of the daemon's"))
	h.BeforeCreate.Detail = &detail
	f.Change(t, "fix", h)
	f.Run(t, h)
	_, err := journal.New(journal.Config{Ledger: f.Ledger, Actor: "operator"}).Approve(t.Context(), "fix", nil)
	require.NoError(t, err)
	return f, f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}, Withhold: withhold})
}

// always are the checks that are not done even where nothing is withheld: nobody gave a checkpoint or a witness.
var always = []string{verify.CheckKept, verify.CheckWitness}

// req T9: the table of what each withheld item costs is what the verifier does.
func TestWithholdingTable(t *testing.T) {
	var table strings.Builder
	row := func(name string, classes ...bundle.Class) {
		f, file := withholdable(t, classes...)
		trust := verify.TrustLedger(f.Identity)
		strict := verify.Verify(file, verify.Policy{Trust: trust})
		reached, blobs := "none", 0
		var undone []string
		for _, l := range verify.Levels() {
			r := verify.Verify(file, verify.Policy{Trust: trust, AllowWithheld: classes, Require: l})
			require.Equal(t, verify.Valid, r.Verdict, "%s: %v", name, r.Checks)
			if r.Reached {
				reached = string(l)
			}
			undone, blobs = nil, 0
			for _, c := range r.Checks {
				if c.Result == verify.NotDone && !slices.Contains(always, c.Name) {
					undone = append(undone, "`"+c.Name+"`")
				}
			}
			for _, m := range r.Missing {
				require.True(t, m.Allowed, name)
				blobs += m.Blobs
			}
		}
		if len(undone) == 0 {
			undone = []string{"none"}
		}
		require.Equal(t, len(classes) > 0, strict.Verdict == verify.NotChecked, "%s", name)
		exit := 0
		if strict.Verdict == verify.NotChecked {
			exit = 8
		}
		with := slices.DeleteFunc(bundle.WithThem(classes), func(c bundle.Class) bool { return slices.Contains(classes, c) })
		also := "nothing"
		if len(with) > 0 {
			also = "`" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(with)), "`, `"), "[]") + "`"
		}
		fmt.Fprintf(&table, "| %s | %s | %d | %s | %d | `%s` |\n", name, also, blobs, strings.Join(undone, ", "), exit, reached)
	}
	row("nothing")
	for _, c := range bundle.Withholdables() {
		row("`"+string(c)+"`", c)
	}
	row("`recipe`, `env`", bundle.ClassRecipe, bundle.ClassEnv)
	row("everything", bundle.Withholdables()...)
	require.GreaterOrEqual(t, strings.Count(table.String(), "\n"), 9)

	path := filepath.Join("..", "..", "docs", "withholding.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	const open, end = "<!-- table -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(text), open)
	require.True(t, ok)
	old, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	heads := "| withheld | withheld with it | blobs | checks not done | exit without `--allow-withheld` | highest level with it |\n|---|---|---|---|---|---|\n"
	if *updateDocs {
		require.NoError(t, os.WriteFile(path, []byte(before+open+heads+table.String()+end+after), 0o644))
		return
	}
	require.Equal(t, heads+table.String(), old, "docs/withholding.md is out of date; run: go test ./export/verify -run Withholding -update")
}
