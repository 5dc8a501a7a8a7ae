package sqlite

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/ledger"
)

// explain says what went wrong, why, and what may help. Errors that aren't SQLite's stay as they
// are.
func explain(err error, path, doing string) error {
	var code sqlite3.ErrorCode
	if err == nil || !errors.As(err, &code) {
		return err
	}
	why := ""
	if code == sqlite3.CORRUPT || code == sqlite3.NOTADB {
		return &ledger.DamagedError{Err: err, What: fmt.Sprintf(
			"can't %s at %s: it is damaged or isn't a ledger at all; keep it for inspection and restore a copy (%v)", doing, path, err)}
	}
	switch code {
	case sqlite3.BUSY, sqlite3.LOCKED:
		why = "another process kept it locked for too long; try again"
	case sqlite3.FULL:
		why = "the disk is full; free some space and try again"
	case sqlite3.READONLY, sqlite3.PERM:
		why = "it can't be written; check its permissions and whether the file system is mounted read-only"
	case sqlite3.IOERR:
		why = "its disk reported an error; see that it isn't full, then check the disk and the system log"
	case sqlite3.CANTOPEN:
		why = "it can't be opened; check that the path exists and is readable"
	case sqlite3.NOMEM:
		why = "memory ran out"
	default:
		return fmt.Errorf("%s at %s: %w", doing, path, err)
	}
	return fmt.Errorf("can't %s at %s: %s (%w)", doing, path, why, err)
}
