package journal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// GenesisStream is the stream whose first event opens the ledger.
const GenesisStream = ledger.StreamID(evidence.LedgerStream)

func AttemptStream(id evidence.AttemptID) ledger.StreamID {
	return ledger.StreamID(evidence.AttemptPrefix + string(id))
}

func ChangeStream(id evidence.ChangeID) ledger.StreamID {
	return ledger.StreamID(evidence.ChangePrefix + string(id))
}

func PolicyStream(id evidence.PolicyID) ledger.StreamID {
	return ledger.StreamID(evidence.PolicyPrefix + string(id))
}

// Kind is what a stream is about.
type Kind string

const (
	KindUser    Kind = "" // anything that is not the product's
	KindLedger  Kind = "ledger"
	KindAttempt Kind = "attempt"
	KindChange  Kind = "change"
	KindPolicy  Kind = "policy"
	KindRuntime Kind = "runtime"
	KindTrial   Kind = "trial" // reserved
)

// KindOf tells what a stream is about and the ID or digest in its name.
func KindOf(s ledger.StreamID) (Kind, string) {
	if s == GenesisStream {
		return KindLedger, ""
	}
	for _, p := range []struct {
		prefix string
		kind   Kind
	}{
		{evidence.AttemptPrefix, KindAttempt},
		{evidence.ChangePrefix, KindChange},
		{evidence.PolicyPrefix, KindPolicy},
		{evidence.RuntimePrefix, KindRuntime},
		{evidence.TrialPrefix, KindTrial},
	} {
		if id, ok := strings.CutPrefix(string(s), p.prefix); ok {
			return p.kind, id
		}
	}
	return KindUser, ""
}

// checkName refuses a product stream whose name holds no legal ID.
func checkName(k Kind, id string) error {
	var err error
	switch k {
	case KindAttempt:
		_, err = evidence.ParseAttemptID(id)
	case KindChange:
		_, err = evidence.ParseChangeID(id)
	case KindPolicy:
		_, err = evidence.ParsePolicyID(id)
	case KindRuntime:
		if len(id) != 64 || strings.Trim(id, "0123456789abcdef") != "" {
			err = fmt.Errorf("runtime stream %q is not named by 64 lower-case hex digits", id)
		}
	}
	return err
}

// IsProductStream reports whether only baildock itself may write a stream (req J2, H6).
func IsProductStream(s ledger.StreamID) bool {
	k, _ := KindOf(s)
	return k != KindUser
}

// IsProductType reports whether an event type belongs to the vocabulary; users may not write it.
func IsProductType(t string) bool {
	return slices.Contains(evidence.EventTypes(), t)
}
