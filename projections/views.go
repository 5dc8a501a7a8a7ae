package projections

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Views that can be asked. Their columns are those of schema.sql.
var (
	AttemptsView = View{
		Name: "attempts", rows: selectRows + " WHERE first_index IN (SELECT first_index FROM attempt_rows WHERE %s%s)",
		order: "first_index DESC", latest: "first_index DESC", ties: "first_index DESC",
		filters: map[Filterable]filter{
			ByOutcome: oneOf("outcome = ?", evidence.Outcomes()...),
			ByState:   oneOf("state = ?", evidence.StatePending, evidence.StateRunning, evidence.StateFinished),
			ByClaim:   oneOf("claim = ?", evidence.ClaimNone, evidence.ClaimFull, evidence.ClaimReduced),
			ByChange:  one("change_id = ?", evidence.ParseChangeID), ByActor: one("actor = ?", actorName),
			ByRevision: revision("(revision >= ? AND revision < ? OR revision >= ? AND revision < ?)"),
			ByRecipe:   digest("recipe >= ? AND recipe < ?"), ByRuntime: digest("runtime >= ? AND runtime < ?"),
		},
		time:    "registered",
		sorts:   rawColumns,
		picks:   rawColumns,
		columns: AttemptColumns(),
	}
	CustodyView = View{
		Name: "custody", rows: "SELECT * FROM custody WHERE (attempt, handle) IN (SELECT attempt, handle FROM custody_rows WHERE %s)", order: "last_index DESC, attempt, handle",
		filters: map[Filterable]filter{
			ByAttempt: one("attempt = ?", attemptName), ByActor: one("actor = ?", actorName),
			ByKind:   oneOf("kind = ?", evidence.CustodyContainer, evidence.CustodyNetwork),
			ByState:  oneOf("CASE WHEN open = 1 THEN 'open' WHEN abandoned = 1 THEN 'abandoned' ELSE 'closed' END = ?", "open", "closed", "abandoned"),
			ByChange: one(ofAttempt+"change_id = ?)", evidence.ParseChangeID), ByOutcome: oneOf(ofAttempt+"outcome = ?)", evidence.Outcomes()...),
			ByRuntime: digest(ofAttempt + "runtime >= ? AND runtime < ?)"),
		},
		time: "taken",
		columns: []string{"attempt", "handle", "kind", "name", "container", "request", "engine", "state", "open", "abandoned", "unconfirmed", "last_index",
			"taken_index", "taken_at", "actor"},
	}
	ChangesView = View{
		Name: "changes", rows: "SELECT * FROM changes WHERE %s", order: "first_index",
		filters: map[Filterable]filter{
			ByChange: one("change_id = ?", evidence.ParseChangeID), ByPolicy: one("policy = ?", evidence.ParsePolicyID),
			ByRevision: revision("(revision >= ? AND revision < ? OR revision >= ? AND revision < ?)"),
		},
		columns: []string{"change_id", "repository", "version", "revision", "context", "policy", "epoch", "attempts", "approvals", "integrated_version",
			"first_index", "last_index", "problem"},
	}
	AdmissionsView = View{
		Name: "admissions", rows: `SELECT * FROM admissions WHERE "index" IN (SELECT idx FROM admission_rows r WHERE %s)`, order: `"index" DESC`,
		filters: map[Filterable]filter{
			ByChange: one("r.change_id = ?", evidence.ParseChangeID), ByActor: one("r.actor = ?", actorName),
			ByKind:     oneOf("r.kind = ?", "approval", "integration"),
			ByStands:   oneOf("CASE WHEN r.void_index IS NULL THEN 'yes' ELSE 'no' END = ?", "yes", "no"),
			ByRevision: revision("(r.revision >= ? AND r.revision < ? OR r.revision >= ? AND r.revision < ?)"),
			ByAttempt:  one("instr(' ' || r.attempts || ' ', ' ' || ? || ' ') > 0", attemptName),
		},
		time:    "r.time",
		columns: []string{"index", "change_id", "change_version", "revision", "context", "kind", "attempts", "void_index", "stands", "time", "actor"},
	}
	RuntimesView = View{
		Name: "runtimes", rows: "SELECT * FROM runtimes WHERE runtime IN (SELECT runtime FROM runtime_rows r WHERE %s)", order: "first_index",
		filters: map[Filterable]filter{
			ByRuntime: digest("r.runtime >= ? AND r.runtime < ?"),
			ByAttempt: one("r.runtime = (SELECT runtime FROM attempt_rows WHERE attempt = ?)", attemptName),
			ByChange:  one("r.runtime IN (SELECT runtime FROM attempt_rows WHERE change_id = ?)", evidence.ParseChangeID),
		},
		time: "r.seen",
		columns: []string{"runtime", "engine", "machine", "version", "api", "kernel", "os", "arch", "runner", "first_index", "first_seen_at", "probed",
			"attempts", "qualification"},
	}
	QualificationsView = View{
		Name: "qualifications", rows: `SELECT * FROM qualifications WHERE "index" IN (SELECT idx FROM qualification_rows r WHERE %s)`, order: `"index" DESC`,
		filters: map[Filterable]filter{
			ByRuntime: digest("r.runtime >= ? AND r.runtime < ?"), ByAttempt: one("r.attempt = ?", attemptName),
			ByCanary: one("r.canary = ?", codeName), ByVerdict: one("r.verdict = ?", codeName),
		},
		time:    "r.time",
		columns: []string{"index", "runtime", "profile", "image", "corpus", "canary", "verdict", "attempt", "time"},
	}
	TimelineView = timeline(
		one(inStream, attemptName), one(inStream, evidence.ParseChangeID), one(inStream, evidence.ParsePolicyID), one(inStream, ledger.ParseStreamID))
	// timelineOfIndexes is the timeline asked by lists of indexes in place of the names of streams.
	timelineOfIndexes = timeline(indexes, indexes, indexes, indexes)
)

