package kurrentdb

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/baildock/baildock/ledger"
)

// names are a ledger's streams on its cluster. A colon stands in no ledger's and no stream's name,
// so that none is a prefix of another.
type names struct {
	prefix   string // of everything the ledger keeps
	events   string // of what the tree commits to
	metadata string // of the metadata of everything the ledger keeps
}

func namesOf(ledgerName string) names {
	prefix := "baildock:" + ledgerName + ":"
	return names{prefix: prefix, events: prefix + "e:", metadata: "$$" + prefix}
}

func (n names) event(s ledger.StreamID) string { return n.events + string(s) }

func (n names) checkpoints() string { return n.prefix + "checkpoints" }

// blob is where a blob's bytes lie that was stored after being forgotten `times` times.
func (n names) blob(key ledger.BlobKey, times int) string {
	return n.prefix + "b:" + hex.EncodeToString(key[:]) + ":" + strconv.Itoa(times)
}

// spill is where the bytes of a large event lie.
func (n names) spill(leaf ledger.Hash) string { return n.prefix + "s:" + hex.EncodeToString(leaf[:]) }

// stream is the ledger's name of one of its event streams.
func (n names) stream(name string) (ledger.StreamID, bool) {
	s, ok := strings.CutPrefix(name, n.events)
	return ledger.StreamID(s), ok
}
