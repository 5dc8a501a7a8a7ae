package projections

import "github.com/baildock/baildock/ledger"

// taken is when an attempt took custody, and who did.
type taken struct {
	index ledger.Index
	time  int64
	actor string
}

// custody stores an attempt's daemon objects.
func (l *live) custody(c *conn) error {
	for _, x := range l.fold.Custodies {
		took := l.taken[x.Handle]
		err := c.run("INSERT OR REPLACE INTO custody_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			string(l.id), x.Handle.String(), string(x.Kind), x.Name, orNull(text(x.Container)), x.Request.String(), x.Daemon.Engine,
			orNull(string(x.State)), truth(x.Open()), truth(x.Abandoned), orNull(x.Unconfirmed), int64(l.last),
			int64(took.index), took.time, took.actor)
		if err != nil {
			return err
		}
	}
	return nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
