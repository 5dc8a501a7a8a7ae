// Package sqlite keeps a ledger in one SQLite file.
//
// The file is in WAL mode with synchronous=FULL: an append that returned is on the disk. Several
// processes may open the same file at once; all of them see one order. Beside the file lie
// "<file>-wal" and "<file>-shm" while anybody has it open. Copy a ledger only when nobody has, or
// use SQLite's own backup.
//
// One goroutine a process writes. It takes every append that is waiting and commits them in one
// transaction, so that many writers share one sync. Each append is judged before it writes, so a
// conflict never fails its neighbours.
//
//	store, err := sqlite.Open(ctx, filepath.Join(home, "ledger.db"), sqlite.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// # When a commit fails
//
// Once COMMIT was issued, an error no longer says whether the events are on the disk: they may be
// invisible now and appear after a crash. Append then returns ledger.ErrUnknownOutcome. Before
// anything is read again, the store commits an empty change, which overwrites what the failed
// commit may have left behind. So what a later read shows stays true. While that doesn't succeed,
// reads fail.
//
// The tables are documented in schema.sql and in the ledger's FORMAT.md.
package sqlite
