// Package kurrentdb keeps a ledger on an EventStoreDB or KurrentDB cluster, so that runners on many
// machines share one history. The same appends in the same order give the same root as in one file
// (package sqlite).
//
//	store, err := kurrentdb.Open(ctx, "esdb://user:secret@node1,node2,node3?tls=true&ledger=main", kurrentdb.Options{
//		Cache: filepath.Join(home, "ledger-cache.db"),
//	})
//
// The address is the official client's connection string, with its settings for TLS, users and
// certificates. kurrentdb:// is the same as esdb://. Beside them, ledger=NAME tells several ledgers
// on one cluster apart; it is "main" where nothing is said. Settings nobody knows are refused.
//
// # What lies where
//
// Every stream of a ledger starts with "baildock:<ledger>:".
//
//	baildock:main:e:<stream>          the ledger's streams; revision = version
//	baildock:main:checkpoints         signed notes
//	baildock:main:b:<key>:<n>         a blob's bytes in chunks; n times it was forgotten before
//	baildock:main:s:<leaf hash>       the bytes of an event that doesn't fit into one request
//
// An event's data is its leaf, byte for byte; its ID is the first 16 bytes of its leaf hash. So a
// retry carries the IDs of the first try, and the server's own check for them makes it idempotent.
//
// # Order and tree
//
// The server's order is $all. Its positions are offsets in a file, so the ledger numbers its events
// itself: a follower reads the part of $all that belongs to the ledger, through a filtered
// subscription, and keeps each event's place and the tree's nodes in a local cache. The cache can
// be deleted at any time. What it remembers is checked before it is believed: when a subscription
// begins, the cluster must still have the last event that was seen, where it was seen. A node that
// lags is waited for; a log that ends before it, or goes on differently, is damage.
//
// Appending waits until the follower has numbered the events. Reading a stream, or its head, asks
// the leader. Reading in order first looks where the ledger ends on the cluster, and waits until
// the follower is there.
//
// # When a call fails
//
// An append is sent again, with the same IDs and the same expected revision, until its outcome is
// known, for as long as Options.Patience; then it is ledger.ErrUnknownOutcome. A conflict's actual
// version is read from the stream's head. Everything the client does runs behind deadlines of our
// own: see link.go for what it needs.
//
// # What a cluster can do to a ledger
//
// A stream's metadata hides events ($tb, $maxCount, $maxAge), a soft delete hides all of them, a
// tombstone ends a stream for ever, a scavenge takes hidden events away, redaction overwrites
// them, other programs may write to our streams, and a restored backup shortens the log. Each is
// found and named, as *ledger.DamagedError by the store and at its index by an audit of Exhibit;
// none makes a shorter history. Protect sets the access lists that keep ordinary users from all
// this, and the audit checks them.
//
// Forget puts a blob's bytes out of reach at once. They leave the disks when each node scavenges.
//
// # What was proved
//
// The conformance suite of package ledgertest and the tests of the failures above run against
// package peer, which speaks the protocol as far as its FIDELITY.md says, and not against a real
// server. `make test-kurrentdb` runs the suite against a real cluster.
package kurrentdb
