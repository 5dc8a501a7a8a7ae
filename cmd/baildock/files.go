package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// createFile writes a file that must not exist yet.
func createFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fail(exitUsage, "file_exists", "file %q exists already", path).hint("remove it or name another")
	}
	if err != nil {
		return unwritable(path, err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %q: %w", path, err), os.Remove(path))
	}
	return nil
}

// replaceFile writes a file whole or not at all.
func replaceFile(path string, mode fs.FileMode, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return unwritable(path, err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %q: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

func unwritable(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fail(exitUsage, "file_unwritable", "file %q can't be written: %w", path, err).
		hint("check that the directory exists and may be written")
}
