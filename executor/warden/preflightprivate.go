package warden

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// privatePrefix begins the names of marker directories. No attempt's ID begins so.
const privatePrefix = ".preflight-"

// private is a directory with a marker in it, for one container to read. A lock beside it is held for
// as long as its maker lives.
type private struct {
	dir    string
	marker []byte
	lock   *Lock
}

// newPrivate makes one below parent, which becomes this user's private directory if it is missing, and
// hands it to the user of the container. What dead makers left there goes first.
func newPrivate(parent string, random io.Reader, uid, gid uint32) (_ *private, err error) {
	if !filepath.IsAbs(parent) {
		return nil, fmt.Errorf("the place for a preflight's directory, %q, is not an absolute path", parent)
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("make the place for a preflight's directory: %w", err)
	}
	if err := sweepPrivate(parent); err != nil {
		return nil, err
	}
	var nonce evidence.Nonce
	var secret [32]byte
	for _, b := range [][]byte{nonce[:], secret[:]} {
		if _, err := io.ReadFull(random, b); err != nil {
			return nil, fmt.Errorf("draw a marker: %w", err)
		}
	}
	p := &private{dir: filepath.Join(parent, privatePrefix+nonce.String()), marker: []byte(hex.EncodeToString(secret[:]) + "\n")}
	if p.lock, err = takeLock(p.dir + holdSuffix); err != nil {
		return nil, fmt.Errorf("lock a preflight's directory: %w", err)
	}
	path := filepath.Join(p.dir, markerName)
	err = os.Mkdir(p.dir, 0o700)
	if err == nil {
		err = os.WriteFile(path, p.marker, 0o400)
	}
	if err == nil && os.Geteuid() == 0 {
		err = errors.Join(os.Lchown(path, int(uid), int(gid)), os.Lchown(p.dir, int(uid), int(gid)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a preflight's directory: %w", err), p.remove())
	}
	return p, nil
}

// remove removes the directory, then lets go of it.
func (p *private) remove() error {
	if err := os.RemoveAll(p.dir); err != nil {
		return errors.Join(fmt.Errorf("remove a preflight's directory: %w", err), p.lock.Close())
	}
	return p.lock.Delete()
}

// leave lets go of a directory that a container may still have: a later preflight removes it.
func (p *private) leave() error { return p.lock.Close() }

// sweepPrivate removes what preflights whose process is dead left in a directory.
func sweepPrivate(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("look for what preflights left: %w", err)
	}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), holdSuffix)
		if !isLock || !strings.HasPrefix(name, privatePrefix) {
			continue
		}
		p := &private{dir: filepath.Join(parent, name)}
		p.lock, err = takeLock(p.dir + holdSuffix)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue // its maker lives
		}
		if err != nil {
			return fmt.Errorf("take over what a preflight left: %w", err)
		}
		if err := p.remove(); err != nil {
			return err
		}
	}
	return nil
}
