package export

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature/kms"
	"github.com/sigstore/sigstore/pkg/signature/options"
)

// pluginPrefix marks an allowed scheme that a program on PATH serves.
const pluginPrefix = "plugin:"

// AllowedKMS says which key management services may be asked for keys. The zero value allows none.
type AllowedKMS struct {
	builtin []string
	plugins []string
}

// KMSError says why a key reference is not followed.
type KMSError struct {
	Scheme string
	Why    string
}

func (e *KMSError) Error() string {
	return fmt.Sprintf("key management scheme %q: %s", e.Scheme, e.Why)
}

// ParseAllowedKMS reads a list of allowed schemes. `name` allows what this program has built in for
// name://; `plugin:name` allows to execute the program sigstore-kms-name from PATH for it.
func ParseAllowedKMS(entries []string) (AllowedKMS, error) {
	var a AllowedKMS
	for _, e := range entries {
		scheme, plugin := strings.CutPrefix(e, pluginPrefix)
		if err := checkScheme(scheme); err != nil {
			return AllowedKMS{}, err
		}
		if plugin {
			a.plugins = append(a.plugins, scheme)
		} else {
			a.builtin = append(a.builtin, scheme)
		}
	}
	return a, nil
}

// checkScheme keeps a scheme from being a path: it becomes part of a program's name.
func checkScheme(s string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if s == "" || len(s) > maxScheme || strings.ContainsFunc(s, bad) {
		return &KMSError{Scheme: s, Why: "a scheme has 1 to 32 of the characters a-z, 0-9 and -"}
	}
	return nil
}

// IsKMSReference reports whether a key's name is a reference into a key management service rather
// than a file.
func IsKMSReference(name string) bool { return strings.Contains(name, "://") }

// LoadKMSKey returns the bundle key behind a reference `scheme://…`. It fails with *KMSError when
// the scheme isn't allowed or unknown; then nothing was executed and nobody was asked. Such a key signs
// with its own randomness, so two bundles of the same payload differ.
func LoadKMSKey(ctx context.Context, ref string, allowed AllowedKMS) (BundleKey, error) {
	scheme, _, ok := strings.Cut(ref, "://")
	if !ok {
		return BundleKey{}, &KMSError{Scheme: ref, Why: "a reference reads scheme://…"}
	}
	if err := checkScheme(scheme); err != nil {
		return BundleKey{}, err
	}
	built := slices.Contains(kms.SupportedProviders(), scheme+"://")
	switch {
	case built && slices.Contains(allowed.builtin, scheme):
	case !built && slices.Contains(allowed.plugins, scheme):
	case built:
		return BundleKey{}, &KMSError{Scheme: scheme, Why: "not allowed; allow it by name"}
	case slices.Contains(allowed.builtin, scheme):
		return BundleKey{}, &KMSError{Scheme: scheme, Why: "allowed, and this program has nothing built in for it; plugin:" + scheme + " allows its program on PATH"}
	default:
		return BundleKey{}, &KMSError{Scheme: scheme, Why: "neither built in nor allowed"}
	}
	sv, err := kms.Get(ctx, ref, crypto.SHA256)
	if err != nil {
		return BundleKey{}, fmt.Errorf("key management %s: %w", scheme, err)
	}
	if _, err := sv.PublicKey(options.WithContext(ctx)); err != nil {
		return BundleKey{}, fmt.Errorf("key management %s: public key: %w", scheme, err)
	}
	var asked error
	signer, _, err := sv.CryptoSigner(ctx, func(err error) { asked = errors.Join(asked, err) })
	if err != nil {
		return BundleKey{}, fmt.Errorf("key management %s: %w", scheme, err)
	}
	key, err := NewBundleKey(signer)
	if asked != nil {
		return BundleKey{}, fmt.Errorf("key management %s: %w", scheme, asked)
	}
	return key, err
}
