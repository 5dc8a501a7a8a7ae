package evidencetest

import (
	"crypto/sha256"

	"github.com/baildock/baildock/evidence"
)

// Corpus is a small corpus: one canary that must succeed, one whose attempt must not, and one that a kernel
// may lack.
func Corpus() evidence.Corpus {
	return evidence.Corpus{
		Version: 1, Definition: evidence.PlainDigest(sha256.Sum256([]byte("corpus"))),
		Canaries: []evidence.Canary{
			{Name: "filesystem.root", Outcome: evidence.OutcomeSuccess},
			{Name: "memory.bound", Outcome: evidence.OutcomeIncomplete},
			{Name: "syscall.io-uring", Outcome: evidence.OutcomeSuccess, Lacking: true},
		},
	}
}

// CanaryAttempt names the attempt of a canary.
func CanaryAttempt(c evidence.Canary) evidence.AttemptID {
	return evidence.AttemptID("canary-" + string(c.Name))
}

// Canary is the ad hoc attempt of a canary, which comes to what its corpus says, on the runtime and under the
// profile of Success; and the observation of it, which a caller may bend.
func Canary(corpus evidence.Corpus, c evidence.Canary) (*History, evidence.CanaryObserved) {
	h := Success()
	h.Registered.Attempt = CanaryAttempt(c)
	if c.Outcome == evidence.OutcomeIncomplete {
		h.Exited.OOMFlag, h.Exited.ExitCode = true, 137
	}
	h.Custody.Request = h.Request()
	return h, Observe(h, corpus, c.Name)
}

// Observe is the observation of a canary that passed, from the history of its attempt.
func Observe(h *History, corpus evidence.Corpus, name evidence.CanaryName) evidence.CanaryObserved {
	a, err := evidence.Fold(h.Events()...)
	must(err)
	r := evidence.RecordOf(&a)
	return evidence.CanaryObserved{
		Canary: name, Attempt: r.Attempt, Record: r.Digest(), Runtime: *r.Runtime, Image: h.Recipe.Image, Table: r.Table,
		Corpus: corpus.Digest(), Verdict: evidence.CanaryPassed, Seen: h.Keep("seen "+string(name), []byte("write /: EROFS")),
	}
}
