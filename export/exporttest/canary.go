package exporttest

import (
	"testing"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// RequireQualified lets a context ask for a runtime that evidencetest.Corpus qualifies.
func RequireQualified(c *evidence.Context) {
	corpus := evidencetest.Corpus()
	c.RequireQualified, c.Corpus = true, &corpus
}

// Canaries runs the whole of evidencetest.Corpus on the runtime of a history and observes that it passed. It
// returns the observations.
func (f *Fixture) Canaries(t testing.TB) []evidence.CanaryObserved {
	t.Helper()
	var out []evidence.CanaryObserved
	for _, c := range evidencetest.Corpus().Canaries {
		h, e := evidencetest.Canary(evidencetest.Corpus(), c)
		f.Run(t, h)
		f.Append(t, evidence.RuntimePrefix+e.Runtime.Hex(), e)
		out = append(out, e)
	}
	return out
}
