// Package bundle is the format of an exported bundle: what lies in it and how it is spelled. It
// signs nothing, verifies nothing and does no I/O.
//
// A bundle shows what a ledger holds about one or more attempts, so that somebody who has only the
// bundle and the ledger's public identity can judge them. It is a COSE_Sign1 message (RFC 9052
// §4.2) whose payload is deterministic CBOR (RFC 8949 §4.2.1). Package export makes bundles,
// package export/verify checks them.
//
// # Words
//
// A judged stream is the stream of an attempt the bundle is about. A basis stream is one that a
// judgement rests on: the ledger's own, those a claim read, and the attempt's change. A cited
// stream holds an observation that a judged stream names, such as a runtime's probe.
//
// The judgement of an attempt is its claim; without one, its registration. A basis stream is held
// from its first event to the first one after the judgement, so nothing before it can be left out.
//
// A blob is named by an event through its digest. A bundle holds each blob that one of its events
// names, or says why it doesn't: withheld by whoever exported, or absent from the ledger.
//
// # Strictness
//
// Every value has one spelling. UnmarshalEnvelope and Unmarshal encode what they read again and
// refuse bytes that differ; they count items before they allocate.
//
//	env, err := bundle.UnmarshalEnvelope(file)   // tagged Sign1, protected header
//	…verify env.Signature over env.ToBeSigned()…
//	payload, err := bundle.Unmarshal(env.Payload)
//
// FORMAT.md specifies every byte and every rule.
package bundle
