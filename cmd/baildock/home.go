package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/executor/source"
)

// What lies in a home.
const (
	ledgerName      = "ledger.db"
	keysName        = "keys" // bundle.pem and checkpoint.pem, 0600
	publicName      = "ledger.pub"
	identityName    = "home.json" // home ID and ledger ID
	locksName       = "locks"
	executionName   = "execution" // <attempt>/<generation>/ with the snapshots
	projectionsName = "projections.db"
	ignoreName      = ".gitignore"
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

// ledgerPath is the file the ledger lies in.
func ledgerPath(c *cli.Context, dir string) (string, error) {
	named := c.String("ledger")
	if named == "" {
		return filepath.Join(dir, ledgerName), nil
	}
	if scheme, _, ok := strings.Cut(named, "://"); ok {
		return "", usage("--ledger %q: this build has no %s backend", named, scheme).hint("name a file")
	}
	return filepath.Abs(named)
}

// reservedIn is what never enters a snapshot: home, ledger, keys and Docker socket in use.
func reservedIn(c *cli.Context) []source.Reserved {
	var out []source.Reserved
	if dir, err := homeDir(c); err == nil {
		out = append(out,
			source.Reserved{Kind: source.ReservedHome, Path: dir},
			source.Reserved{Kind: source.ReservedKeys, Path: filepath.Join(dir, keysName)})
		if path, err := ledgerPath(c, dir); err == nil {
			out = append(out, source.Reserved{Kind: source.ReservedLedger, Path: path})
		}
	}
	return append(out, source.Reserved{Kind: source.ReservedSocket, Path: strings.TrimPrefix(c.String("docker-socket"), "unix://")})
}
