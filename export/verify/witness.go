package verify

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/witness"
)

// Witnessed is what outside witnesses of the reader's policy say: that they saw a tree of this
// history, and when, by their clocks.
type Witnessed struct {
	Size     uint64     `json:"size"` // of the tree they cosigned
	Quorum   int        `json:"quorum"`
	Cosigned []Cosigned `json:"cosigned"` // the earliest first
	Covers   bool       `json:"covers"`   // the tree holds the end of every judged attempt
}

// Cosigned is one witness's cosignature.
type Cosigned struct {
	Name string    `json:"name"`
	Time time.Time `json:"time"` // whole seconds, UTC
}

// cosigned holds the kept checkpoint to the witness policy: enough cosignatures by witnesses that
// the reader named, on a tree that is one history with the bundle's. Too few are no bad evidence,
// but not what was asked for; a cosignature that doesn't hold is.
func (v *verification) cosigned(kept ledger.Checkpoint, keys *evidence.Keyring) {
	policy := v.policy.Witnesses
	if policy == nil {
		return
	}
	seen, err := checkWitnesses(*policy, v.policy.Kept, keys)
	var few *witness.QuorumError
	switch {
	case errors.As(err, &few):
		v.report.skip(CheckWitness, "%v", err)
		return
	case err != nil:
		v.report.fail(CheckWitness, "the kept checkpoint: %v", err)
		return
	case !v.report.passed(CheckKept):
		v.report.skip(CheckWitness, "the cosigned checkpoint is not shown to be of one history with the bundle")
		return
	}
	w := &Witnessed{Size: kept.Size, Quorum: policy.Quorum}
	for _, s := range seen {
		w.Cosigned = append(w.Cosigned, Cosigned(s))
	}
	slices.SortStableFunc(w.Cosigned, func(a, b Cosigned) int { return a.Time.Compare(b.Time) })
	v.report.Witnessed = w
	names := make([]string, len(w.Cosigned))
	for i, c := range w.Cosigned {
		names[i] = c.Name
	}
	v.report.pass(CheckWitness, "%d of %d required cosigned the tree of %d events: %s", len(seen), policy.Quorum, kept.Size, strings.Join(names, ", "))
}

func checkWitnesses(p witness.Policy, note []byte, keys *evidence.Keyring) ([]witness.Cosignature, error) {
	var known []ed25519.PublicKey
	for _, spki := range keys.Live(evidence.RoleCheckpoint) {
		k, err := evidence.ParseCheckpointKey(spki)
		if err != nil {
			return nil, err
		}
		known = append(known, k)
	}
	verifiers, err := ledger.Ed25519Verifiers(keys.Opened.Origin, known...)
	if err != nil {
		return nil, err
	}
	_, seen, err := p.Check(note, keys.Opened.Origin, verifiers)
	return seen, err
}

// existed says until when what the bundle is about existed at the latest (req T10). Only a tree that
// holds the end of everything judged says so of it.
func (v *verification) existed() {
	w := v.report.Witnessed
	if w == nil {
		return
	}
	w.Covers = true
	for _, j := range v.attempt {
		w.Covers = w.Covers && uint64(j.finished) < w.Size
	}
	for _, s := range v.payload.Streams {
		if events := v.streams[s.Name]; s.Role == bundle.Judged && len(events) > 0 && strings.HasPrefix(s.Name, evidence.ChangePrefix) {
			w.Covers = w.Covers && uint64(events[len(events)-1].Index) < w.Size
		}
	}
	by := fmt.Sprintf("%s (cosigned by %s)", w.Cosigned[0].Time.Format(time.RFC3339), w.Cosigned[0].Name)
	if w.Quorum > 1 {
		by += fmt.Sprintf("; the quorum of %d by %s", w.Quorum, w.Cosigned[w.Quorum-1].Time.Format(time.RFC3339))
	}
	if !w.Covers {
		by = fmt.Sprintf("no outside witness of how it ended; the first %d events: %s", w.Size, by)
	}
	v.report.Times = timesOf(by)
}

func timesOf(by string) string { return "times: the writer's claim; existed by: " + by }
