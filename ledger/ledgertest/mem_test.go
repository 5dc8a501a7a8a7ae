package ledgertest

import (
	"testing"

	"github.com/baildock/baildock/ledger"
)

func TestMem(t *testing.T) {
	Run(t, func(*testing.T) Backend {
		return Backend{Open: func(*testing.T) ledger.Ledger { return NewMem() }, Volatile: true}
	})
}
