package canary

import (
	"slices"

	"github.com/baildock/baildock/evidence"
)

// Codes of a canary that failed.
const (
	CodeNoReport = "no_report"    // none, or none that can be read
	CodeOther    = "other_report" // of another canary, or of other steps
	CodeAllowed  = "allowed"      // what must be refused was not
	CodeErrno    = "other_errno"  // it failed, and not with the error named
	CodeValue    = "other_value"  // it gave another value
	CodeUnwanted = "report"       // a report where the boundary must have ended the canary
	CodeBroken   = "failed"       // what must work failed
)

// Judge compares what a canary reported with its row. It decides on the report alone: whether the attempt came
// to the outcome that the row names is what a qualification derives from the record.
func Judge(c Canary, stdout []byte) (v evidence.CanaryVerdict, code string) {
	if !c.Reports() {
		if _, err := ParseReport(stdout); err == nil {
			return evidence.CanaryFailed, CodeUnwanted
		}
		return evidence.CanaryPassed, ""
	}
	r, err := ParseReport(stdout)
	if err != nil {
		return evidence.CanaryFailed, CodeNoReport
	}
	if r.Canary != c.Name || len(r.Steps) != len(c.Steps) {
		return evidence.CanaryFailed, CodeOther
	}
	for i, want := range c.Steps {
		if got := r.Steps[i]; got.Action != want.Action || got.On != want.On {
			return evidence.CanaryFailed, CodeOther
		} else if code := want.judge(got); code != "" {
			return evidence.CanaryFailed, code
		}
	}
	return evidence.CanaryPassed, ""
}

// judge says why what was seen isn't what must come of a step, or "".
func (s Step) judge(got Seen) string {
	switch {
	case got.Errno != "" && slices.Contains(s.Errnos, got.Errno):
		return ""
	case got.Errno != "" && len(s.Errnos) == 0:
		return CodeBroken
	case got.Errno != "":
		return CodeErrno
	case s.Value == nil:
		return CodeAllowed
	case got.Value != *s.Value:
		return CodeValue
	}
	return ""
}
