package journal

import (
	"context"
	"fmt"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Endorser signs for a change of the ledger's keys with a key that is live in its role.
type Endorser interface {
	// ID names the key.
	ID() evidence.KeyID
	// Endorse signs a message as evidence.KeyAdded and evidence.KeyRetired want it.
	Endorse(message []byte) ([]byte, error)
}

// Key is a key the ledger has or had.
type Key struct {
	Role    evidence.KeyRole
	SPKI    []byte        // DER SubjectPublicKeyInfo
	Added   ledger.Index  // 0 for a genesis key
	Retired *ledger.Index // nil while it is live
}

// ID names the key.
func (k Key) ID() evidence.KeyID { return evidence.KeyIDOf(k.SPKI) }

// KeyHistory lists every key of the ledger in the order they were added.
func (j *Journal) KeyHistory(ctx context.Context) ([]Key, error) {
	var (
		ring evidence.Keyring
		keys []Key
	)
	for e, err := range j.ledger.ReadStream(ctx, GenesisStream, 0) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", GenesisStream, err)
		}
		p, _, err := Decode(e)
		if err != nil {
			return nil, err
		}
		if err := ring.Apply(p); err != nil {
			return nil, badHistory(e, err)
		}
		switch k := p.(type) {
		case evidence.LedgerOpened:
			keys = append(keys, Key{Role: evidence.RoleBundle, SPKI: k.Bundle}, Key{Role: evidence.RoleCheckpoint, SPKI: k.Checkpoint})
		case evidence.KeyAdded:
			keys = append(keys, Key{Role: k.Role, SPKI: k.Key, Added: e.Index})
		case evidence.KeyRetired:
			at := e.Index
			for i := range keys {
				if keys[i].Role == k.Role && keys[i].ID() == evidence.KeyIDOf(k.Key) {
					keys[i].Retired = &at
				}
			}
		}
	}
	if ring.Opened == nil {
		return nil, ErrNoLedger
	}
	return keys, nil
}

// AddKey makes a public key live in a role, endorsed by one that is. A key that is live already is no
// error: then nothing is appended and the event is nil. A retired key doesn't come back.
func (j *Journal) AddKey(ctx context.Context, role evidence.KeyRole, spki []byte, by Endorser) (*ledger.Event, error) {
	id := evidence.KeyIDOf(spki)
	return j.changeKeys(ctx, func(ring *evidence.Keyring) (evidence.Payload, error) {
		if _, live := ring.Find(role, id[:]); live {
			return nil, nil
		}
		endorser := by.ID()
		e := evidence.KeyAdded{Role: role, Key: spki, Endorser: endorser[:]}
		var err error
		e.Signature, err = by.Endorse(e.Message(ring.Opened.Ledger))
		return e, err
	})
}

// RetireKey ends the validity of a live key, endorsed by a key of its role that is live; it may be
// its own. It fails with *NoLiveKeyError when the key isn't live in the role, and refuses to retire the
// role's last key.
func (j *Journal) RetireKey(ctx context.Context, role evidence.KeyRole, id evidence.KeyID, by Endorser) (*ledger.Event, error) {
	return j.changeKeys(ctx, func(ring *evidence.Keyring) (evidence.Payload, error) {
		spki, live := ring.Find(role, id[:])
		if !live {
			return nil, &NoLiveKeyError{Role: role, Key: id}
		}
		endorser := by.ID()
		e := evidence.KeyRetired{Role: role, Key: spki, Endorser: endorser[:]}
		var err error
		e.Signature, err = by.Endorse(e.Message(ring.Opened.Ledger))
		return e, err
	})
}

func (j *Journal) changeKeys(ctx context.Context, decide func(*evidence.Keyring) (evidence.Payload, error)) (*ledger.Event, error) {
	fresh := func() *evidence.Keyring { return &evidence.Keyring{} }
	done, err := update(ctx, j, GenesisStream, fresh, func(ring *evidence.Keyring) ([]evidence.Payload, error) {
		p, err := decide(ring)
		if err != nil || p == nil {
			return nil, err
		}
		return []evidence.Payload{p}, nil
	})
	if err != nil || len(done) == 0 {
		return nil, err
	}
	return &done[0], nil
}
