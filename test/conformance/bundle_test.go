package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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
	"github.com/baildock/baildock/export/verify"
)

// maxOwn bounds the bytes of its own that a vector may bring: bombs of megabytes stay in the corpus.
const maxOwn = 4096

func bundles() family {
	return family{
		name: "bundles", least: 600,
		about: "Whole bundles (export/bundle/FORMAT.md). Input: file in this directory, or base, a file in this directory, and parts, each [offset, length] of it or hex of its own: concatenated they are the bundle; trust, a file in this directory, a ledger.pub or one PEM block, absent: nobody; kept, the text of a checkpoint that the reader kept; allow, the classes that may be missing; checks, of an invalid one: names of `baildock verify`'s checks, of which at least one must fail. valid: outcome and claim of the first judged attempt that is no success or of the first, admitted whether every judged attempt's context has an approval that was decided again. not_checked: nothing is wrong, and something could not be checked.",
		make:  makeBundles,
		run:   runBundle,
	}
}

func makeBundles(t *testing.T) []vector {
	var out []vector
	file := func(name string, b []byte) string {
		require.NoError(t, os.WriteFile(filepath.Join("vectors", name+".bundle"), b, 0o644))
		return name + ".bundle"
	}
	pubs := trusts{t: t, names: map[string]string{}}
	ours := func(f *exporttest.Fixture) string {
		text, err := bundle.FormatIdentity(f.Identity)
		require.NoError(t, err)
		return pubs.file(text)
	}
	add := func(name, class, kind string, in values) {
		got, o, err := runBundle(t, in)
		require.Equal(t, class, got, "%s: %v", name, err)
		if class != valid {
			o = nil
		}
		out = append(out, vector{Name: name, Class: class, Kind: kind, Input: in, Output: o})
	}
	one := export.Request{Attempts: []evidence.AttemptID{"one"}}
	f := exporttest.New(t)
	f.Run(t, evidencetest.Success())
	early, err := f.Ledger.SignCheckpoint(t.Context(), f.Signer)
	require.NoError(t, err)
	good := values{"file": file("one", f.Export(t, one)), "trust": ours(f)}
	add("one attempt", valid, "", good)
	add("under the bare bundle key", valid, "", good.with("trust", pubs.file(string(bundle.FormatKey(f.Identity.Bundle)))))
	add("nobody is trusted", notChecked, "trust", values{"file": good["file"]})
	add("a checkpoint of another size, without a proof", notChecked, "kept", good.with("kept", string(early.Note)))
	proved := one
	proved.ProveFrom = early.Note
	add("a checkpoint of another size, with a proof", valid, "", values{"file": file("proved", f.Export(t, proved)), "trust": ours(f), "kept": string(early.Note)})

	failed := exporttest.New(t)
	h := evidencetest.Success()
	h.Exited.ExitCode = 3
	failed.Run(t, h)
	add("a failed attempt", valid, "", values{"file": file("failed", failed.Export(t, one)), "trust": ours(failed)})

	for _, w := range []struct {
		name  string
		class []bundle.Class
	}{{"nothing", nil}, {"output", []bundle.Class{bundle.ClassOutput}}, {"recipe", []bundle.Class{bundle.ClassRecipe}}, {"everything", bundle.Withholdables()}} {
		approved := exporttest.New(t)
		h := evidencetest.Success()
		approved.Change(t, "fix", h)
		approved.Run(t, h)
		_, err := approved.Journal().Approve(t.Context(), "fix", nil)
		require.NoError(t, err)
		in := values{"file": file("approved-without-"+w.name, approved.Export(t, export.Request{Attempts: one.Attempts, Withhold: w.class})), "trust": ours(approved)}
		if w.class == nil {
			add("an approved attempt", valid, "", in)
			continue
		}
		add("an approved attempt without "+w.name, notChecked, "withheld", in)
		add("an approved attempt without "+w.name+", accepted", valid, "", in.with("allow", w.class))
	}

	return append(out, hostile(t, pubs)...)
}

