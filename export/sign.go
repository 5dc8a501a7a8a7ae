package export

import (
	"fmt"

	"github.com/veraison/go-cose"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
)

// Sign wraps a payload in its signed envelope and returns the bundle's bytes. It refuses a key that
// isn't live in the ledger at the payload's index: no verifier would accept it. With a key from a
// file the same payload always gives the same bytes.
func Sign(payload []byte, key BundleKey) ([]byte, error) {
	p, err := bundle.Unmarshal(payload)
	if err != nil {
		return nil, err
	}
	keys, err := keyring(p)
	if err != nil {
		return nil, err
	}
	kid := key.ID()
	if _, live := keys.Find(evidence.RoleBundle, kid[:]); !live {
		return nil, fmt.Errorf("sign bundle: key %s is not a live bundle key of ledger %s at index %d", kid, p.Ledger.ID, p.At)
	}
	env := bundle.Envelope{
		Protected: bundle.Protected{
			Alg:         bundle.AlgES256,
			ContentType: bundle.ContentType,
			KeyID:       kid,
			Claims:      bundle.Claims{Issuer: p.Ledger.Origin, Subject: p.Subject()},
		},
		Payload: payload,
	}
	signer, err := cose.NewSigner(cose.AlgorithmES256, key.signer)
	if err != nil {
		return nil, fmt.Errorf("sign bundle: %w", err)
	}
	sig, err := signer.Sign(nil, env.ToBeSigned())
	if err != nil {
		return nil, fmt.Errorf("sign bundle: %w", err)
	}
	env.Signature = bundle.LowS(sig)
	return env.Marshal(), nil
}

// keyring folds the payload's own stream `ledger`.
func keyring(p bundle.Payload) (evidence.Keyring, error) {
	var keys evidence.Keyring
	s, ok := p.Stream(evidence.LedgerStream)
	if !ok {
		return keys, fmt.Errorf("bundle payload has no stream %s", evidence.LedgerStream)
	}
	events, err := s.Open()
	if err != nil {
		return keys, err
	}
	placed, err := bundle.Decode(events)
	if err != nil {
		return keys, err
	}
	for _, e := range placed {
		if err := keys.Apply(e.Payload); err != nil {
			return keys, fmt.Errorf("stream %s, version %s: %w", e.Stream, e.Version, err)
		}
	}
	return keys, nil
}
