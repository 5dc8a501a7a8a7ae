package ledger

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

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

// ErrCheckpointUnsigned means that no trusted key signed the checkpoint for its origin.
var ErrCheckpointUnsigned = errors.New("checkpoint isn't signed by a trusted key")

// CheckOrigin checks a ledger's origin, which is also its key's name: 1..MaxOrigin bytes of UTF-8
// without spaces, control characters and '+' (C2SP signed-note, key names).
func CheckOrigin(origin string) error {
	if origin == "" || len(origin) > MaxOrigin {
		return fmt.Errorf("origin has %d bytes; 1 to %d are allowed", len(origin), MaxOrigin)
	}
	bad := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '+' }
	if !utf8.ValidString(origin) || strings.ContainsFunc(origin, bad) {
		return fmt.Errorf("origin %q is malformed; use no spaces, control characters or '+'", origin)
	}
	return nil
}

// FormatCheckpoint returns the text that a checkpoint's signatures cover (C2SP tlog-checkpoint):
// three lines and no extension lines.
func FormatCheckpoint(origin string, size uint64, root Hash) string {
	return origin + "\n" + strconv.FormatUint(size, 10) + "\n" + base64.StdEncoding.EncodeToString(root[:]) + "\n"
}

// ParseCheckpoint is the inverse of FormatCheckpoint. It checks no signature, accepts no other
// spelling and no extension lines, and leaves Note nil. Use OpenCheckpoint for a signed note.
func ParseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) != 4 || lines[3] != "" {
		return Checkpoint{}, errors.New("checkpoint must have exactly three lines: origin, size and root")
	}
	c := Checkpoint{Origin: lines[0]}
	if err := CheckOrigin(c.Origin); err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil || checkSize(size) != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint size %q is not a decimal number in range", lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return Checkpoint{}, fmt.Errorf("checkpoint root %q is not the base64 of %d bytes", lines[2], len(c.Root))
	}
	c.Size, c.Root = size, Hash(root)
	if FormatCheckpoint(c.Origin, c.Size, c.Root) != text {
		return Checkpoint{}, errors.New("checkpoint is not in its canonical form")
	}
	return c, nil
}

// Sign returns the signed checkpoint of a tree head.
func (s CheckpointSigner) Sign(size uint64, root Hash) (Checkpoint, error) {
	if err := CheckOrigin(s.Origin); err != nil {
		return Checkpoint{}, fmt.Errorf("sign checkpoint: %w", err)
	}
	if s.Signer == nil || s.Signer.Name() != s.Origin {
		return Checkpoint{}, fmt.Errorf("sign checkpoint: the key's name must be the origin %q", s.Origin)
	}
	if err := checkSize(size); err != nil {
		return Checkpoint{}, fmt.Errorf("sign checkpoint: %w", err)
	}
	msg, err := note.Sign(&note.Note{Text: FormatCheckpoint(s.Origin, size, root)}, s.Signer)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("sign checkpoint: %w", err)
	}
	return Checkpoint{Origin: s.Origin, Size: size, Root: root, Note: msg}, nil
}

// OpenCheckpoint parses a signed note and verifies it: the origin is `origin` and at least one of
// `known` keys named after the origin signed it. A known key's bad signature fails; signatures of
// unknown keys are ignored (C2SP signed-note). It fails with ErrCheckpointUnsigned when no known
// key of the origin signed.
func OpenCheckpoint(msg []byte, origin string, known note.Verifiers) (Checkpoint, error) {
	if len(msg) > MaxNote {
		return Checkpoint{}, fmt.Errorf("checkpoint note has %d bytes; at most %d are allowed", len(msg), MaxNote)
	}
	n, err := note.Open(msg, known)
	var unverified *note.UnverifiedNoteError
	if errors.As(err, &unverified) {
		return Checkpoint{}, ErrCheckpointUnsigned
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("open checkpoint: %w", err)
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	if c.Origin != origin {
		return Checkpoint{}, fmt.Errorf("checkpoint is of origin %q, expected %q", c.Origin, origin)
	}
	// The note package accepts several base64 spellings of one signature; we accept one.
	for _, sig := range append(n.Sigs[:len(n.Sigs):len(n.Sigs)], n.UnverifiedSigs...) {
		if _, err := base64.StdEncoding.Strict().DecodeString(sig.Base64); err != nil {
			return Checkpoint{}, fmt.Errorf("checkpoint signature of %q is not in canonical base64", sig.Name)
		}
	}
	for _, sig := range n.Sigs {
		if sig.Name == origin {
			c.Note = append([]byte(nil), msg...)
			return c, nil
		}
	}
	return Checkpoint{}, ErrCheckpointUnsigned
}

// ReadCheckpoint parses a signed note and verifies nothing: it tells what a note claims, for those
// who must know its size before they can judge it. Use OpenCheckpoint for anything else.
func ReadCheckpoint(msg []byte) (Checkpoint, error) {
	if len(msg) > MaxNote {
		return Checkpoint{}, fmt.Errorf("checkpoint note has %d bytes; at most %d are allowed", len(msg), MaxNote)
	}
	_, err := note.Open(msg, note.VerifierList())
	var unverified *note.UnverifiedNoteError
	if !errors.As(err, &unverified) {
		return Checkpoint{}, fmt.Errorf("not a signed note: %w", err)
	}
	c, err := ParseCheckpoint(unverified.Note.Text)
	c.Note = bytes.Clone(msg)
	return c, err
}

// OriginError says that a ledger's checkpoints are kept under another origin than asked for.
type OriginError struct{ Kept, Asked string }

func (e *OriginError) Error() string {
	return fmt.Sprintf("this ledger's checkpoints are of origin %q, not %q", e.Kept, e.Asked)
}
