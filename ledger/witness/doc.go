// Package witness checks and makes cosignatures of checkpoints, so that a ledger can't show one
// history to one reader and another to the next.
//
// # Words
//
// A checkpoint is a ledger's signed tree head. A cosigner, or witness, is anybody else with a key of
// their own who remembers the last checkpoint they saw of a ledger and adds a cosignature only to
// one that continues it. A policy names the cosigners a reader believes, and how many of them must
// have signed: the quorum. Cosignatures by others never count.
//
// # Formats
//
// A cosignature is one more signature line of the checkpoint's note, of type 0x04 (C2SP
// tlog-cosignature, cosignature/v1). A cosigner's key is a vkey (C2SP signed-note):
//
//	<name>+<key ID, 8 hex digits>+<base64 of 0x04 ‖ 32-byte Ed25519 public key>
//
// What a cosigner is asked is the body of C2SP tlog-witness's add-checkpoint: the size it has seen,
// the consistency proof from there, an empty line, the checkpoint.
//
//	old 120
//	<base64 of a 32-byte hash>
//	…
//
//	<signed note>
//
// A policy is a text of these lines, in this order; lines that start with '#' are comments:
//
//	baildock-witness-policy/v1
//	quorum: 2
//	witness: alice.example+8d0f3b11+BCbs…
//	witness: bob.example+c2a90cb7+BJ3Z…
//	witness: carol.example+1b2c3d4e+BAqx…
//
// # Use
//
//	policy, err := witness.ParsePolicy(text)
//	seen, err := policy.Check(note, origin, ledgerKeys)    // *QuorumError when too few signed
//
//	c := witness.Cosigner{Key: key, Dir: state}
//	note, err := c.Cosign(request, origin, ledgerKeys)     // *StaleError, *ForkError
package witness
