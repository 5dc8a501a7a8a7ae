package journal_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/ledgertest"
)

// ecKey endorses as a bundle key.
type ecKey struct {
	*ecdsa.PrivateKey
	spki []byte
}

func newKey(t testing.TB) ecKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	spki, err := x509.MarshalPKIXPublicKey(k.Public())
	require.NoError(t, err)
	return ecKey{k, spki}
}

func (k ecKey) ID() evidence.KeyID { return evidence.KeyIDOf(k.spki) }

func (k ecKey) Endorse(message []byte) ([]byte, error) {
	d := sha256.Sum256(message)
	return k.Sign(nil, d[:], crypto.SHA256)
}

// req R4: keys are added and retired by events that a live key endorses; nobody else changes them.
func TestKeysChangeByEndorsementOnly(t *testing.T) {
	led := ledgertest.NewMem()
	j := open(led, "test")
	_, err := j.KeyHistory(t.Context())
	require.ErrorIs(t, err, journal.ErrNoLedger)
	first, second, stranger := newKey(t), newKey(t), newKey(t)
	g := genesis()
	g.Bundle = first.spki
	require.NoError(t, j.Init(t.Context(), g))
	var illegal *evidence.IllegalEventError

	before := size(t, led)
	_, err = j.AddKey(t.Context(), evidence.RoleBundle, second.spki, stranger)
	require.ErrorAs(t, err, &illegal, "its endorser is no key of the ledger")
	_, err = j.AddKey(t.Context(), evidence.RoleCheckpoint, second.spki, first)
	require.ErrorAs(t, err, &illegal, "a bundle key is no checkpoint key")
	_, err = j.AddKey(t.Context(), evidence.RoleBundle, []byte("junk"), first)
	require.ErrorAs(t, err, &illegal)
	_, err = j.RetireKey(t.Context(), evidence.RoleBundle, first.ID(), first)
	require.ErrorAs(t, err, &illegal, "the last key stays")
	var none *journal.NoLiveKeyError
	_, err = j.RetireKey(t.Context(), evidence.RoleBundle, second.ID(), first)
	require.ErrorAs(t, err, &none)
	require.Equal(t, before, size(t, led))

	done, err := j.AddKey(t.Context(), evidence.RoleBundle, second.spki, first)
	require.NoError(t, err)
	again, err := j.AddKey(t.Context(), evidence.RoleBundle, second.spki, first)
	require.NoError(t, err)
	require.Nil(t, again, "it is live already")
	_, err = j.RetireKey(t.Context(), evidence.RoleBundle, first.ID(), stranger)
	require.ErrorAs(t, err, &illegal)
	gone, err := j.RetireKey(t.Context(), evidence.RoleBundle, first.ID(), second)
	require.NoError(t, err)
	_, err = j.AddKey(t.Context(), evidence.RoleBundle, first.spki, second)
	require.ErrorAs(t, err, &illegal, "a retired key doesn't come back")
	_, err = j.AddKey(t.Context(), evidence.RoleBundle, stranger.spki, first)
	require.ErrorAs(t, err, &illegal, "a retired key endorses nobody")

	keys, err := j.KeyHistory(t.Context())
	require.NoError(t, err)
	at := ledger.Index(gone.Index)
	require.Equal(t, []journal.Key{
		{Role: evidence.RoleBundle, SPKI: first.spki, Retired: &at},
		{Role: evidence.RoleCheckpoint, SPKI: g.Checkpoint},
		{Role: evidence.RoleBundle, SPKI: second.spki, Added: done.Index},
	}, keys)
	requireSound(t, led)
}
