package evidence

import "fmt"

// CanaryVerdict is what the collector concluded of one canary. No canary can say it of itself.
type CanaryVerdict string

const (
	CanaryPassed        CanaryVerdict = "passed"         // the boundary held, with exactly the error expected
	CanaryFailed        CanaryVerdict = "failed"         // it did not, or in another way
	CanaryNotApplicable CanaryVerdict = "not_applicable" // the kernel lacks what it tries
)

// CanaryObserved is one try at the boundary of a runtime (req H7, K5), run as an ad hoc attempt of its
// own (req E8). A pass counts only as far as that attempt's record bears it out.
type CanaryObserved struct {
	Canary  CanaryName    `cbor:"1,keyasint" json:"canary"`
	Attempt AttemptID     `cbor:"2,keyasint" json:"attempt"`
	Record  RecordDigest  `cbor:"3,keyasint" json:"record"`  // of that attempt
	Runtime RuntimeDigest `cbor:"4,keyasint" json:"runtime"` // names the stream
	Image   ImageID       `cbor:"5,keyasint" json:"image"`   // that held the canary
	Table   ProfileDigest `cbor:"6,keyasint" json:"table"`   // of the profile it ran under
	Corpus  CorpusDigest  `cbor:"7,keyasint" json:"corpus"`  // it is one of
	Verdict CanaryVerdict `cbor:"8,keyasint" json:"verdict"`
	Code    string        `cbor:"9,keyasint,omitempty" json:"code,omitempty"` // why it didn't pass
	Seen    BlobRef       `cbor:"10,keyasint" json:"seen"`                    // what was tried and seen
}

func (CanaryObserved) EventType() string { return "CanaryObserved" }

// Check refuses an observation of no legal shape.
func (e CanaryObserved) Check() error {
	if _, err := ParseCanaryName(string(e.Canary)); err != nil {
		return err
	}
	if _, err := ParseAttemptID(string(e.Attempt)); err != nil {
		return err
	}
	switch e.Verdict {
	case CanaryPassed:
		if e.Code != "" {
			return fmt.Errorf("canary %s passed and gives a reason why it did not: %s", e.Canary, e.Code)
		}
	case CanaryFailed, CanaryNotApplicable:
		if e.Code == "" || len(e.Code) > MaxCode {
			return fmt.Errorf("canary %s is %s without a code of 1 to %d bytes", e.Canary, e.Verdict, MaxCode)
		}
	default:
		return fmt.Errorf("verdict %q of canary %s is none of %s, %s and %s", e.Verdict, e.Canary, CanaryPassed, CanaryFailed, CanaryNotApplicable)
	}
	return nil
}
