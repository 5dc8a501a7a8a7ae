package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/ledger"
)

// What lies in a home.
const (
	ledgerName      = "ledger.db"
	keysName        = "keys" // both private keys, 0600
	publicName      = "ledger.pub"
	identityName    = "home.json" // home ID and ledger ID
	locksName       = "locks"
	executionName   = "execution" // <attempt>/<generation>/ with the snapshots
	projectionsName = "projections.db"
	cachePrefix     = "ledger-cache-" // of a ledger on a cluster, then its name; disposable
	ignoreName      = ".gitignore"
)

// What lies in keysName.
const (
	bundleKeyName     = "bundle.pem"
	checkpointKeyName = "checkpoint.pem"
)

const homeMode = 0o700

// homeDir is the home a command line names, absolute and free of links as far as it exists.
func homeDir(c *cli.Context) (string, error) {
	named := c.String("home")
	if named == "" {
		return "", usage("the home is empty").hint("name a directory with --home or BAILDOCK_HOME")
	}
	abs, err := filepath.Abs(named)
	if err != nil {
		return "", fmt.Errorf("home %q: %w", named, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return abs, nil
	}
	if err != nil {
		return "", fail(exitUsage, "home_unreadable", "home %q can't be reached: %w", named, err)
	}
	return real, nil
}

// existingHome is the home, checked: a directory of this user's that nobody else may enter.
func existingHome(c *cli.Context) (string, error) {
	dir, err := homeDir(c)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fail(exitUsage, "home_missing", "there is no home at %q", dir).
			hint("baildock init makes one; --home or BAILDOCK_HOME name another")
	case err != nil:
		return "", fail(exitUsage, "home_unreadable", "home %q can't be read: %w", dir, err)
	case !info.IsDir():
		return "", fail(exitUsage, "home_missing", "home %q is no directory", dir)
	}
	if err := checkPrivate(dir, info); err != nil {
		return "", err
	}
	if _, err := os.Lstat(filepath.Join(dir, identityName)); err != nil {
		return "", fail(exitUsage, "home_missing", "%q is no home: it holds no %s", dir, identityName).
			hint("baildock init makes one; --home or BAILDOCK_HOME name another")
	}
	return dir, nil
}

func checkPrivate(dir string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fail(exitUsage, "home_not_yours", "home %q belongs to user %d, not to you (%d)", dir, st.Uid, os.Geteuid()).
			hint("use a home of your own: --home DIR")
	}
	if perm := info.Mode().Perm(); perm != homeMode {
		return fail(exitUsage, "home_not_private", "home %q has mode %04o; it must be 0700", dir, perm).
			hint("chmod 700 %s", dir)
	}
	return nil
}

// reservedIn is what never enters a snapshot: home, ledger, keys and Docker socket in use.
func reservedIn(c *cli.Context) ([]source.Reserved, error) {
	dir, err := homeDir(c)
	if err != nil {
		return nil, err
	}
	at, err := ledgerOf(c, dir)
	if err != nil {
		return nil, err
	}
	reserved := []source.Reserved{
		{Kind: source.ReservedHome, Path: dir},
		{Kind: source.ReservedKeys, Path: filepath.Join(dir, keysName)},
		{Kind: source.ReservedSocket, Path: strings.TrimPrefix(c.String("docker-socket"), "unix://")},
	}
	if at.path != "" {
		reserved = append(reserved, source.Reserved{Kind: source.ReservedLedger, Path: at.path})
	}
	return reserved, nil
}

// homeFile tells a home from others; its inode tells it from a copy of itself.
type homeFile struct {
	Version uint              `json:"version"` // 1
	Home    evidence.HomeID   `json:"home"`
	Ledger  evidence.LedgerID `json:"ledger"`
}

// home is an opened home.
type home struct {
	dir     string
	file    homeFile
	store   ledger.Ledger
	journal *journal.Journal
	genesis evidence.LedgerOpened

	ledgerDir string // where the ledger writes on this machine
}

// Actors, as every event names its writer.
const (
	actorOperator = "operator" // a person at the command line
	actorRunner   = "runner"   // the process that drives an attempt

	actorSupervisor = "supervisor" // the process that ends what dead runners left
)

// openHome opens the ledger of the home a command line names, having compared it with what was kept
// outside of it. The caller closes it.
func openHome(c *cli.Context, actor string, a access) (*home, error) {
	dir, err := existingHome(c)
	if err != nil {
		return nil, err
	}
	file, err := readHomeFile(dir)
	if err != nil {
		return nil, err
	}
	at, err := ledgerOf(c, dir)
	if err != nil {
		return nil, err
	}
	store, err := at.open(c.Context, dir, true)
	if err != nil {
		return nil, ledgerFailure(at, err)
	}
	h := &home{dir: dir, file: file, store: store, ledgerDir: at.dir(dir)}
	h.journal = journal.New(journal.Config{Ledger: store, Actor: actor})
	if h.genesis, err = h.journal.Genesis(c.Context); err != nil {
		return nil, errors.Join(ledgerFailure(at, err), store.Close())
	}
	if h.genesis.Ledger != file.Ledger {
		err := fail(exitUsage, "ledger_other", "the ledger %q is %s; this home belongs to %s", at, h.genesis.Ledger, file.Ledger).
			hint("name the home that was made with this ledger: --home DIR")
		return nil, errors.Join(err, store.Close())
	}
	if err := h.compareWithKept(c, a); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return h, nil
}

func (h *home) path(name ...string) string {
	return filepath.Join(append([]string{h.dir}, name...)...)
}

// withHome runs a verb's work on a home opened for writing and closes it.
func withHome(c *cli.Context, actor string, work func(*home) error) error {
	return withOpened(c, actor, toWrite, work)
}

// readHome is withHome for a verb that appends, signs and runs nothing.
func readHome(c *cli.Context, work func(*home) error) error {
	return withOpened(c, actorOperator, toRead, work)
}

func withOpened(c *cli.Context, actor string, a access, work func(*home) error) error {
	h, err := openHome(c, actor, a)
	if err != nil {
		return err
	}
	err = work(h)
	if closeErr := h.store.Close(); closeErr != nil {
		return errors.Join(err, fmt.Errorf("close the ledger: %w", closeErr))
	}
	return err
}

func readHomeFile(dir string) (homeFile, error) {
	path := filepath.Join(dir, identityName)
	b, err := readBounded(path, 4096)
	if err != nil {
		return homeFile{}, err
	}
	var f homeFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err = errors.Join(checkKeys(b), d.Decode(&f))
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("something follows it")
	}
	if err != nil {
		return homeFile{}, fail(exitUsage, "home_damaged", "%q can't be read: %w", path, err)
	}
	if f.Version != 1 {
		return homeFile{}, fail(exitUsage, "home_newer", "home %q has form %d; this version knows 1", dir, f.Version).hint("update baildock")
	}
	return f, nil
}
