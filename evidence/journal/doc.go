// Package journal is where evidence meets the ledger: typed reads and appends, and the use cases
// that decide what may be appended.
//
// # Words
//
// A product stream holds events of this vocabulary and nothing else: `ledger`, `attempt-<id>`,
// `change-<id>`, `policy-<id>`, `runtime-<hex>`, `trial-<id>`. Its events have the media type
// application/cbor, canonical CBOR as data, and as meta {1 schema, 2 actor, 3 cause, 4 nonce}.
// The nonce is random and new for every prepared event, so two writers never prepare equal
// bytes; an event is prepared once, and a retry sends the same bytes to the same place.
//
// A basis is what a judgement read: stream, version and leaf hash of the last event there. The
// judgement is made after its own event has its index: it is void if a smaller index holds an
// event that changes an epoch or a context of a basis stream. So no append ever spans two
// streams, and all backends judge alike. A claim for a change reads the change and its policy;
// the claim of an ad hoc attempt reads nothing but its own stream, which the expected version
// guards, so its basis is empty.
//
// # Use
//
//	j := journal.New(journal.Config{Ledger: led, Actor: "runner"})
//	a, err := j.Register(ctx, journal.Registration{Attempt: "nightly-7", Subject: s, Recipe: r, Environment: e})
//	p, err := j.Claim(ctx, a.Fold.Registered.Attempt, 0, journal.Claim{Home: home, Deadline: ns})
//	_, err = p.Append(ctx, evidence.SourceMaterialized{…})   // durable when it returns
//	record, event, err := p.Finish(ctx)
//
// An Appender owns the version of one attempt's stream. Every payload is folded before it is
// appended, so an illegal event never reaches the ledger. A version conflict is not yet a fence:
// the stream is read again, and only a generation that moved on is ErrFenced. An append whose
// outcome is unknown is retried with the same bytes until it is known or the patience in
// limits.go ends.
//
// State exists nowhere but in events: a reader folds a stream from its first event, and nothing
// here reads a record, an attempt or a decision from anywhere else (req G3, H6).
//
// # Meaning
//
// Meaning checks what the events of a ledger, or of the streams a bundle holds, say: encodings,
// histories, bases, records. It reads events in index order and keeps the open attempts, a
// word on each finished one, and a hash for each event of a change, a policy or a runtime. Checking bytes (chains, tree) is ledger.Checker's part; the two run side by side
// over one pass. An event of a type or schema this version doesn't know is carried: it is
// reported as unread, and nothing is concluded from its stream any more (req R7).
//
// # Audit
//
// Audit drives both visitors over everything a store keeps, judges each checkpoint at its size under
// the keys live there, hashes every blob that an event names, and decides again what the event says of it:
//
//	r, err := journal.Audit{Exhibit: store, Mentions: mentions}.Run(ctx)
//	if r.Verdict == journal.AuditInvalid { … r.FirstBad … }
package journal
