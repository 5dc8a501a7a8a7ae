package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// BlobKey names a blob: SHA-256(salt ‖ data). With a 32-byte salt it reveals nothing about
// short data; without one it is the plain SHA-256.
type BlobKey [sha256.Size]byte

func (k BlobKey) String() string { return "sha256:" + hex.EncodeToString(k[:]) }

// Blob is a byte string kept outside the tree, named by an event. Salt is empty or 32 bytes.
type Blob struct {
	Salt []byte
	Data []byte
}

// Key computes the blob's name.
func (b Blob) Key() BlobKey {
	h := sha256.New()
	h.Write(b.Salt)
	h.Write(b.Data)
	return BlobKey(h.Sum(nil))
}

// SaltSize is the length of a salt, in bytes.
const SaltSize = 32

// CheckBlob checks a blob's shape. Every store calls it before it stores one.
func CheckBlob(b Blob) error {
	if len(b.Salt) != 0 && len(b.Salt) != SaltSize {
		return fmt.Errorf("blob salt has %d bytes; 0 or %d are allowed", len(b.Salt), SaltSize)
	}
	if len(b.Data) > MaxBlob {
		return fmt.Errorf("blob has %d bytes; at most %d are allowed", len(b.Data), MaxBlob)
	}
	return nil
}

// Blobs keeps byte strings outside the tree, so that withholding or forgetting one never breaks
// a proof.
type Blobs interface {
	// Put stores blobs durably, all or none; storing one again is no error, and storing a
	// forgotten one restores it.
	Put(ctx context.Context, blobs ...Blob) error
	// Get returns the blob after checking that it hashes to key. It fails with
	// *BlobAbsentError when there is none, and with *BlobDamagedError when it hashes to another.
	Get(ctx context.Context, key BlobKey) (Blob, error)
	// Forget removes the bytes for good and remembers that it did. Forgetting an unknown key fails
	// with *BlobAbsentError.
	Forget(ctx context.Context, key BlobKey) error
}

// BlobAbsentError says that a blob's bytes are not here.
type BlobAbsentError struct {
	Key       BlobKey
	Forgotten bool // it was here and was forgotten
}

func (e *BlobAbsentError) Error() string {
	if e.Forgotten {
		return fmt.Sprintf("blob %s was forgotten", e.Key)
	}
	return fmt.Sprintf("blob %s is absent", e.Key)
}

// BlobDamagedError says that a stored blob no longer has the digest it is named by.
type BlobDamagedError struct {
	Key BlobKey
	How string
}

func (e *BlobDamagedError) Error() string {
	return fmt.Sprintf("blob %s is damaged: %s", e.Key, e.How)
}
