package ledger

import (
	"bytes"
	"fmt"
	"strings"
)

// CheckPrepared checks an event's shape: type, media type and sizes. It looks at nothing else.
//
// A type is 1..MaxType bytes of [A-Za-z0-9._-] starting with a letter. A media type is
// 1..MaxMedia printable ASCII bytes that hold a slash with something on both sides and neither
// start nor end with a space. Any int64 is a time.
func CheckPrepared(p Prepared) error {
	if err := checkType(p.Type); err != nil {
		return err
	}
	if err := checkMedia(p.Media); err != nil {
		return err
	}
	if len(p.Meta) > MaxMeta {
		return fmt.Errorf("event %s: meta has %d bytes; at most %d are allowed", p.Type, len(p.Meta), MaxMeta)
	}
	if len(p.Data) > MaxData {
		return fmt.Errorf("event %s: data has %d bytes; at most %d are allowed (keep larger content as a blob)", p.Type, len(p.Data), MaxData)
	}
	return nil
}

func checkType(t string) error {
	if t == "" || len(t) > MaxType {
		return fmt.Errorf("event type has %d bytes; 1 to %d are allowed", len(t), MaxType)
	}
	for i := 0; i < len(t); i++ {
		c := t[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("event type %q has %q at byte %d; use letters, digits, '.', '_' and '-', starting with a letter", t, c, i)
		}
	}
	return nil
}

func checkMedia(m string) error {
	if m == "" || len(m) > MaxMedia {
		return fmt.Errorf("media type has %d bytes; 1 to %d are allowed", len(m), MaxMedia)
	}
	for i := 0; i < len(m); i++ {
		if m[i] < 0x20 || m[i] > 0x7e {
			return fmt.Errorf("media type %q has %q at byte %d; only printable ASCII is allowed", m, m[i], i)
		}
	}
	major, minor, slash := strings.Cut(m, "/")
	if !slash || major == "" || minor == "" || strings.TrimSpace(m) != m {
		return fmt.Errorf("media type %q is malformed; write it like application/cbor", m)
	}
	return nil
}

// CheckAppend checks all that can be refused about an append without looking at the ledger. Every
// store calls it first.
func CheckAppend(stream StreamID, expected Version, events []Prepared) error {
	if _, err := ParseStreamID(string(stream)); err != nil {
		return err
	}
	if expected < NoStream {
		return fmt.Errorf("expected version %d is not valid; use none or the last existing version", int64(expected))
	}
	if len(events) == 0 || len(events) > MaxBatch {
		return fmt.Errorf("an append of %d events to stream %s; 1 to %d are allowed", len(events), stream, MaxBatch)
	}
	total := 0
	for _, p := range events {
		if err := CheckPrepared(p); err != nil {
			return err
		}
		total += len(p.Meta) + len(p.Data)
	}
	if total > MaxAppend {
		return fmt.Errorf("an append of %d bytes to stream %s; at most %d are allowed", total, stream, MaxAppend)
	}
	return nil
}

// Holds tells whether the stored event e was made from p: the five fields a writer decides are
// equal. Stores use it to recognise a retry.
func (e Event) Holds(p Prepared) bool {
	return e.Type == p.Type && e.Time == p.Time && e.Media == p.Media &&
		bytes.Equal(e.Meta, p.Meta) && bytes.Equal(e.Data, p.Data)
}
