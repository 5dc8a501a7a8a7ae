// Package projections answers questions about a ledger from one SQLite file that can be thrown
// away at any time: everything in it is folded from events, and nothing is decided from it.
//
// # Words
//
// The file follows the log: it remembers the index of the next event to read and catches up in
// batches, each in one transaction, before every answer. So an answer holds everything that was
// durable when the question was asked. An attempt's row is made of the same fold, verdict and
// record that the runner, an audit and the offline verifier use.
//
// The form is a hash over the schema, the code that makes rows and the vocabulary's tables. A
// file of another form, of another ledger, or a damaged one is rebuilt beside and put in its
// place by one rename; every page carries a checksum, so damage is noticed. Several processes
// may have the file open: each operation holds a shared lock on `<file>.lock`, a rebuild holds it
// alone, and whoever finds another file in place opens that one.
//
// # Tables
//
//	attempts       one row an attempt: where it stands and how it ended
//	open_attempts  those not finished: pending, running, or unreadable
//	outcomes       finished attempts counted by outcome and detail
//	timeline       one row an event, in the ledger's order
//	custody        one row a daemon object that exists, existed or may exist; open_custody: the open ones
//	changes        one row a change: its present version and context, and what was integrated
//	policies       one row a policy: its present epoch
//	admissions     one row an approval or integration, and whether it stands
//	runtimes       one row a runtime, with the attempts that ran on it
//	qualifications one row an observation of what a runtime holds: a probe, or a canary of a corpus
//	position       the form, the next index, and the leaf hash of the last event read
//
// A question is checked before anything is read: a filter the view has not, or a value that is none, is
// a *QuestionError.
//
// schema.sql explains every column. Times are text there, RFC 3339 UTC with nanoseconds.
//
// An attempt whose stream holds an event that this version can't read, or one that can't legally
// follow, keeps what was known before it, has no outcome, and says so in `problem` (req R7).
//
// # Use
//
//	p, err := projections.Open(ctx, filepath.Join(home, "projections.db"), led, nil)
//	failed := map[projections.Filterable]string{projections.ByOutcome: "failed"}
//	rows, err := p.Attempts(ctx, projections.Query{Where: failed, Sort: "duration_ns:desc", Limit: 20})
//	id, err := p.Resolve(ctx, "@last")
//	t, err := p.Ask(ctx, projections.TimelineView, projections.Query{Limit: 20})
//	t, err := p.SQL(ctx, "SELECT outcome, count(*) FROM attempts GROUP BY 1")
//
// SQL opens the file for reading alone and lets the engine authorise each action of the statement,
// so nothing that writes, attaches or sets anything is ever run.
package projections
