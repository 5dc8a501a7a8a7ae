package verify

import (
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// kept checks that the bundle's tree and the one of the checkpoint the reader kept belong to one
// history. Another size needs the proof that the bundle may hold; without it the check is not done.
// A proof in the bundle must hold in any case.
func (v *verification) kept(root ledger.Hash) bool {
	size := v.payload.At + 1
	held := v.payload.Kept
	if held != nil {
		if err := held.Verify(size, root); err != nil {
			v.report.fail(CheckKept, "the tree is not shown to be of one history with that of %d events: %v", held.Size, err)
			return false
		}
	}
	if v.policy.Kept == nil {
		v.report.excuse(CheckKept, "no checkpoint to compare with was given")
		return true
	}
	kept, keys, err := v.openKept()
	switch {
	case v.newer && errors.Is(err, ledger.ErrCheckpointUnsigned):
		v.report.skip(CheckKept, "no key known to this version signed the kept checkpoint")
	case errors.Is(err, ledger.ErrCheckpointUnsigned) && v.keptLater():
		v.report.skip(CheckKept, "no key of the ledger up to index %d signed the kept checkpoint, which is of more events: a key added since may have; a bundle of a later index tells", v.payload.At)
	case err != nil:
		v.report.fail(CheckKept, "the kept checkpoint is not this ledger's: %v", err)
	case kept.Size == size && kept.Root != root:
		v.report.fail(CheckKept, "the kept checkpoint of %d events has root %s: the ledger showed two histories", kept.Size, kept.Root)
	case kept.Size == size:
		v.report.pass(CheckKept, "it is the kept checkpoint's tree of %d events", size)
	case held == nil || held.Size != kept.Size:
		v.report.skip(CheckKept, "the kept checkpoint is of %d events, and the bundle holds no proof from there; export with --prove-from adds it", kept.Size)
	case held.Root != kept.Root:
		v.report.fail(CheckKept, "the bundle's proof is about another tree of %d events than the kept checkpoint's", kept.Size)
	default:
		v.report.pass(CheckKept, "one history with the kept checkpoint of %d events", kept.Size)
	}
	if v.report.Check(CheckKept).Result == Fail {
		return false
	}
	if err == nil {
		v.cosigned(kept, keys)
	}
	return !v.failed(CheckWitness)
}

// keptLater reports whether the kept note claims to be of this ledger and of more events than the bundle
// shows the keys of.
func (v *verification) keptLater() bool {
	claimed, err := ledger.ReadCheckpoint(v.policy.Kept)
	return err == nil && claimed.Origin == v.payload.Ledger.Origin && claimed.Size > v.payload.At+1
}

// openKept opens the note under the checkpoint keys that were live at its size, as far as the bundle
// shows them.
func (v *verification) openKept() (ledger.Checkpoint, *evidence.Keyring, error) {
	claimed, err := ledger.ReadCheckpoint(v.policy.Kept)
	if err != nil {
		return claimed, nil, err
	}
	if claimed.Size == 0 {
		return claimed, nil, errors.New("it is of an empty tree, which says nothing")
	}
	s, _ := v.payload.Stream(evidence.LedgerStream)
	events, err := s.Open()
	if err != nil {
		return claimed, nil, err
	}
	var keys evidence.Keyring
	for i, e := range events {
		if uint64(e.Index) >= claimed.Size {
			break
		}
		placed, err := bundle.Decode(events[i : i+1])
		var unknown *evidence.UnknownEventError
		if errors.As(err, &unknown) {
			break
		}
		if err != nil {
			return claimed, nil, err
		}
		if err := keys.Apply(placed[0].Payload); err != nil {
			return claimed, nil, fmt.Errorf("stream %s, version %s: %w", e.Stream, e.Version, err)
		}
	}
	opened, err := journal.OpenCheckpoint(&keys, v.policy.Kept)
	return opened, &keys, err
}
