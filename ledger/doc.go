// Package ledger keeps opaque events in one order, chained by hash and committed to by a Merkle
// tree, and blobs beside them.
//
// # Words
//
// An event belongs to a stream, where it has a version: 0, 1, 2, … without gaps. All events of
// all streams also stand in one order, where an event has an index: 0, 1, 2, … without gaps. The
// index is the only public position; whatever a backend counts with stays inside it.
//
// A writer prepares an event once: type, time, media type, meta and data. The store adds stream,
// version and prev, the leaf hash of the stream's previous event. These eight fields make the
// leaf, and nothing a backend decides is in it. So the same events in the same order give the
// same leaves and the same root on every backend.
//
// The leaf hash is SHA-256(0x00 ‖ CBOR). All leaves, by index, form the Merkle tree of RFC 6962.
// An event's ID is the first 16 bytes of its leaf hash.
//
// A checkpoint is a tree head, signed: a C2SP tlog-checkpoint note. Stores keep each checkpoint
// they sign, and each is consistent with the last.
//
// A blob is a byte string outside the tree. An event names it by SHA-256(salt ‖ data), so a blob
// can be withheld or forgotten and every proof still holds.
//
// The ledger gives no meaning to stream names, types, meta or data. Packages above do.
//
// # Appending
//
// An append names the version it expects the stream to end with, so two writers never both
// believe they were first. It ends in exactly one of four ways: done, conflict, refused, or
// unknown. After "unknown" the writer reads the stream again, or retries the same prepared bytes
// at the same place, which returns the first result if there was one. Writers whose events must
// differ from a racer's put something random in the meta.
//
//	p := ledger.Prepared{Type: "NoteTaken", Time: now.UnixNano(), Media: "text/plain", Meta: nonce, Data: text}
//	done, err := store.Append(ctx, "notes", ledger.NoStream, p)
//	var conflict *ledger.ConflictError
//	switch {
//	case err == nil: // durable; done.Last().Index is its place
//	case errors.As(err, &conflict): // somebody else wrote first; conflict.Actual says how far
//	case errors.Is(err, ledger.ErrUnknownOutcome): // read again, or retry with the same p
//	default: // refused; nothing was stored
//	}
//
// # Checking
//
// A Checker reads every event in index order and recomputes chains and root. VerifyInclusion and
// VerifyConsistency check proofs without a ledger, OpenCheckpoint checks a signed tree head.
//
// An audit trusts not even what a store answers: an Exhibit shows all that is kept as it is kept,
// and an Auditor compares it with what it recomputes. The first thing wrong is a Finding.
//
// FORMAT.md specifies every byte. Packages below implement the contract: ledger/sqlite in one
// file, ledger/kurrentdb on a cluster. Package ledger/witness checks and makes cosignatures of checkpoints. Package
// ledger/ledgertest holds the suite they all pass, and a store in memory for tests.
package ledger
