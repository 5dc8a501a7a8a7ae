package projections

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger/ledgertest"
)

// A statement that asks for more memory or time than there is fails by itself, and the next is answered.
//
// req S2
func TestStatementsHaveBounds(t *testing.T) {
	p, err := Open(t.Context(), t.TempDir()+"/projections.db", ledgertest.NewMem(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	for _, c := range []struct{ sql, says string }{
		{"SELECT hex(zeroblob(200000000))", "too big"},
		{"SELECT zeroblob(2000000000)", "too big"},
		{"SELECT group_concat(zeroblob(1000000), 'x') FROM (VALUES (1),(2),(3),(4),(5),(6))", "too big"},
		{"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", "took longer than 200ms"},
		{"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT zeroblob(4000000) FROM n", "bytes; add a LIMIT"},
	} {
		p.patience = maxTime
		if strings.Contains(c.says, "longer") {
			p.patience = 200 * time.Millisecond
		}
		_, err := p.SQL(t.Context(), c.sql)
		var asked *QueryError
		require.ErrorAs(t, err, &asked, c.sql)
		require.ErrorContains(t, err, c.says)
	}
	answer, err := p.SQL(t.Context(), "SELECT 1")
	require.NoError(t, err)
	require.Equal(t, [][]any{{int64(1)}}, answer.Rows)
}
