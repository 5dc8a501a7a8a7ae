package evidence_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// What a context that asks for a qualified runtime admits, and what it refuses with that rule alone.
//
// req H7
func TestAQualifiedRuntimeIsARule(t *testing.T) {
	refused := map[string]func(*evidence.Case, *watch){
		"nothing observed": func(c *evidence.Case, _ *watch) { c.Canaries = nil },
		"one never observed": func(c *evidence.Case, w *watch) {
			c.Canaries[w.bound.Runtime] = w.trail.Canaries[1:]
		},
		"observed on another runtime": func(c *evidence.Case, w *watch) {
			c.Canaries = map[evidence.RuntimeDigest][]evidence.CanarySeen{{1}: w.trail.Canaries}
		},
		"observed under another profile": func(c *evidence.Case, w *watch) {
			c.Canaries[w.bound.Runtime] = bent(w, func(e *evidence.CanaryObserved) { e.Table[0]++ })
		},
		"observed by another corpus": func(c *evidence.Case, w *watch) {
			c.Canaries[w.bound.Runtime] = bent(w, func(e *evidence.CanaryObserved) { e.Corpus[0]++ })
		},
		"the corpus moved on": func(c *evidence.Case, _ *watch) {
			corpus := *c.Change.Context.Corpus
			corpus.Definition[0]++
			c.Change.Context.Corpus = &corpus
		},
		"a later failure": func(c *evidence.Case, w *watch) {
			w.observe(w.bound.Corpus.Canaries[0], func(_ *evidencetest.History, e *evidence.CanaryObserved) {
				e.Verdict, e.Code = evidence.CanaryFailed, "allowed"
			})
			c.Canaries[w.bound.Runtime] = w.trail.Canaries
		},
		"a later image": func(c *evidence.Case, w *watch) {
			w.observe(w.bound.Corpus.Canaries[0], func(_ *evidencetest.History, e *evidence.CanaryObserved) { e.Image[0]++ })
			c.Canaries[w.bound.Runtime] = w.trail.Canaries
		},
		"a forged pass": func(c *evidence.Case, w *watch) {
			canary := w.bound.Corpus.Canaries[0]
			w.observe(canary, func(h *evidencetest.History, e *evidence.CanaryObserved) {
				h.Exited.ExitCode = 1
				*e = evidencetest.Observe(h, w.bound.Corpus, canary.Name)
			})
			c.Canaries[w.bound.Runtime] = w.trail.Canaries
		},
		"no attempt behind it": func(c *evidence.Case, _ *watch) { c.Runs = nil },
		"no runtime observed":  func(c *evidence.Case, _ *watch) { c.Attempts[0].Runtime = nil },
	}
	require.Len(t, refused, 11)
	for name, bend := range refused {
		t.Run(name, func(t *testing.T) {
			s := tell(t, qualifiedContext(evidencetest.Success()))
			s.run("one", nil, "")
			s.qualify()
			c := s.the()
			require.True(t, evidence.Admit(c).Admitted)
			bend(&c, s.watch)
			d := evidence.Admit(c)
			require.False(t, d.Admitted)
			require.Equal(t, []evidence.Rule{evidence.RuleAttempt, evidence.RuleQualified}, broken(d))
			require.NotNil(t, d.Broken()[1].Index)
		})
	}
}

func bent(w *watch, bend func(*evidence.CanaryObserved)) []evidence.CanarySeen {
	var out []evidence.CanarySeen
	for _, c := range w.trail.Canaries {
		bend(&c.Observed)
		out = append(out, c)
	}
	return out
}

// The ground of the rule is the last observation that bears the runtime out, and a decision that needed
// none keeps the number of the rules before.
//
// req H7
func TestGroundsOfQualification(t *testing.T) {
	s := tell(t, qualifiedContext(evidencetest.Success()))
	s.run("one", nil, "")
	s.qualify()
	c := s.the()
	d := evidence.Admit(c)
	g := d.Grounds()
	require.EqualValues(t, 2, g.Rules)
	found := false
	for _, x := range g.Grounds {
		if x.Rule == evidence.RuleQualified {
			found = true
			require.Equal(t, s.next-1, *x.Index)
		}
	}
	require.True(t, found)
	require.NoError(t, evidence.Redecide(c, d.Relied, g))
	old := g
	old.Rules = 1
	require.Error(t, evidence.Redecide(c, d.Relied, old))

	plain := tell(t, contextFor(evidencetest.Success()))
	plain.run("one", nil, "")
	d = evidence.Admit(plain.the())
	require.EqualValues(t, 1, d.Grounds().Rules)
	said := false
	for _, r := range d.Rulings {
		require.NotEqual(t, evidence.RuleQualified, r.Rule)
		if r.Rule == evidence.RuleQualification {
			said = true
			require.Contains(t, r.Says, "not required, not qualified")
		}
	}
	require.True(t, said)
}

// Paths alone run nothing, so no runtime can be qualified for them.
//
// req H7
func TestPathsAloneHaveNoRuntime(t *testing.T) {
	c, corpus := pathsBase(t), evidencetest.Corpus()
	c.Change.Context.RequireQualified, c.Change.Context.Corpus = true, &corpus
	require.Equal(t, []evidence.Rule{evidence.RuleQualification}, broken(evidence.Admit(c)))
}
