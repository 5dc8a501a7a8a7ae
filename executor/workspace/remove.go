package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/executor/source"
)

// Remove removes what was prepared and nothing else, through the handles it was made with: the workspace
// with whatever the agent left in it, the evidence, and their directory (req O6). Call it only after the
// container's absence was confirmed and what is needed of the workspace was read. On failure everything
// not yet removed is kept and a *LeftoverError names it. The workspace is of no use afterwards.
func (w *Workspace) Remove() error {
	err := w.removeMade()
	if err = errors.Join(err, w.parent.Close()); err != nil {
		return &LeftoverError{Dir: filepath.Dir(w.Dir), Remove: err}
	}
	return nil
}

// Keep gives the handles back and leaves everything in place, for a run whose container may still exist.
func (w *Workspace) Keep() error {
	return errors.Join(w.closeMade(), w.parent.Close())
}

func (w *Workspace) closeMade() error {
	var errs []error
	if w.captured != nil {
		w.captured.listing.Close()
		w.captured = nil
	}
	if w.texts != nil {
		errs = append(errs, w.texts.file.Close())
		w.texts = nil
	}
	for _, f := range []**os.File{&w.tree, &w.evidenceTree, &w.top} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(errs...)
}

// removeMade removes what make and fill made, as far as they came.
func (w *Workspace) removeMade() error {
	var errs []error
	if w.top != nil {
		errs = append(errs, removeDir(w.top, treeName, w.tree), removeDir(w.top, evidenceName, w.evidenceTree))
	}
	if errors.Join(errs...) == nil && w.name != "" {
		if err := sameDir(w.parent, w.name, w.top); err != nil {
			errs = append(errs, err)
		} else if err := unix.Unlinkat(int(w.parent.Fd()), w.name, unix.AT_REMOVEDIR); err != nil {
			errs = append(errs, fmt.Errorf("remove the workspace's directory: %w", err))
		}
	}
	return errors.Join(append(errs, w.closeMade())...)
}

// removeDir empties and removes a directory that was made; nil means it wasn't.
func removeDir(in *os.File, name string, dir *os.File) error {
	if dir == nil {
		return nil
	}
	if err := sameDir(in, name, dir); err != nil {
		return err
	}
	// The agent may have taken its owner's rights away.
	if err := unix.Fchmod(int(dir.Fd()), 0o700); err != nil {
		return fmt.Errorf("remove the directory %s: %w", name, err)
	}
	if _, err := source.RemoveEntries(dir); err != nil {
		return err
	}
	if err := unix.Unlinkat(int(in.Fd()), name, unix.AT_REMOVEDIR); err != nil {
		return fmt.Errorf("remove the directory %s: %w", name, err)
	}
	return nil
}

// sameDir proves that a name still stands for the directory that was made; nil means it was never opened.
func sameDir(in *os.File, name string, dir *os.File) error {
	if dir == nil {
		return nil
	}
	var there, made unix.Stat_t
	if err := unix.Fstatat(int(in.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("look at the directory %s: %w", name, err)
	}
	if err := unix.Fstat(int(dir.Fd()), &made); err != nil {
		return fmt.Errorf("look at the directory %s: %w", name, err)
	}
	if there.Dev != made.Dev || there.Ino != made.Ino {
		return fmt.Errorf("the directory %s isn't the one that was made; nothing of it is removed", name)
	}
	return nil
}
