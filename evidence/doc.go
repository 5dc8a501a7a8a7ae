// Package evidence is the vocabulary of Baildock and its pure rules: what is to run (recipe,
// subject, request), what was seen (events), and what follows from it (attempt, outcome,
// record). It does no I/O and reads no clock.
//
// Every hashed value has one canonical encoding, deterministic CBOR; Unmarshal refuses every
// other spelling. Every event of the product is a Payload: its type names the shape, its data
// is a map with integer keys. An Attempt is folded from its stream by Apply, which refuses an
// event that can't legally follow; OutcomeOf and RecordOf are total, pure functions of that
// fold, so that the runner, a projection, an audit and an offline verifier reach the same
// verdict.
package evidence