// trusts writes each text that is trusted once.
type trusts struct {
	t     *testing.T
	names map[string]string
}

func (p trusts) file(text string) string {
	p.t.Helper()
	name, ok := p.names[text]
	if !ok {
		name = fmt.Sprintf("trust-%d.pub", len(p.names)+1)
		p.names[text] = name
		require.NoError(p.t, os.WriteFile(filepath.Join("vectors", name), []byte(text), 0o644))
	}
	return name
}

// hostile takes the corpus of attacks over, as parts of the good bundles.
func hostile(t *testing.T, pubs trusts) []vector {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "test", "./export/verify", "-run", "^TestHostileCorpus$", "-count=1", "-corpus", dir)
	cmd.Dir = filepath.Join("..", "..")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	get := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return b
	}
	bases := map[string][]byte{}
	for _, name := range []string{"good", "approved"} {
		bases["corpus-"+name+".bundle"] = get(name + ".bundle")
		require.NoError(t, os.WriteFile(filepath.Join("vectors", "corpus-"+name+".bundle"), bases["corpus-"+name+".bundle"], 0o644))
	}
	var out []vector
	skipped := 0
	for line := range strings.Lines(string(get("index.tsv"))) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		target := get(field[0])
		in := values{"trust": pubs.file(string(get(field[2]))), "checks": strings.Split(field[1], ",")}
		if field[3] != "-" {
			in["kept"] = string(get(field[3]))
		}
		if len(target) > 1<<20 {
			skipped++
			continue
		}
		best := maxOwn + 1
		for _, base := range sorted(bases) {
			parts := partsOf(bases[base], target)
			if n := own(parts); n < best {
				best, in["base"], in["parts"] = n, base, parts
			}
		}
		if best > maxOwn {
			skipped++
			continue
		}
		out = append(out, vector{Name: "attack: " + field[4], Class: invalid, Kind: field[1], Input: in})
	}
	t.Logf("count: %d attacks taken over, %d left in the corpus for their size", len(out), skipped)
	return out
}

func own(parts []any) (n int) {
	for _, p := range parts {
		if s, ok := p.(string); ok {
			n += len(s) / 2
		}
	}
	return n + len(parts)
}

func runBundle(t *testing.T, in values) (string, values, error) {
	var b []byte
	var err error
	if base, ok := in["base"]; ok {
		whole, err := os.ReadFile(filepath.Join("vectors", base.(string)))
		require.NoError(t, err)
		var parts []any
		require.NoError(t, json.Unmarshal([]byte(text(t, in["parts"])), &parts))
		b, err = joined(whole, parts)
		require.NoError(t, err)
	} else {
		b, err = os.ReadFile(filepath.Join("vectors", in.text(t, "file")))
		require.NoError(t, err)
	}
	var policy verify.Policy
	if _, ok := in["trust"]; ok {
		pub, err := os.ReadFile(filepath.Join("vectors", in.text(t, "trust")))
		require.NoError(t, err)
		policy.Trust, err = verify.ParseTrust(pub)
		require.NoError(t, err)
	}
	if _, ok := in["kept"]; ok {
		policy.Kept = []byte(in.text(t, "kept"))
	}
	if _, ok := in["allow"]; ok {
		for _, c := range in.list(t, "allow") {
			policy.AllowWithheld = append(policy.AllowWithheld, bundle.Class(c))
		}
	}
	r := verify.Verify(b, policy)
	if _, ok := in["checks"]; ok {
		failed := slices.ContainsFunc(in.list(t, "checks"), func(name string) bool { return r.Check(name).Result == verify.Fail })
		require.True(t, failed, "%v", r.Checks)
	}
	return string(r.Verdict), values{"outcome": r.Outcome, "claim": r.Claim, "admitted": r.Check(verify.CheckAdmission).Result == verify.Pass}, fmt.Errorf("%v", r.Checks)
}
