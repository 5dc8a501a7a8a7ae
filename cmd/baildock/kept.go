package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/warden"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// The last signed checkpoint of each ledger also lies outside every home, so that a home that was
// restored from a copy, or copied and grown apart, is noticed before it writes (req R8).
const (
	keptName     = "checkpoint"
	keptLockName = "lock"
)

// access is what a verb means to do with a home.
type access int

const (
	toWrite access = iota // the zero value: whoever says nothing is checked in full
	toRead
)

// custodyName is the directory of custody files beside those of the ledgers (req E8).
const custodyName = "custody"

// stateDir is ${XDG_STATE_HOME:-~/.local/state}/baildock. A relative XDG_STATE_HOME is ignored, as the
// XDG Base Directory Specification wants.
func stateDir() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(user, ".local", "state")
	}
	return filepath.Join(base, "baildock"), nil
}

// keptDir is where the last checkpoint of a ledger is kept.
func keptDir(id evidence.LedgerID) (string, error) {
	dir, err := stateDir()
	return filepath.Join(dir, id.String()), err
}

// custodyFiles is the custody of what no ledger's attempt has.
func custodyFiles() (*warden.CustodyFiles, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	return warden.OpenCustodyFiles(filepath.Join(dir, custodyName), sqlite.RefuseNetwork)
}

// readKept reads the note kept for a ledger; ok is false where none is.
func readKept(id evidence.LedgerID) (path string, note []byte, ok bool, err error) {
	dir, err := keptDir(id)
	if err != nil {
		return "", nil, false, nil // a user without a home directory keeps nothing
	}
	path = filepath.Join(dir, keptName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return path, nil, false, nil
	}
	note, err = readBounded(path, ledger.MaxNote)
	return path, note, err == nil, err
}

// compareWithKept refuses to write to a home that doesn't continue the checkpoint kept outside of
// it. Somebody who only reads is told.
func (h *home) compareWithKept(c *cli.Context, a access) error {
	path, note, ok, err := readKept(h.file.Ledger)
	if err != nil {
		return err
	}
	if !ok {
		if a == toWrite {
			return h.firstUse(c, path)
		}
		return nil
	}
	err = h.continues(c.Context, path, note)
	var f *failure
	if a == toRead && errors.As(err, &f) && f.Exit == exitBadEvidence {
		tell(c, "note: %s", f.What)
		return nil
	}
	return err
}

// tell says something beside the data that must never be silent, not even with --quiet or --json.
func tell(c *cli.Context, format string, args ...any) {
	fmt.Fprintf(c.App.ErrWriter, "baildock: %s\n", visible(fmt.Sprintf(format, args...)))
}

// continues checks that the ledger continues a kept checkpoint: it is as long, and has its root.
func (h *home) continues(ctx context.Context, path string, note []byte) error {
	refused := func(code, format string, args ...any) error {
		return fail(exitBadEvidence, code, format, args...).
			hint("if this home is the one to go on with, keep a copy of %q, tell those who hold bundles what is lost, and remove it; baildock audit says more", path)
	}
	claim, err := ledger.ReadCheckpoint(note)
	if err != nil {
		return refused("kept_damaged", "the checkpoint kept outside this home, %q, can't be read: %w", path, err)
	}
	size, err := h.store.Size(ctx)
	if err != nil {
		return err
	}
	if size < claim.Size {
		return refused("home_rolled_back", "this home is older than what was signed here: its ledger has %d events, and the checkpoint kept outside it, %q, covers %d; it was restored from a copy, or cut",
			size, path, claim.Size)
	}
	keys, err := h.journal.Keys(ctx, ledger.Index(claim.Size))
	if err != nil {
		return err
	}
	if _, err := journal.OpenCheckpoint(keys, note); err != nil {
		return refused("kept_foreign", "the checkpoint kept outside this home, %q, isn't one of this ledger: %w", path, err)
	}
	root, err := h.store.Root(ctx, claim.Size)
	if err != nil {
		return err
	}
	if root != claim.Root {
		return refused("home_diverged", "the first %d events of this home aren't those that were signed here (root %s; the checkpoint kept outside it, %q, says %s): a copy of it was written to, or its history was changed",
			claim.Size, root, path, claim.Root)
	}
	return nil
}

// firstUse notes that nothing kept here can tell whether the home is a restored one, and keeps what
// the home itself has from now on. A ledger that never signed has nothing to lose.
func (h *home) firstUse(c *cli.Context, path string) error {
	last, ok, err := h.store.LastCheckpoint(c.Context)
	if err != nil || !ok {
		return err
	}
	if path == "" {
		tell(c, "note: there is no place outside this home to keep its last checkpoint; set XDG_STATE_HOME, or a restored home can't be told")
		return nil
	}
	if err := h.continues(c.Context, "this home's own last checkpoint", last.Note); err != nil {
		return err
	}
	tell(c, "note: first use of ledger %s here; %q keeps its last checkpoint from now on. Whether this home was restored from an older copy can't be told this time", h.file.Ledger, path)
	if err := keepOutside(h.file.Ledger, last); err != nil {
		tell(c, "note: its last checkpoint can't be kept: %v", err)
	}
	return nil
}

// readyToKeep makes the place for the next checkpoint. It comes before signing: a signature that
// nothing here would remember is not made.
func (h *home) readyToKeep() error {
	dir, err := keptDir(h.file.Ledger)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = unix.Access(dir, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fail(exitUsage, "state_unwritable", "the next checkpoint can't be kept outside the home, so none was signed: %w", err).
			hint("set XDG_STATE_HOME to a directory that may be written")
	}
	return nil
}

// keepLast keeps the ledger's last signed checkpoint outside the home.
func (h *home) keepLast(ctx context.Context) error {
	last, ok, err := h.store.LastCheckpoint(ctx)
	if err != nil || !ok {
		return err
	}
	if err := keepOutside(h.file.Ledger, last); err != nil {
		return fail(exitInternal, "state_unwritable", "a checkpoint was signed and can't be kept outside the home: %w", err).
			hint("mend that, then: baildock checkpoint sign")
	}
	return nil
}

// keepOutside replaces the kept checkpoint by a larger one, durably, whole or not at all.
func keepOutside(id evidence.LedgerID, cp ledger.Checkpoint) error {
	dir, err := keptDir(id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, keptLockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // releases the lock; nothing is ever written to it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %q: %w", lock.Name(), err)
	}
	path, note, ok, err := readKept(id)
	if err != nil {
		return err
	}
	if ok {
		// The home was compared with it when it was opened; another process may have signed since.
		have, err := ledger.ReadCheckpoint(note)
		if err != nil {
			return fmt.Errorf("%q can't be read: %w", path, err)
		}
		if have.Size > cp.Size || bytes.Equal(note, cp.Note) {
			return nil
		}
	}
	if err := replaceFile(path, 0o600, cp.Note); err != nil {
		return err
	}
	return syncDir(dir)
}
