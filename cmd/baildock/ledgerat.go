package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb"
	"github.com/baildock/baildock/ledger/sqlite"
)

// ledgerAt is where a ledger lies: in a file, or on a cluster.
type ledgerAt struct {
	path string // of the file; empty for a cluster
	url  string // of the cluster; may hold a password
}

// ledgerOf is the ledger that a command line names; a home's own lies in dir.
func ledgerOf(c *cli.Context, dir string) (ledgerAt, error) {
	named := c.String("ledger")
	if named == "" {
		return ledgerAt{path: filepath.Join(dir, ledgerName)}, nil
	}
	at, err := parseLedger(named)
	if err != nil {
		return at, usage("--ledger: %w", err).hint("name a file, or a cluster like esdb://host:2113?ledger=main")
	}
	return at, nil
}

// parseLedger reads a path or a connection string.
func parseLedger(named string) (ledgerAt, error) {
	if kurrentdb.Is(named) {
		return ledgerAt{url: named}, kurrentdb.Check(named)
	}
	if scheme, _, ok := strings.Cut(named, "://"); ok {
		return ledgerAt{}, errors.New("there is no " + scheme + " backend")
	}
	path, err := filepath.Abs(named)
	return ledgerAt{path: path}, err
}

// String names the ledger for people, without its password.
func (at ledgerAt) String() string {
	if at.url != "" {
		return kurrentdb.Redacted(at.url)
	}
	return at.path
}

// dir is the directory the ledger writes to on this machine; home is that of the cache.
func (at ledgerAt) dir(home string) string {
	if at.url != "" {
		return home
	}
	return filepath.Dir(at.path)
}

// open opens the ledger. A cluster's cache lies in home; empty: in memory.
func (at ledgerAt) open(ctx context.Context, home string, mustExist bool) (ledger.Ledger, error) {
	if at.url == "" {
		return sqlite.Open(ctx, at.path, sqlite.Options{MustExist: mustExist})
	}
	o := kurrentdb.Options{MustExist: mustExist}
	if home != "" {
		name, err := kurrentdb.LedgerName(at.url)
		if err != nil {
			return nil, err
		}
		o.Cache = filepath.Join(home, cachePrefix+name+".db")
	}
	return kurrentdb.Open(ctx, at.url, o)
}

// exhibitOf is how a ledger shows an audit what it keeps.
func exhibitOf(l ledger.Ledger) (ledger.Exhibit, bool) {
	if s, ok := l.(*kurrentdb.Store); ok {
		return s.Exhibit(), true
	}
	e, ok := l.(ledger.Exhibit)
	return e, ok
}

// ledgerFailure is a ledger that can't be opened.
func ledgerFailure(at ledgerAt, err error) error {
	var form *sqlite.FormError
	var empty *kurrentdb.EmptyError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitUsage, "ledger_missing", "there is no ledger at %q", at).hint("baildock init makes one; --ledger names another")
	case errors.As(err, &empty):
		return fail(exitUsage, "ledger_missing", "%w", err).hint("baildock init --ledger makes one; ?ledger=NAME names another")
	case errors.As(err, &form):
		return fail(exitUsage, "ledger_form", "%w", err)
	}
	return fail(exitInternal, "ledger_unreadable", "the ledger %q can't be opened: %w", at, err)
}
