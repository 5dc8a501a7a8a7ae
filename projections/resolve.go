package projections

import (
	"context"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/baildock/baildock/evidence"
)

// Last stands for the attempt registered last; baildock's own probe of a runtime, which the first run on
// it registers beside itself, only where there is no other.
const Last = "@last"

// lastQueries find what Last stands for, the first that finds anything.
var lastQueries = []string{
	"SELECT attempt FROM attempt_rows WHERE attempt NOT GLOB '" + evidence.ProbePrefix + strings.Repeat("[0-9a-f]", 2*len(evidence.Nonce{})) + "' ORDER BY first_index DESC LIMIT 1",
	"SELECT attempt FROM attempt_rows ORDER BY first_index DESC LIMIT 1",
}

// UnknownAttemptError says that nothing goes by a name.
type UnknownAttemptError struct{ Name string }

func (e *UnknownAttemptError) Error() string {
	if e.Name == Last {
		return "there is no attempt yet"
	}
	return fmt.Sprintf("no attempt is called %q or begins with it", e.Name)
}

// AmbiguousError says that a prefix stands for several attempts.
type AmbiguousError struct {
	Prefix     string
	Candidates []evidence.AttemptID // sorted; the first few
	More       bool                 // there are others
}

func (e *AmbiguousError) Error() string {
	names := make([]string, len(e.Candidates))
	for i, c := range e.Candidates {
		names[i] = string(c)
	}
	if e.More {
		names = append(names, "…")
	}
	return fmt.Sprintf("%q stands for several attempts: %s; write more of the ID", e.Prefix, strings.Join(names, ", "))
}

// Resolve turns `@last`, an ID or a prefix that only one ID has into that ID (req J4). A whole ID
// always stands for itself. It fails with *UnknownAttemptError or *AmbiguousError.
func (p *Projections) Resolve(ctx context.Context, name string) (evidence.AttemptID, error) {
	if name == Last {
		for _, query := range lastQueries {
			found, err := p.names(ctx, query)
			if err != nil {
				return "", err
			}
			if len(found) > 0 {
				return found[0], nil
			}
		}
		return "", &UnknownAttemptError{Name: name}
	}
	if _, err := evidence.ParseAttemptID(name); err != nil {
		return "", err
	}
	low, high := prefixRange(name)
	found, err := p.names(ctx, "SELECT attempt FROM attempt_rows WHERE attempt >= ? AND attempt < ? ORDER BY attempt LIMIT ?", low, high, int64(maxListed+1))
	if err != nil {
		return "", err
	}
	switch {
	case len(found) == 0:
		return "", &UnknownAttemptError{Name: name}
	case len(found) == 1 || string(found[0]) == name: // a whole ID sorts before all it begins
		return found[0], nil
	}
	more := len(found) > maxListed
	return "", &AmbiguousError{Prefix: name, Candidates: found[:min(len(found), maxListed)], More: more}
}

func (p *Projections) names(ctx context.Context, sql string, args ...any) ([]evidence.AttemptID, error) {
	var found []evidence.AttemptID
	err := p.with(ctx, func(c *conn) error {
		found = nil
		return c.each(func(s *sqlite3.Stmt) error {
			found = append(found, evidence.AttemptID(s.ColumnText(0)))
			return nil
		}, sql, args...)
	})
	return found, err
}
