package export

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
)

// PredicateType names the predicate that Attest writes; docs/predicate.md describes it. Tools that
// verify ask for exactly this text.
const PredicateType = "https://github.com/baildock/baildock/predicate/bundle/v1"

// Types of the documents an attestation nests in each other.
const (
	sigstoreMedia = "application/vnd.dev.sigstore.bundle.v0.3+json" // Sigstore bundle v0.3
	intotoMedia   = "application/vnd.in-toto+json"                  // DSSE payload type of in-toto
	statementType = "https://in-toto.io/Statement/v1"               // in-toto Statement v1
)

// Statement is an in-toto Statement v1 about one bundle file.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"` // exactly one: the file
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is the file a statement is about.
type Subject struct {
	Name   string            `json:"name"`   // its base name, for people
	Digest map[string]string `json:"digest"` // "sha256": 64 hex digits of the file's SHA-256
}

// Predicate says what the bundle holds, for tools that don't read it. Every field can be computed
// from the bundle, which decides where they differ.
type Predicate struct {
	Format   uint64                    `json:"format"` // of the bundle's payload
	Ledger   evidence.LedgerID         `json:"ledger"`
	Origin   string                    `json:"origin"`
	At       uint64                    `json:"at"`                // index of the last event of the tree
	Key      evidence.KeyID            `json:"key"`               // that signed the bundle and this statement
	Attempts []PredicateAttempt        `json:"attempts"`          // by name
	Changes  []evidence.ChangeID       `json:"changes,omitempty"` // judged themselves, by name
	Missing  map[string][]bundle.Class `json:"missing"`           // classes of missing blobs by why: withheld, absent
}

// PredicateAttempt is one judged attempt.
type PredicateAttempt struct {
	Attempt evidence.AttemptID    `json:"attempt"`
	Outcome evidence.Outcome      `json:"outcome"`
	Claim   evidence.Claim        `json:"claim"`
	Record  evidence.RecordDigest `json:"record"`
}

// sigstoreBundle is a Sigstore bundle v0.3 with a DSSE envelope and a bare key. It has no field
// more: readers refuse fields they don't know.
type sigstoreBundle struct {
	MediaType string       `json:"mediaType"`
	Material  material     `json:"verificationMaterial"`
	Envelope  dsseEnvelope `json:"dsseEnvelope"`
}

type material struct {
	PublicKey struct {
		Hint string `json:"hint"` // base64 of the SHA-256 of the key's SubjectPublicKeyInfo
	} `json:"publicKey"`
}

type dsseEnvelope struct {
	Payload     []byte          `json:"payload"`
	PayloadType string          `json:"payloadType"`
	Signatures  []dsseSignature `json:"signatures"` // exactly one
}

type dsseSignature struct {
	Sig   []byte `json:"sig"`   // ASN.1 ECDSA
	KeyID string `json:"keyid"` // empty: readers compare it with spellings of their own
}

// Attest returns the Sigstore bundle that stands beside a bundle file of that name: a DSSE envelope
// around an in-toto statement whose subject is the file's SHA-256. The key must be the one that
// signed the file. With a key from a file the same file always gives the same bytes.
func Attest(file []byte, name string, key BundleKey) ([]byte, error) {
	statement, err := stateOf(file, name)
	if err != nil {
		return nil, fmt.Errorf("attest bundle: %w", err)
	}
	if statement.Predicate.Key != key.ID() {
		return nil, fmt.Errorf("attest bundle: key %s signed it; this is %s", statement.Predicate.Key, key.ID())
	}
	payload, err := compactJSON(statement)
	if err != nil {
		return nil, fmt.Errorf("attest bundle: %w", err)
	}
	digest := sha256.Sum256(PAE(intotoMedia, payload))
	sig, err := key.signer.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("attest bundle: %w", err)
	}
	out := sigstoreBundle{MediaType: sigstoreMedia, Envelope: dsseEnvelope{
		Payload: payload, PayloadType: intotoMedia, Signatures: []dsseSignature{{Sig: sig}},
	}}
	id := key.ID()
	out.Material.PublicKey.Hint = base64.StdEncoding.EncodeToString(id[:])
	return compactJSON(out)
}

// PAE is DSSE's pre-authentication encoding: what its signature covers (DSSE protocol, v1.0).
func PAE(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

func stateOf(file []byte, name string) (Statement, error) {
	env, err := bundle.UnmarshalEnvelope(file)
	if err != nil {
		return Statement{}, err
	}
	p, err := bundle.Unmarshal(env.Payload)
	if err != nil {
		return Statement{}, err
	}
	digest := sha256.Sum256(file)
	s := Statement{
		Type: statementType, PredicateType: PredicateType,
		Subject: []Subject{{Name: name, Digest: map[string]string{"sha256": hex.EncodeToString(digest[:])}}},
		Predicate: Predicate{
			Format: p.Format, Ledger: p.Ledger.ID, Origin: p.Ledger.Origin, At: p.At, Key: env.Protected.KeyID,
			Attempts: []PredicateAttempt{}, Missing: map[string][]bundle.Class{},
		},
	}
	for _, held := range p.Streams {
		if held.Role != bundle.Judged {
			continue
		}
		if id, change := strings.CutPrefix(held.Name, evidence.ChangePrefix); change {
			s.Predicate.Changes = append(s.Predicate.Changes, evidence.ChangeID(id))
			continue
		}
		a, err := concluded(held)
		if err != nil {
			return s, err
		}
		s.Predicate.Attempts = append(s.Predicate.Attempts, a)
	}
	for _, m := range p.Missing {
		why := string(m.Why)
		if !slices.Contains(s.Predicate.Missing[why], m.Class) {
			s.Predicate.Missing[why] = append(s.Predicate.Missing[why], m.Class)
		}
	}
	for _, classes := range s.Predicate.Missing {
		slices.Sort(classes)
	}
	return s, nil
}

// concluded derives how a judged attempt ended.
func concluded(s bundle.Stream) (PredicateAttempt, error) {
	events, err := s.Open()
	if err != nil {
		return PredicateAttempt{}, err
	}
	placed, err := bundle.Decode(events)
	if err != nil {
		return PredicateAttempt{}, err
	}
	var a evidence.Attempt
	for _, e := range placed {
		if err := a.Apply(e.Payload); err != nil {
			return PredicateAttempt{}, fmt.Errorf("stream %s, version %s: %w", e.Stream, e.Version, err)
		}
	}
	r := evidence.RecordOf(&a)
	return PredicateAttempt{Attempt: r.Attempt, Outcome: r.Outcome, Claim: r.Claim, Record: r.Digest()}, nil
}

// compactJSON keeps `<`, `>` and `&` as they are, and ends the document with a newline only where
// a file wants one: nowhere here.
func compactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
