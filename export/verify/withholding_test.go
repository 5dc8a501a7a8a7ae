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
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
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
	_, err := f.Journal().Approve(t.Context(), "fix", nil)
	require.NoError(t, err)
	return f, f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}, Withhold: withhold})
}

// pathsOnly is a bundle of a change that was approved on the paths it touches, and of an attempt bound to it.
func pathsOnly(t testing.TB, withhold ...bundle.Class) (*exporttest.Fixture, []byte) {
	t.Helper()
	f := exporttest.New(t)
	h := evidencetest.Success()
	revision := h.Registered.Subject.Revision
	globs := []string{"src/**"}
	ctx := evidence.Context{
		Version: 1, Revision: revision, Required: []evidence.RequiredEvidence{{Kind: evidence.EvidencePaths, Digest: evidence.PathPolicyDigest(globs)}},
		Environment: h.Environment.Digest(), Policy: evidence.DefaultPolicy, Epoch: 1, AllowPaths: globs,
		Reductions: []evidence.Reduction{evidence.ReducedCgroupV1},
	}
	checked, list, err := evidence.CheckPaths("", revision, globs, evidence.PathList{"src/a.txt", "src/b.txt"})
	require.NoError(t, err)
	checked.Paths = h.Keep("paths", list)
	b := evidence.Binding{Repository: evidence.RepositoryID{0: 0x5e}, Change: "fix", Version: 1, Context: ctx.Digest()}
	f.Append(t, "change-fix", evidence.ChangeOpened{Change: "fix", Repository: b.Repository},
		evidence.VersionAdded{Version: 1, Revision: revision}, evidence.ContextSet{Version: 1, Context: ctx}, checked)
	f.Bind(t, b, h)
	f.Run(t, h)
	_, err = f.Journal().Approve(t.Context(), "fix", nil)
	require.NoError(t, err)
	return f, f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}, Withhold: withhold})
}

// always are the checks that are not done even where nothing is withheld: nobody gave a checkpoint or a witness.
var always = []string{verify.CheckKept, verify.CheckWitness}

