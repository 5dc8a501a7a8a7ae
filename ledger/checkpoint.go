package ledger

import "golang.org/x/mod/sumdb/note"

// Checkpoint is a signed tree head in the C2SP tlog-checkpoint format: a signed note whose text
// is origin, decimal size and base64 root, a line each.
type Checkpoint struct {
	Origin string
	Size   uint64
	Root   Hash
	Note   []byte // the signed note, exactly as signed
}

// CheckpointSigner signs for one origin. Signer.Name must equal Origin.
type CheckpointSigner struct {
	Origin string
	Signer note.Signer
}
