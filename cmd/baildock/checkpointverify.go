package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/mod/sumdb/note"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/witness"
)

// verifiedCheckpoint is what verifying a checkpoint gives.
type verifiedCheckpoint struct {
	Verdict   string            `json:"verdict"` // valid, invalid, not_checked; quorum_missed: valid, but too few cosigned
	Origin    string            `json:"origin"`
	Size      uint64            `json:"size"`
	Root      string            `json:"root"`
	Continues *uint64           `json:"continues,omitempty"` // the size of --since, which it was shown to continue
	Witnesses []witnessView     `json:"witnesses"`
	Quorum    *quorumView       `json:"quorum,omitempty"`
	Detail    string            `json:"detail,omitempty"`
	exit      int               // what it comes to for a script
	opened    ledger.Checkpoint // of a good one
}

type witnessView struct {
	Name string `json:"name"`
	Time string `json:"time"` // the witness's clock
}

type quorumView struct {
	Required int `json:"required"`
	Reached  int `json:"reached"`
}

// trustedCheckpointKey is the origin and checkpoint key a ledger.pub names.
func trustedCheckpointKey(path string) (origin string, keys note.Verifiers, err error) {
	text, err := readBounded(path, bundle.MaxIdentity)
	if err != nil {
		return "", nil, err
	}
	id, err := bundle.ParseIdentity(text)
	if err != nil {
		return "", nil, fail(exitUsage, "key_unreadable", "key file %q: %w", path, err).hint("baildock key public prints a ledger.pub")
	}
	key, err := evidence.ParseCheckpointKey(id.Checkpoint)
	if err != nil {
		return "", nil, fail(exitUsage, "key_unreadable", "key file %q: %w", path, err)
	}
	keys, err = ledger.Ed25519Verifiers(id.Origin, key)
	return id.Origin, keys, err
}

// verifyCheckpoint checks a checkpoint's file as the command line asks.
func verifyCheckpoint(c *cli.Context, path string) (verifiedCheckpoint, error) {
	msg, request, err := readCheckpointFile(path)
	var f *failure
	if errors.As(err, &f) && f.Code == codeNoCheckpoint {
		f.Exit = exitBadEvidence // as an unparsable bundle is
	}
	if err != nil {
		return verifiedCheckpoint{}, err
	}
	claim, err := ledger.ReadCheckpoint(msg)
	if err != nil {
		return verifiedCheckpoint{}, err
	}
	v := verifiedCheckpoint{Verdict: "not_checked", exit: exitNotChecked, Witnesses: []witnessView{},
		Origin: claim.Origin, Size: claim.Size, Root: claim.Root.String()}
	if c.String("key") == "" {
		v.Detail = "nobody is trusted yet: --key ledger.pub, from whoever keeps the ledger"
		return v, nil
	}
	origin, keys, err := trustedCheckpointKey(c.String("key"))
	if err != nil {
		return v, err
	}
	if err := v.signature(c, msg, origin, keys); err != nil || v.exit == exitBadEvidence || v.exit == exitNotChecked {
		return v, err
	}
	if since := c.String("since"); since != "" {
		return v, v.continues(since, request, origin, keys)
	}
	return v, nil
}

// signature checks the ledger's signature, and the cosignatures under the policy, if there is one.
func (v *verifiedCheckpoint) signature(c *cli.Context, msg []byte, origin string, keys note.Verifiers) error {
	if c.String("policy") == "" {
		opened, err := ledger.OpenCheckpoint(msg, origin, keys)
		v.settle(opened, v.unknown(err, origin))
		return nil
	}
	policy, err := readWitnessPolicy(c.String("policy"))
	if err != nil {
		return err
	}
	opened, seen, err := policy.Check(msg, origin, keys)
	for _, s := range seen {
		v.Witnesses = append(v.Witnesses, witnessView{s.Name, s.Time.Format(time.RFC3339)})
	}
	v.Quorum = &quorumView{Required: policy.Quorum, Reached: len(seen)}
	var missed *witness.QuorumError
	if errors.As(err, &missed) {
		v.settle(opened, nil)
		v.Verdict, v.Detail, v.exit = "quorum_missed", err.Error(), exitFailed
		return nil
	}
	v.settle(opened, v.unknown(err, origin))
	return nil
}

// errKeyUnknown is a note of the right origin that the genesis key didn't sign. A key that was added since
// may have, which a ledger.pub can't tell.
var errKeyUnknown = errors.New("the checkpoint key of the ledger.pub didn't sign it; a key added since may have, which an audit or a bundle tells")

func (v *verifiedCheckpoint) unknown(err error, origin string) error {
	if errors.Is(err, ledger.ErrCheckpointUnsigned) && v.Origin == origin {
		return errKeyUnknown
	}
	return err
}

func readWitnessPolicy(path string) (witness.Policy, error) {
	text, err := readBounded(path, witness.MaxPolicy)
	if err != nil {
		return witness.Policy{}, err
	}
	policy, err := witness.ParsePolicy(text)
	if err != nil {
		return policy, fail(exitUsage, "policy_unreadable", "policy file %q: %w", path, err)
	}
	return policy, nil
}

func (v *verifiedCheckpoint) settle(opened ledger.Checkpoint, err error) {
	if errors.Is(err, errKeyUnknown) {
		v.Verdict, v.Detail, v.exit = "not_checked", err.Error(), exitNotChecked
		return
	}
	if err != nil {
		v.Verdict, v.Detail, v.exit = "invalid", err.Error(), exitBadEvidence
		return
	}
	v.Verdict, v.exit, v.opened = "valid", exitOK, opened
}

// continues checks that the checkpoint continues an older one of the same ledger.
func (v *verifiedCheckpoint) continues(path string, request *witness.Request, origin string, keys note.Verifiers) error {
	msg, _, err := readCheckpointFile(path)
	if err != nil {
		return err
	}
	old, err := ledger.OpenCheckpoint(msg, origin, keys)
	if err != nil {
		v.settle(v.opened, fmt.Errorf("the checkpoint of --since: %w", err))
		return nil
	}
	var proof []ledger.Hash
	switch {
	case old.Size > v.Size:
		v.settle(v.opened, fmt.Errorf("it covers %d events, the checkpoint of --since %d: the ledger was rolled back, or the files are the wrong way round", v.Size, old.Size))
		return nil
	case request != nil && request.Old == old.Size:
		proof = request.Proof
	case old.Size != v.Size && old.Size != 0:
		v.Verdict, v.exit = "not_checked", exitNotChecked
		v.Detail = fmt.Sprintf("the file holds no proof from size %d; the ledger's keeper makes it: baildock checkpoint show --prove-from %d", old.Size, old.Size)
		return nil
	}
	if err := ledger.VerifyConsistency(old.Size, old.Root, v.Size, v.opened.Root, proof); err != nil {
		v.settle(v.opened, fmt.Errorf("it doesn't continue the checkpoint of --since: %w", err))
		return nil
	}
	v.Continues = &old.Size
	return nil
}
