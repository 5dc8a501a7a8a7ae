package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb"
)

func initCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:   "init",
		Usage:  "make a home: a ledger, its keys, and ledger.pub for those who verify",
		Flags:  []cli.Flag{&cli.StringFlag{Name: "origin", Usage: "the ledger's `NAME` in checkpoints; baildock/<id> when omitted"}},
		Action: p.initHome,
	}
}

func (p *program) initHome(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	dir, err := homeDir(c)
	if err != nil {
		return err
	}
	if err := checkVacant(dir); err != nil {
		return err
	}
	var f homeFile
	f.Version = 1
	if f.Home, err = newNonce(); err != nil {
		return err
	}
	if f.Ledger, err = newNonce(); err != nil {
		return err
	}
	origin := c.String("origin")
	if origin == "" {
		origin = "baildock/" + f.Ledger.String()
	}
	if err := ledger.CheckOrigin(origin); err != nil {
		return usage("--origin: %w", err)
	}
	if err := makeHome(c, dir, f, origin); err != nil {
		return err
	}
	public := filepath.Join(dir, publicName)
	if p.ui.json {
		return p.ui.printJSON(struct {
			Home   string            `json:"home"`
			Ledger evidence.LedgerID `json:"ledger"`
			Origin string            `json:"origin"`
			Public string            `json:"public"`
		}{dir, f.Ledger, origin, public})
	}
	return p.printf("home %s is ready: ledger %s\ngive %s to whoever verifies; keep %s to yourself\nnext: baildock image make, then baildock run --image NAME --source . -- /bin/prog\n",
		dir, f.Ledger, public, filepath.Join(dir, keysName))
}

// checkVacant refuses a directory that holds something.
func checkVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(exitUsage, "home_unreadable", "%q can't be used: %w", dir, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, identityName)); err == nil {
		return fail(exitUsage, "home_exists", "there is a home at %q already; nothing was changed", dir).
			hint("use it, or name another directory with --home")
	}
	if len(entries) > 0 {
		return fail(exitUsage, "home_not_empty", "%q is not empty; nothing was changed", dir).
			hint("name a new or empty directory with --home")
	}
	return nil
}

// makeHome builds the home beside its place and moves it there whole, so that a home exists
// complete or not at all.
func makeHome(c *cli.Context, dir string, f homeFile, origin string) (err error) {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fail(exitUsage, "home_unwritable", "%q can't be made: %w", parent, err)
	}
	tmp, err := os.MkdirTemp(parent, filepath.Base(dir)+".init-*")
	if err != nil {
		return fail(exitUsage, "home_unwritable", "nothing can be made in %q: %w", parent, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := os.Chmod(tmp, homeMode); err != nil {
		return err
	}
	for _, name := range []string{keysName, locksName, executionName} {
		if err := os.Mkdir(filepath.Join(tmp, name), homeMode); err != nil {
			return err
		}
	}
	genesis, err := makeKeys(filepath.Join(tmp, keysName), f.Ledger, origin)
	if err != nil {
		return err
	}
	at, err := ledgerOf(c, tmp)
	if err != nil {
		return err
	}
	public, err := bundle.FormatIdentity(bundle.IdentityOf(genesis))
	if err != nil {
		return err
	}
	identity, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		publicName: []byte(public), identityName: append(identity, '\n'), ignoreName: []byte("*\n"),
	} {
		mode := fs.FileMode(0o600)
		if name == publicName {
			mode = 0o644
		}
		if err := replaceFile(filepath.Join(tmp, name), mode, content); err != nil {
			return err
		}
	}
	if err := openLedger(c.Context, at, tmp, genesis); err != nil {
		return err
	}
	if err := syncDir(tmp); err != nil {
		return err
	}
	// The system's own rename replaces an empty directory, and nothing else.
	if err := unix.Rename(tmp, dir); err != nil {
		if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) {
			return fail(exitUsage, "home_exists", "somebody else made %q meanwhile; nothing was changed", dir)
		}
		return fail(exitUsage, "home_unwritable", "the home can't be moved to %q: %w", dir, err)
	}
	return syncDir(parent)
}

// makeKeys makes both keys and the genesis event that names them.
func makeKeys(dir string, id evidence.LedgerID, origin string) (evidence.LedgerOpened, error) {
	g := evidence.LedgerOpened{Ledger: id, Origin: origin}
	pem, err := export.GenerateBundleKey(rand.Reader)
	if err != nil {
		return g, err
	}
	signer, err := export.ParseBundleKey(pem, export.NoPassword)
	if err != nil {
		return g, err
	}
	if err := export.WriteKey(filepath.Join(dir, bundleKeyName), pem); err != nil {
		return g, err
	}
	if pem, err = export.GenerateCheckpointKey(rand.Reader); err != nil {
		return g, err
	}
	checkpoint, err := export.ParseCheckpointKey(pem, export.NoPassword)
	if err != nil {
		return g, err
	}
	if err := export.WriteKey(filepath.Join(dir, checkpointKeyName), pem); err != nil {
		return g, err
	}
	g.Bundle, g.Checkpoint = signer.SPKI(), checkpoint.SPKI()
	return g, nil
}

// openLedger makes the ledger with its genesis event.
func openLedger(ctx context.Context, at ledgerAt, home string, g evidence.LedgerOpened) (err error) {
	store, err := at.open(ctx, home, false)
	if err != nil {
		return ledgerFailure(at, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if cluster, ok := store.(*kurrentdb.Store); ok {
		if err := cluster.Protect(ctx); err != nil {
			return fail(exitInternal, "ledger_unprotected", "%w", err)
		}
	}
	err = journal.New(journal.Config{Ledger: store, Actor: actorOperator}).Init(ctx, g)
	var other *journal.OtherLedgerError
	if errors.As(err, &other) {
		return fail(exitUsage, "ledger_exists", "%q holds the ledger %s already; nothing was changed", at, other.Ledger).
			hint("name a new file, or on a cluster another ?ledger=NAME, with --ledger")
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("make %q durable: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("make %q durable: %w", dir, err)
	}
	return nil
}
