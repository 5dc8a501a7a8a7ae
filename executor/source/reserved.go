package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ReservedKind says what a reserved path is.
type ReservedKind string

const (
	ReservedHome   ReservedKind = "home"
	ReservedLedger ReservedKind = "ledger"
	ReservedKeys   ReservedKind = "keys"
	ReservedSocket ReservedKind = "docker socket"
)

// Reserved is a file or directory in use that never enters a snapshot, wherever it lies and by
// whatever name (req B7). A path that doesn't exist reserves nothing.
type Reserved struct {
	Kind ReservedKind
	Path string
}

// A directory that holds both of these is a home, in use or not.
const (
	homeLedgerName = "ledger.db"
	homeKeysName   = "keys"
)

// place is a file's identity on this machine.
type place struct {
	dev, ino uint64
}

func placeOf(st *unix.Stat_t) place { return place{dev: uint64(st.Dev), ino: st.Ino} }

// guard is the reserved paths by identity.
type guard map[place]ReservedKind

func newGuard(reserved []Reserved) (guard, error) {
	g := guard{}
	for _, r := range reserved {
		var st unix.Stat_t
		err := unix.Stat(r.Path, &st)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at the %s in use: %w", r.Kind, err)
		}
		g[placeOf(&st)] = r.Kind
	}
	return g, nil
}

// checkOutside refuses a source that is a home, ledger or keys directory or lies in one, in use
// or not.
func (g guard) checkOutside(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return fmt.Errorf("look at %q: %w", dir, err)
		}
		kind, reserved := g[placeOf(&st)]
		if reserved && kind != ReservedSocket || isHome(dir) {
			return refuse(CodeInsideHome, "", "the source lies inside a baildock home; choose a directory outside")
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func isHome(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(filepath.Join(dir, homeLedgerName), &st) == nil &&
		unix.Lstat(filepath.Join(dir, homeKeysName), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
