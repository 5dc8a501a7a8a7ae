// Package export makes bundles: signed files that show what a ledger holds about attempts, for
// people who have no ledger. The format is package export/bundle's.
//
// Build reads the log and nothing else, and returns a payload; Sign wraps it in its signed
// envelope. The same ledger, index and keys give the same bytes.
//
//	keys, err := export.LoadBundleKey("keys/bundle.pem", export.NoPassword)
//	payload, sum, err := export.Build(ctx, led, export.Request{Attempts: ids, Checkpoint: signer})
//	file, err := export.Sign(payload, keys)
//
// A bundle must show that nothing before a judgement was left out (req T3), so every basis stream
// needs an event after it. Unsealed lists the streams that have none yet; whoever exports appends
// a seal to each before building.
//
// Keys are files: ECDSA P-256 signs bundles, Ed25519 signs checkpoints. PKCS#8, SEC 1, encrypted
// PKCS#8 and the encrypted form cosign writes are read.
package export
