package journal

import (
	"crypto/ed25519"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// OpenCheckpoint opens a signed checkpoint under a ledger's origin and the checkpoint keys that are
// live in its keyring. It fails as ledger.OpenCheckpoint does.
func OpenCheckpoint(keys *evidence.Keyring, note []byte) (ledger.Checkpoint, error) {
	var known []ed25519.PublicKey
	for _, spki := range keys.Live(evidence.RoleCheckpoint) {
		k, err := evidence.ParseCheckpointKey(spki)
		if err != nil {
			return ledger.Checkpoint{}, fmt.Errorf("open checkpoint: %w", err)
		}
		known = append(known, k)
	}
	verifiers, err := ledger.Ed25519Verifiers(keys.Opened.Origin, known...)
	if err != nil {
		return ledger.Checkpoint{}, fmt.Errorf("open checkpoint: %w", err)
	}
	return ledger.OpenCheckpoint(note, keys.Opened.Origin, verifiers)
}