// req T9: the table of what each withheld item costs is what the verifier does.
func TestWithholdingTable(t *testing.T) {
	var table strings.Builder
	row := func(name string, made func(testing.TB, ...bundle.Class) (*exporttest.Fixture, []byte), classes ...bundle.Class) {
		f, file := made(t, classes...)
		trust := verify.TrustLedger(f.Identity)
		strict := verify.Verify(file, verify.Policy{Trust: trust})
		reached, redecided, blobs := "none", "", 0
		var undone []string
		for _, l := range verify.Levels() {
			r := verify.Verify(file, verify.Policy{Trust: trust, AllowWithheld: classes, Require: l})
			require.Equal(t, verify.Valid, r.Verdict, "%s: %v", name, r.Checks)
			if r.Reached {
				reached = string(l)
			}
			// What an admission rests on and lacks: then it reads "not re-decided", and is no admission to ask for.
			redecided = "decided again"
			if says := r.Check(verify.CheckAdmission); says.Result == verify.NotDone {
				require.Regexp(t, "^not re-decided: the approval at index [0-9]+ rests on what is missing: the ", says.Detail, name)
				redecided = "**not re-decided**"
				require.NotEmpty(t, r.Admissions[0].NotRedecided, name)
				require.True(t, r.Admissions[0].Stands, name)
			} else {
				require.Empty(t, r.Admissions[0].NotRedecided, name)
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
		fmt.Fprintf(&table, "| %s | %s | %d | %s | %s | %d | `%s` |\n", name, also, blobs, strings.Join(undone, ", "), redecided, exit, reached)
	}
	// Only a contained run names salts and changes, and it is never approved.
	items := slices.DeleteFunc(bundle.Withholdables(), func(c bundle.Class) bool { return c == bundle.ClassSalts || c == bundle.ClassChanges })
	row("nothing", withholdable)
	for _, c := range items {
		row("`"+string(c)+"`", withholdable, c)
	}
	row("`recipe`, `env`", withholdable, bundle.ClassRecipe, bundle.ClassEnv)
	row("everything", withholdable, items...)
	row("nothing, approved on paths", pathsOnly)
	row("`recipe`, approved on paths", pathsOnly, bundle.ClassRecipe)
	row("`source`, approved on paths", pathsOnly, bundle.ClassSource)
	require.Equal(t, 12, strings.Count(table.String(), "\n"))

	path := filepath.Join("..", "..", "docs", "withholding.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	const open, end = "<!-- table -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(text), open)
	require.True(t, ok)
	old, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	heads := "| withheld | withheld with it | blobs | checks not done | admission | exit without `--allow-withheld` | highest level with it |\n|---|---|---|---|---|---|---|\n"
	if *updateDocs {
		require.NoError(t, os.WriteFile(path, []byte(before+open+heads+table.String()+end+after), 0o644))
		return
	}
	require.Equal(t, heads+table.String(), old, "docs/withholding.md is out of date; run: go test ./export/verify -run Withholding -update")
}

// req T9: a recipe without a nonce can't be withheld; where the ledger itself no longer has it, admission is
// not re-decided either, and a report says so.
func TestAbsentRecipe(t *testing.T) {
	f := exporttest.New(t)
	h := evidencetest.Success()
	h.Environment.Nonce, h.Recipe.Nonce = nil, nil
	h.Recipe.Environment = h.Environment.Digest()
	h.Registered.Recipe, h.Registered.Environment = h.Recipe.Digest(), h.Environment.Digest()
	f.Change(t, "fix", h)
	f.Run(t, h)
	_, err := f.Journal().Approve(t.Context(), "fix", nil)
	require.NoError(t, err)
	f.Seal(t, "one")
	_, _, err = export.Build(t.Context(), f.Ledger, export.Request{Attempts: []evidence.AttemptID{"one"}, Withhold: []bundle.Class{bundle.ClassRecipe}, Checkpoint: f.Signer})
	require.ErrorContains(t, err, "nonce")

	require.NoError(t, f.Ledger.Forget(t.Context(), ledger.BlobKey(h.Recipe.Digest())))
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	trust := verify.TrustLedger(f.Identity)
	require.Equal(t, verify.NotChecked, verify.Verify(file, verify.Policy{Trust: trust}).Verdict)
	r := verify.Verify(file, verify.Policy{Trust: trust, AllowWithheld: []bundle.Class{bundle.ClassRecipe}, Require: verify.Admitted})
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	require.False(t, r.Reached)
	require.Contains(t, r.Why, "not re-decided")
	require.Equal(t, bundle.Absent, r.Missing[0].Why)
	var text strings.Builder
	require.NoError(t, report.Text(&text, r))
	require.Contains(t, text.String(), "not re-decided, for what it rests on is missing: the recipe of attempt one")
	text.Reset()
	require.NoError(t, report.Write(&text, report.FormatHTML, report.Of(r)))
	require.Contains(t, text.String(), `<div class="unsure"><dt>change fix, version 1</dt><dd>approval at index`, "said on top of the page")
}

// An approval that relies on an attempt which registered another toolchain than its recipe has is none: the
// events agree with one another, and the recipe doesn't agree with them.
func TestReliedRecipeMustFit(t *testing.T) {
	f := exporttest.New(t)
	h := evidencetest.Success()
	toolchain := evidence.ToolchainDigest{1}
	h.Registered.Toolchain = &toolchain
	revision := h.Registered.Subject.Revision
	ctx := evidence.Context{
		Version: 1, Revision: revision, Capabilities: []string{evidence.CapabilityCommand},
		Required:  []evidence.RequiredEvidence{{Kind: evidence.EvidenceCommand, Digest: evidence.PlainDigest(h.Recipe.Digest())}},
		Toolchain: &toolchain, Environment: h.Environment.Digest(), Policy: evidence.DefaultPolicy, Epoch: 1,
		Reductions: []evidence.Reduction{evidence.ReducedCgroupV1},
	}
	b := evidence.Binding{Repository: evidence.RepositoryID{0: 0x5e}, Change: "fix", Version: 1, Context: ctx.Digest()}
	f.Append(t, "change-fix", evidence.ChangeOpened{Change: "fix", Repository: b.Repository},
		evidence.VersionAdded{Version: 1, Revision: revision}, evidence.ContextSet{Version: 1, Context: ctx})
	f.Bind(t, b, h)
	f.Run(t, h)
	_, err := f.Journal().Approve(t.Context(), "fix", nil)
	require.NoError(t, err)
	file := f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}})
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.Equal(t, verify.Invalid, r.Verdict)
	require.Equal(t, verify.Fail, r.Check(verify.CheckRecipe).Result)
	require.Equal(t, verify.Fail, r.Check(verify.CheckAdmission).Result)
}

// req T9: texts name paths, so that a bundle without the source, or without what changed, holds no text either.
func TestTextsGoWithPaths(t *testing.T) {
	const text = "a warning of the daemon's"
	_, file := withholdable(t)
	require.Contains(t, string(file), text)
	for _, c := range []bundle.Class{bundle.ClassSource, bundle.ClassChanges} {
		_, file := withholdable(t, c)
		require.NotContains(t, string(file), text, c)
	}
}
