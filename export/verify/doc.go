// Package verify checks a bundle with nothing but the bundle and what its reader trusts: no
// ledger, no network, no Docker.
//
//	id, err := bundle.ParseIdentity(ledgerPub)
//	report := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(id)})
//	if report.Verdict != verify.Valid { … }
//
// # What is checked
//
// Every check is listed in the report as pass, fail or not checked, in the order of Checks. The
// rules are those the ledger's owner applies: leaves and proofs are package ledger's, histories,
// verdicts and records package evidence's. Nothing a bundle says about itself is taken for
// granted: the outcome is computed from the events.
//
// A failed check makes the verdict invalid. A check that could not be done makes it not checked,
// unless the policy accepts by name what was withheld. Without a trusted key no verdict is better
// than not checked, and a signature that doesn't hold ends the verification: nothing behind it is
// looked at.
//
// # What isn't
//
// A bundle is as of its index, and its times are the writer's claim. That nothing came later, that
// each (stream, version) exists once in the whole ledger, and that the ledger showed others the same
// tree, is for an audit and for outside witnesses to say: a reader who kept a checkpoint gives it as
// Policy.Kept, and whose cosignatures it must have as Policy.Witnesses. Claims lists what a reader
// still trusts.
package verify
