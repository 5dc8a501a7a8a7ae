package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/baildock/baildock/evidence"
)

// Period is how outcomes are summed up.
type Period string

const (
	PerHour  Period = "hour"
	PerDay   Period = "day"
	PerMonth Period = "month"
)

// OutcomeQuery selects finished attempts.
type OutcomeQuery struct {
	Period       Period
	Change       evidence.ChangeID // empty: any, and ad hoc ones
	Since, Until time.Time
}

// period says how rows are counted first, in whole units, and how much of a time in RFC 3339 names it.
type period struct {
	unit   time.Duration
	digits int64
}

var periods = map[Period]period{
	PerHour:  {time.Hour, int64(len("2006-01-02T15"))},
	PerDay:   {24 * time.Hour, int64(len("2006-01-02"))},
	PerMonth: {24 * time.Hour, int64(len("2006-01"))}, // of days, because months differ in length
}

// outcomesHead counts by whole units, rounded down also before 1970, and outcomesTail names the periods
// of the few groups that leaves.
const (
	outcomesHead = `WITH counted AS (SELECT finished / ?1 - (finished % ?1 < 0) AS slot, outcome, detail, count(*) AS n
		FROM attempt_rows WHERE state = 'finished' AND problem IS NULL`
	outcomesTail = ` GROUP BY 1, 2, 3)
		SELECT substr(strftime('%Y-%m-%dT%H', slot * (?1 / 1000000000), 'unixepoch'), 1, ?2) AS period, outcome, detail, sum(n) AS attempts
		FROM counted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`
)

// Outcomes counts finished attempts by period, outcome and detail. Times are their writers' claims, UTC.
func (p *Projections) Outcomes(ctx context.Context, q OutcomeQuery) (Table, error) {
	by, ok := periods[q.Period]
	if !ok {
		return Table{}, fmt.Errorf("period %q is none of hour, day, month", q.Period)
	}
	sql, args := outcomesHead, []any{int64(by.unit), by.digits}
	if q.Change != "" {
		args = append(args, string(q.Change))
		sql += fmt.Sprintf(" AND change_id = ?%d", len(args))
	}
	if !q.Since.IsZero() {
		args = append(args, q.Since.UnixNano())
		sql += fmt.Sprintf(" AND finished >= ?%d", len(args))
	}
	if !q.Until.IsZero() {
		args = append(args, q.Until.UnixNano())
		sql += fmt.Sprintf(" AND finished < ?%d", len(args))
	}
	return p.table(ctx, sql+outcomesTail, args)
}
