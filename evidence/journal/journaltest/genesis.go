package journaltest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"sync"

	"github.com/baildock/baildock/evidence"
)

// Genesis opens every ledger of one test run: its keys are made once, and nobody signs with them.
var Genesis = sync.OnceValue(func() evidence.LedgerOpened {
	bundle, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	checkpoint, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	g := evidence.LedgerOpened{Ledger: evidence.LedgerID{1}, Origin: "baildock/test"}
	if g.Bundle, err = x509.MarshalPKIXPublicKey(&bundle.PublicKey); err != nil {
		panic(err)
	}
	if g.Checkpoint, err = x509.MarshalPKIXPublicKey(checkpoint); err != nil {
		panic(err)
	}
	return g
})
