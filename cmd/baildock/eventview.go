package main

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// eventView is an event as JSON. Data is always there, byte for byte; Payload or Text say the same
// to people where the media type allows it.
type eventView struct {
	Index   ledger.Index     `json:"index"`
	Stream  ledger.StreamID  `json:"stream"`
	Version ledger.Version   `json:"version"`
	ID      string           `json:"id"`
	Leaf    string           `json:"leaf"`
	Prev    string           `json:"prev,omitempty"` // leaf of the stream's previous event
	Type    string           `json:"type"`
	Time    string           `json:"time"` // the writer's claim
	Media   string           `json:"media"`
	Meta    *evidence.Meta   `json:"meta,omitempty"`
	RawMeta []byte           `json:"meta_base64,omitempty"` // where it is not in the product's form
	Payload evidence.Payload `json:"payload,omitempty"`
	Text    *string          `json:"text,omitempty"`
	Data    []byte           `json:"data_base64"`
}

func viewEvent(e ledger.Event) eventView {
	leaf := e.Leaf()
	v := eventView{
		Index: e.Index, Stream: e.Stream, Version: e.Version, ID: leaf.EventID().String(), Leaf: leaf.String(),
		Type: e.Type, Time: stamp(e.Time), Media: e.Media, Data: e.Data,
	}
	if len(e.Prev) > 0 {
		v.Prev = "sha256:" + hex.EncodeToString(e.Prev)
	}
	if v.Data == nil {
		v.Data = []byte{}
	}
	var m evidence.Meta
	if err := evidence.Unmarshal(e.Meta, &m); err == nil {
		v.Meta = &m
	} else {
		v.RawMeta = e.Meta
	}
	switch {
	case journal.IsProductStream(e.Stream):
		// What this version can't decode stays as bytes.
		if p, _, err := journal.Decode(e); err == nil {
			v.Payload = p
		}
	case isText(e.Media) && utf8.Valid(e.Data):
		s := string(e.Data)
		v.Text = &s
	}
	return v
}

func isText(media string) bool {
	kind, _, _ := strings.Cut(media, ";")
	kind = strings.TrimSpace(kind)
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || strings.HasSuffix(kind, "+json")
}

func isCBOR(media string) bool {
	kind, _, _ := strings.Cut(media, ";")
	kind = strings.TrimSpace(kind)
	return kind == "application/cbor" || strings.HasSuffix(kind, "+cbor")
}

// diagnose is data in CBOR diagnostic notation (RFC 8949 §8), harmless on a terminal. Bytes that
// are no CBOR are a byte string, or a text string where the media type says so.
func diagnose(media string, data []byte) string {
	if isCBOR(media) {
		if s, err := cbor.Diagnose(data); err == nil {
			return visible(s)
		}
	}
	if isText(media) && utf8.Valid(data) {
		return visible(strconv.Quote(string(data)))
	}
	return "h'" + hex.EncodeToString(data) + "'"
}
