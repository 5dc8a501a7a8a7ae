package conformance

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/evidencetest/spelltest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/exporttest"
)

// eventSamples are payloads of every type: those of a whole history and of a ledger's own stream, the golden ones
// of package evidence, and a type that has none of these with nothing in it.
func eventSamples(t *testing.T) (names []string, data map[string][]byte, bare map[string]bool) {
	t.Helper()
	bare = map[string]bool{}
	data = map[string][]byte{}
	known := map[string]bool{}
	for _, name := range evidence.EventTypes() {
		known[name] = true
	}
	add := func(typ string, b []byte) {
		name := typ
		for n := 2; data[name] != nil; n++ {
			name = fmt.Sprintf("%s, %d", typ, n)
		}
		data[name] = b
	}
	for _, p := range append(evidencetest.Success().Finished(), keyEvents(t)...) {
		add(p.EventType(), evidence.Marshal(p))
	}
	golden, err := os.ReadFile(filepath.Join("..", "..", "evidence", "testdata", "vectors.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(golden)) {
		typ, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !known[typ] || typ == "LedgerOpened" || typ == "KeyAdded" || typ == "KeyRetired" {
			continue // the golden ones of these hold no real keys
		}
		b, err := hex.DecodeString(rest)
		require.NoError(t, err)
		add(typ, b)
	}
	for _, p := range evidence.ZeroPayloads() {
		if data[p.EventType()] == nil {
			add(p.EventType(), evidence.Marshal(p))
			bare[p.EventType()] = true
		}
	}
	return sorted(data), data, bare
}

// keyEvents open a ledger, add a bundle key and retire the first.
func keyEvents(t *testing.T) []evidence.Payload {
	t.Helper()
	f := exporttest.New(t)
	second, err := export.NewBundleKey(exporttest.ECDSA(t, "second"))
	require.NoError(t, err)
	genesis := f.Key.ID()
	added := evidence.KeyAdded{Role: evidence.RoleBundle, Key: second.SPKI(), Endorser: genesis[:]}
	added.Signature, err = f.Key.Endorse(added.Message(f.Identity.ID))
	require.NoError(t, err)
	retired := evidence.KeyRetired{Role: evidence.RoleBundle, Key: f.Identity.Bundle, Endorser: genesis[:]}
	retired.Signature, err = f.Key.Endorse(retired.Message(f.Identity.ID))
	require.NoError(t, err)
	opened := evidence.LedgerOpened{Ledger: f.Identity.ID, Origin: f.Identity.Origin, Bundle: f.Identity.Bundle, Checkpoint: f.Identity.Checkpoint}
	return []evidence.Payload{opened, added, retired}
}

func events() family {
	meta := evidence.Marshal(evidence.Meta{Schema: 1, Actor: "runner", Nonce: evidence.Nonce{1}})
	return family{
		name: "events", least: 250,
		about: "Event payloads of every type (evidence/FORMAT.md, schemas/events.cddl). Input: type; meta and data, canonical CBOR. Accepted: sha256 of data, and view, what the payload holds as JSON (byte strings in base64 or hex as the documents of the command line write them). newer: the type or schema number is not known to this version, which is no fault of the evidence.",
		make: func(t *testing.T) []vector {
			var out []vector
			names, data, bare := eventSamples(t)
			for _, name := range names {
				typ, _, _ := strings.Cut(name, ",")
				in := values{"type": typ, "meta": hexOf(meta), "data": hexOf(data[name])}
				_, o, err := runEvent(t, in)
				require.NoError(t, err, name)
				kind := ""
				if bare[name] {
					kind = "shape only"
				}
				out = append(out, vector{Name: name, Class: accept, Kind: kind, Input: in, Output: o})
				if name != typ {
					continue // one of each type is spoilt
				}
				spelltest.Respelled(data[name], func(kind string, bent []byte) {
					out = append(out, vector{Name: name + ": " + kind, Class: refuse, Kind: "spelling", Input: in.with("data", hexOf(bent))})
				})
			}
			claimed := values{"type": "StreamSealed", "meta": hexOf(meta), "data": "a0"}
			spelltest.Respelled(meta, func(kind string, bent []byte) {
				out = append(out, vector{Name: "meta: " + kind, Class: refuse, Kind: "spelling", Input: claimed.with("meta", hexOf(bent))})
			})
			later := evidence.Marshal(evidence.Meta{Schema: 2, Actor: "runner", Nonce: evidence.Nonce{1}})
			return sortedVectors(append(out,
				vector{Name: "a later schema", Class: newer, Input: claimed.with("meta", hexOf(later))},
				vector{Name: "an unknown type", Class: newer, Input: claimed.with("type", "AttemptDreamt")},
				vector{Name: "another type's data", Class: refuse, Kind: "shape", Input: claimed.with("type", "EpochAdvanced")},
				vector{Name: "no data", Class: refuse, Kind: "shape", Input: claimed.with("data", "")},
			))
		},
		run: runEvent,
	}
}

func runEvent(t *testing.T, in values) (string, values, error) {
	data := in.bytes(t, "data")
	p, _, err := evidence.Decode(in.text(t, "type"), in.bytes(t, "meta"), data)
	var unknown *evidence.UnknownEventError
	if errors.As(err, &unknown) {
		return newer, nil, err
	}
	if err != nil {
		return refuse, nil, err
	}
	view, err := json.Marshal(p)
	require.NoError(t, err)
	return accept, values{"sha256": hexOf(sum(data)), "view": json.RawMessage(view)}, nil
}

// Every event type has an accepted vector and, unless it is empty by nature, refused ones.
func TestEveryEventType(t *testing.T) {
	seen := map[string]map[string]int{}
	for _, v := range read(t, filepath.Join("vectors", "events.json")).Vectors {
		typ := v.Input.text(t, "type")
		if seen[typ] == nil {
			seen[typ] = map[string]int{}
		}
		seen[typ][v.Class]++
	}
	types := evidence.EventTypes()
	for _, typ := range types {
		require.Positive(t, seen[typ][accept], "type %s has no vector; run: BAILDOCK_UPDATE=1 BAILDOCK_VECTORS=events go test ./test/conformance", typ)
		require.Greater(t, seen[typ][refuse], 3, "type %s has no refused vectors; run: BAILDOCK_UPDATE=1 BAILDOCK_VECTORS=events go test ./test/conformance", typ)
	}
	t.Logf("count: %d event types", len(types))
}
