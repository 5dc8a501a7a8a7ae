package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
)

// passwordVariable holds the password of encrypted keys. A password never stands on a command line.
const passwordVariable = "BAILDOCK_KEY_PASSWORD"

// keyPassword asks for the password of an encrypted key: of the environment, else of a person.
func (p *program) keyPassword(confirm bool) ([]byte, error) {
	if s, ok := os.LookupEnv(passwordVariable); ok {
		if s == "" {
			return nil, fail(exitUsage, "key_password", "%s is set and empty", passwordVariable)
		}
		return []byte(s), nil
	}
	in, ok := p.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, fail(exitUsage, "key_password", "%w", export.ErrPassword).hint("set %s, or ask from a terminal", passwordVariable)
	}
	first, err := p.prompt(in, "password of the key: ")
	if err != nil || !confirm {
		return first, err
	}
	again, err := p.prompt(in, "the same again: ")
	if err != nil {
		return nil, err
	}
	if string(first) != string(again) {
		return nil, fail(exitUsage, "key_password", "the two passwords differ; nothing was written")
	}
	return first, nil
}

func (p *program) prompt(in *os.File, what string) ([]byte, error) {
	fmt.Fprint(p.ui.err, what)
	b, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(p.ui.err)
	if err != nil {
		return nil, fmt.Errorf("read the password: %w", err)
	}
	if len(b) == 0 {
		return nil, fail(exitUsage, "key_password", "the password is empty")
	}
	return b, nil
}

func kmsFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-kms", EnvVars: []string{"BAILDOCK_ALLOW_KMS"},
		Usage: "follow key references of this `SCHEME`; plugin:SCHEME executes sigstore-kms-SCHEME from PATH"}
}

// allowedKMS reads the list of allowed schemes; the environment separates them by commas.
func allowedKMS(c *cli.Context) (export.AllowedKMS, error) {
	var entries []string
	for _, s := range c.StringSlice("allow-kms") {
		entries = append(entries, strings.Split(s, ",")...)
	}
	a, err := export.ParseAllowedKMS(entries)
	if err != nil {
		return a, usage("--allow-kms: %w", err)
	}
	return a, nil
}

// How the home names the keys it holds: those it was made with by their role; later ones by their
// role and the first digits of their ID. A reference lies in a file of its own kind.
const (
	keySuffix       = ".pem"
	referenceSuffix = ".kms"
	keyDigits       = 16
)

func keyStem(k journal.Key) string {
	if k.Added == 0 {
		return string(k.Role)
	}
	return string(k.Role) + "-" + k.ID().Hex()[:keyDigits]
}

// heldKey is a live key of the ledger that the home can sign with.
type heldKey struct {
	journal.Key
	path      string
	reference bool
}

// held finds the file of a key; ok is false when the home doesn't hold it.
func (h *home) held(k journal.Key) (heldKey, bool, error) {
	for _, suffix := range []string{keySuffix, referenceSuffix} {
		path := h.path(keysName, keyStem(k)+suffix)
		_, err := os.Lstat(path)
		if err == nil {
			return heldKey{Key: k, path: path, reference: suffix == referenceSuffix}, true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return heldKey{}, false, fmt.Errorf("key %s: %w", k.ID(), err)
		}
	}
	return heldKey{}, false, nil
}

// signingKey is the newest live key of a role that the home holds, apart from one.
func (h *home) signingKey(c *cli.Context, role evidence.KeyRole, apart *evidence.KeyID) (heldKey, error) {
	keys, err := h.journal.KeyHistory(c.Context)
	if err != nil {
		return heldKey{}, err
	}
	for i := len(keys) - 1; i >= 0; i-- {
		k := keys[i]
		if k.Role != role || k.Retired != nil || apart != nil && k.ID() == *apart {
			continue
		}
		held, ok, err := h.held(k)
		if err != nil || ok {
			return held, err
		}
	}
	return heldKey{}, fail(exitUsage, "key_unusable", "the home holds no live %s key", role).
		hint("put the key's file back into %s, or add a key with one that is elsewhere: baildock key list", h.path(keysName))
}

// bundleKey is the key that signs bundles.
func (p *program) bundleKey(c *cli.Context, h *home) (export.BundleKey, error) {
	held, err := h.signingKey(c, evidence.RoleBundle, nil)
	if err != nil {
		return export.BundleKey{}, err
	}
	return p.loadBundleKey(c, held)
}

func (p *program) loadBundleKey(c *cli.Context, held heldKey) (export.BundleKey, error) {
	var (
		key export.BundleKey
		err error
	)
	if held.reference {
		var ref string
		if ref, err = readReference(held.path); err == nil {
			key, err = p.kmsKey(c, ref)
		}
	} else {
		key, err = export.LoadBundleKey(held.path, p.keyPassword)
	}
	if err != nil {
		return key, keyFailure(held.path, err)
	}
	return key, held.is(key.ID())
}

// checkpointKey is the key that signs checkpoints. It is always a file.
func (p *program) checkpointKey(c *cli.Context, h *home) (export.CheckpointKey, error) {
	held, err := h.signingKey(c, evidence.RoleCheckpoint, nil)
	if err != nil {
		return export.CheckpointKey{}, err
	}
	return p.loadCheckpointKey(held)
}

func (p *program) loadCheckpointKey(held heldKey) (export.CheckpointKey, error) {
	key, err := export.LoadCheckpointKey(held.path, p.keyPassword)
	if err != nil {
		return key, keyFailure(held.path, err)
	}
	return key, held.is(key.ID())
}

// is refuses a file that holds another key than its name says.
func (k heldKey) is(id evidence.KeyID) error {
	if id == k.ID() {
		return nil
	}
	return fail(exitUsage, "key_unusable", "file %q holds key %s; the ledger has %s there", k.path, id, k.ID()).
		hint("put the right file back")
}

func readReference(path string) (string, error) {
	b, err := readBounded(path, maxReference)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// maxReference bounds a key reference; a cloud's longest resource names have a few hundred bytes.
const maxReference = 4096

func (p *program) kmsKey(c *cli.Context, ref string) (export.BundleKey, error) {
	allowed, err := allowedKMS(c)
	if err != nil {
		return export.BundleKey{}, err
	}
	return export.LoadKMSKey(c.Context, ref, allowed)
}

// keyFailure is a private key that can't be used.
func keyFailure(path string, err error) error {
	var (
		f   *failure
		kms *export.KMSError
	)
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &kms):
		return fail(exitUsage, "kms_refused", "%w", err).hint("--allow-kms %s, if you mean it", kms.Scheme)
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitUsage, "key_unusable", "there is no key %q", path)
	}
	return fail(exitUsage, "key_unusable", "key %q can't be used: %w", path, err).hint("a wrong password looks like a damaged key")
}
