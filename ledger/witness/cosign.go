package witness

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/baildock/baildock/ledger"
)

// Cosigner adds its signature to checkpoints that continue what it saw before (C2SP tlog-witness).
type Cosigner struct {
	Name    string
	Private ed25519.PrivateKey
	Dir     string           // where it remembers; made with mode 0700 if absent
	Now     func() time.Time // nil: time.Now
}

// StaleError says that a request doesn't start from what the cosigner has seen: ask again with a
// proof from there.
type StaleError struct {
	Old, Seen uint64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("the proof starts at size %d; this cosigner has seen size %d", e.Old, e.Seen)
}

// ForkError says that a checkpoint doesn't continue what the cosigner has seen: the ledger was
// rolled back, or shows two histories. Both notes together are the proof of it.
type ForkError struct {
	Seen ledger.Checkpoint // what was cosigned before
	Why  string
}

func (e *ForkError) Error() string { return e.Why }

// Key is the cosigner's public key under its name.
func (c Cosigner) Key() (Key, error) {
	if len(c.Private) != ed25519.PrivateKeySize {
		return Key{}, fmt.Errorf("cosigner's private key has %d bytes; an Ed25519 key has %d", len(c.Private), ed25519.PrivateKeySize)
	}
	return NewKey(c.Name, c.Private.Public().(ed25519.PublicKey))
}

// Cosign returns the request's note with one more signature line, after it has remembered the
// checkpoint durably. The note must be signed by one of the ledger's keys for its origin. A size
// below the one seen, another root at the size seen, and a proof that doesn't hold are a
// *ForkError; a proof from another size than the one seen is a *StaleError. Nothing is signed or
// remembered then.
func (c Cosigner) Cosign(r Request, origin string, keys note.Verifiers) ([]byte, error) {
	key, err := c.Key()
	if err != nil {
		return nil, err
	}
	if c.Name == origin {
		return nil, fmt.Errorf("cosigner %q has the ledger's own name; a ledger can't witness itself", c.Name)
	}
	cp, err := ledger.OpenCheckpoint(r.Note, origin, keys)
	if err != nil {
		return nil, err
	}
	m, err := openMemory(c.Dir, origin)
	if err != nil {
		return nil, err
	}
	defer m.close()
	if err := m.continues(r, cp); err != nil {
		return nil, err
	}
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	n, err := note.Open(r.Note, keys)
	if err != nil {
		return nil, fmt.Errorf("cosign: %w", err)
	}
	n.UnverifiedSigs = withoutOwn(n.UnverifiedSigs, key)
	signed, err := note.Sign(n, signer{key, c.Private, uint64(now().Unix())})
	if err != nil {
		return nil, fmt.Errorf("cosign: %w", err)
	}
	if len(signed) > ledger.MaxNote {
		return nil, fmt.Errorf("cosign: the note would have %d bytes; at most %d are allowed", len(signed), ledger.MaxNote)
	}
	// Remembered before anybody gets the signature: after a crash in between, nothing is out there
	// that this cosigner could contradict.
	if err := m.remember(cp); err != nil {
		return nil, err
	}
	return signed, nil
}

// Seen returns what the cosigner remembers of an origin; ok is false when nothing.
func (c Cosigner) Seen(origin string) (seen ledger.Checkpoint, ok bool, err error) {
	m, err := openMemory(c.Dir, origin)
	if err != nil {
		return ledger.Checkpoint{}, false, err
	}
	defer m.close()
	return m.seen, m.any, nil
}

// withoutOwn leaves out an earlier cosignature of the same key.
func withoutOwn(sigs []note.Signature, key Key) []note.Signature {
	var out []note.Signature
	for _, s := range sigs {
		if s.Name != key.name || s.Hash != key.hash() {
			out = append(out, s)
		}
	}
	return out
}

// memory is what a cosigner remembers of one origin: the last checkpoint it signed, without
// signatures, in a file named by the origin's hash. It is locked while open.
type memory struct {
	path string
	lock *os.File
	seen ledger.Checkpoint
	any  bool
}

func openMemory(dir, origin string) (*memory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cosigner's memory: %w", err)
	}
	sum := sha256.Sum256([]byte(origin))
	m := &memory{path: filepath.Join(dir, hex.EncodeToString(sum[:])+".seen")}
	lock, err := os.OpenFile(m.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cosigner's memory: %w", err)
	}
	m.lock = lock
	if err := m.load(origin); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// load takes the lock and reads what was seen.
func (m *memory) load(origin string) error {
	if err := syscall.Flock(int(m.lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("cosigner's memory: lock: %w", err)
	}
	text, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cosigner's memory: %w", err)
	}
	// A memory that can't be read is not an empty one: signing on would forget what was seen.
	if m.seen, err = ledger.ParseCheckpoint(string(text)); err != nil {
		return fmt.Errorf("cosigner's memory %s is damaged: %w", m.path, err)
	}
	if m.seen.Origin != origin {
		return fmt.Errorf("cosigner's memory %s is of origin %q, not %q", m.path, m.seen.Origin, origin)
	}
	m.any = true
	return nil
}

// close releases the lock; closing an open file that was only locked loses nothing.
func (m *memory) close() { _ = m.lock.Close() }

// continues checks that a checkpoint continues what was seen.
func (m *memory) continues(r Request, cp ledger.Checkpoint) error {
	fork := func(format string, args ...any) error {
		return &ForkError{Seen: m.seen, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case m.any && cp.Size < m.seen.Size:
		return fork("the checkpoint covers %d events; this cosigner has seen %d: the ledger was rolled back, or the file is old", cp.Size, m.seen.Size)
	case m.any && cp.Size == m.seen.Size && cp.Root != m.seen.Root:
		return fork("the checkpoint has root %s at size %d; this cosigner has seen %s there: the ledger shows two histories", cp.Root, cp.Size, m.seen.Root)
	case r.Old != m.seen.Size:
		return &StaleError{Old: r.Old, Seen: m.seen.Size}
	}
	root := m.seen.Root
	if !m.any {
		root = ledger.EmptyRoot
	}
	if err := ledger.VerifyConsistency(r.Old, root, cp.Size, cp.Root, r.Proof); err != nil {
		return fork("the checkpoint doesn't continue what this cosigner has seen at size %d: %v", r.Old, err)
	}
	return nil
}

// remember replaces what was seen, durably, whole or not at all.
func (m *memory) remember(cp ledger.Checkpoint) error {
	text := []byte(ledger.FormatCheckpoint(cp.Origin, cp.Size, cp.Root))
	if m.any && bytes.Equal(text, []byte(ledger.FormatCheckpoint(m.seen.Origin, m.seen.Size, m.seen.Root))) {
		return nil
	}
	dir := filepath.Dir(m.path)
	f, err := os.CreateTemp(dir, ".seen-*")
	if err != nil {
		return fmt.Errorf("cosigner's memory: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), m.path)
	}
	if err != nil {
		return fmt.Errorf("cosigner's memory: %w", errors.Join(err, os.Remove(f.Name())))
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cosigner's memory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("cosigner's memory: %w", err)
	}
	return nil
}
