// Package peer is a cluster for tests: it speaks the gRPC protocol of EventStoreDB and KurrentDB, as
// far as a ledger uses it, over TCP on the loopback, and keeps everything in memory. The messages
// are those that the official client is generated from.
//
//	c, err := peer.Start(peer.Options{Nodes: 3})
//	defer c.Close()
//	store, err := kurrentdb.Open(ctx, c.URL(), kurrentdb.Options{})
//
// Nodes stop, lag, lose the leadership or each other; writes and reads fail as a script says, and
// history is changed from outside, as a disk or an administrator may change it.
//
// FIDELITY.md has one row for each rule it follows, with where the rule is from. It isn't the
// server, and nothing else should be concluded from it.
package peer
