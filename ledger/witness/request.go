package witness

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/baildock/baildock/ledger"
)

// Request asks a cosigner for its signature: the body of C2SP tlog-witness's add-checkpoint.
type Request struct {
	Old   uint64        // the size the proof starts from: what the cosigner has seen; 0 when nothing
	Proof []ledger.Hash // that the tree of Old is a prefix of the checkpoint's; empty for 0 and for its size
	Note  []byte        // the signed checkpoint
}

// requestPrefix starts every request, and no note: an origin holds no space.
const requestPrefix = "old "

// IsRequest reports whether a text claims to be a request, rather than a bare note.
func IsRequest(text []byte) bool { return bytes.HasPrefix(text, []byte(requestPrefix)) }

// Format returns the request's text.
func (r Request) Format() []byte {
	b := fmt.Appendf(nil, "%s%d\n", requestPrefix, r.Old)
	for _, h := range r.Proof {
		b = append(base64.StdEncoding.AppendEncode(b, h[:]), '\n')
	}
	return append(append(b, '\n'), r.Note...)
}

// ParseRequest is the inverse of Format and accepts no other spelling. It checks no signature and
// no proof.
func ParseRequest(text []byte) (Request, error) {
	if len(text) > MaxRequest {
		return Request{}, fmt.Errorf("request has %d bytes; at most %d are allowed", len(text), MaxRequest)
	}
	head, msg, ok := bytes.Cut(text, []byte("\n\n"))
	first, rest, more := strings.Cut(string(head), "\n")
	size, old := strings.CutPrefix(first, requestPrefix)
	if !ok || !old {
		return Request{}, errors.New("a request starts with `old <size>`, then the proof, an empty line and the checkpoint")
	}
	n, err := strconv.ParseUint(size, 10, 62)
	if err != nil {
		return Request{}, fmt.Errorf("request: old size %q is not a decimal number in range", size)
	}
	r := Request{Old: n, Note: bytes.Clone(msg)}
	if more {
		for i, l := range strings.Split(rest, "\n") {
			raw, err := base64.StdEncoding.Strict().DecodeString(l)
			if err != nil || len(raw) != len(ledger.Hash{}) {
				return Request{}, fmt.Errorf("request: proof line %d is not the base64 of %d bytes", i+1, len(ledger.Hash{}))
			}
			r.Proof = append(r.Proof, ledger.Hash(raw))
		}
	}
	if len(r.Proof) > MaxProof {
		return Request{}, fmt.Errorf("request: proof has %d hashes; at most %d are allowed", len(r.Proof), MaxProof)
	}
	if !bytes.Equal(r.Format(), text) {
		return Request{}, errors.New("request is not in its exact form")
	}
	return r, nil
}