// rawColumns are the columns of attempt_rows by the names of the view.
var rawColumns = func() map[string]string {
	out := map[string]string{}
	for i, name := range AttemptColumns() {
		out[name] = columns[i]
	}
	return out
}()

// inStream selects events by a JSON list of their indexes.
const inStream = "r.idx IN (SELECT value FROM json_each(?))"

var indexes = one(inStream, func(s string) (string, error) { return s, nil })

func timeline(attempt, change, policy, stream filter) View {
	return View{
		Name: "timeline", rows: `SELECT * FROM timeline WHERE "index" IN (SELECT idx FROM timeline_rows r WHERE %s%s)`,
		order: `"index"`, latest: "r.idx DESC", ties: "r.idx",
		filters: map[Filterable]filter{
			ByAttempt: attempt, ByChange: change, ByPolicy: policy, ByStream: stream,
			ByType:  one("r.type = (SELECT id FROM words WHERE word = ?)", typeName),
			ByActor: one("r.actor = (SELECT id FROM words WHERE word = ?)", actorName),
		},
		time: "r.time", spans: true,
		picks:   map[string]string{"index": "r.idx", "version": "r.version", "time": "r.time", "bytes": "r.bytes"},
		columns: []string{"index", "stream", "version", "type", "time", "actor", "bytes"},
	}
}

// sinceSpan and untilSpan bound the events that may be of a time, by the runs of events that hold one.
const (
	sinceSpan = "r.idx >= (SELECT coalesce(min(span), 1 << 50) * 4096 FROM timeline_spans WHERE newest >= ?)"
	untilSpan = "r.idx < (SELECT coalesce(max(span) + 1, 0) * 4096 FROM timeline_spans WHERE oldest < ?)"
)

// Attempts lists attempts, the latest registered first. Its errors are those of Ask.
func (p *Projections) Attempts(ctx context.Context, q Query) ([]AttemptRow, error) {
	sql, args, err := p.compile(ctx, AttemptsView, q)
	if err != nil {
		return nil, err
	}
	return p.attempts(ctx, sql, args...)
}

// OpenAttempts lists the attempts that aren't finished, the oldest first.
func (p *Projections) OpenAttempts(ctx context.Context) ([]AttemptRow, error) {
	return p.attempts(ctx, selectRows+" WHERE state <> 'finished' ORDER BY first_index")
}

func (p *Projections) attempts(ctx context.Context, sql string, args ...any) ([]AttemptRow, error) {
	rows := []AttemptRow{}
	err := p.with(ctx, func(c *conn) error {
		rows = rows[:0]
		return c.each(func(s *sqlite3.Stmt) error {
			rows = append(rows, scan(s))
			return nil
		}, sql, args...)
	})
	return rows, err
}

// Admissions answers a question about approvals and integrations.
func (p *Projections) Admissions(ctx context.Context, q Query) ([]Row, error) {
	t, err := p.Ask(ctx, AdmissionsView, q)
	return t.ByName(), err
}
