package tamper_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// mentions lists an event's blobs as the bundle does.
func mentions(p evidence.Payload) (out []journal.Mention) {
	for _, m := range bundle.Mentions(p) {
		out = append(out, journal.Mention{Plain: ledger.BlobKey(m.Plain), Ref: m.Ref})
	}
	return out
}

// audited is a real ledger in a file, with all that an audit compares.
type audited struct {
	path        string
	fixture     *exporttest.Fixture
	events      []ledger.Event
	checkpoints []ledger.Checkpoint
	namedAt     map[ledger.BlobKey]ledger.Index // the first event that names a blob
}

// newAudited makes a ledger of a few hundred events: attempts that succeed and fail, alone and for
// a change, users' streams between them, and a checkpoint now and then, the last one over all.
func newAudited(t *testing.T) *audited {
	t.Helper()
	a := &audited{path: filepath.Join(t.TempDir(), "ledger.db"), namedAt: map[ledger.BlobKey]ledger.Index{}}
	store, err := sqlite.Open(t.Context(), a.path, sqlite.Options{})
	require.NoError(t, err)
	f := exporttest.On(t, store)
	a.fixture = f
	var binding evidence.Binding
	for i := range 18 {
		h := evidencetest.Success()
		h.Registered.Attempt = evidence.AttemptID(fmt.Sprintf("run-%02d", i))
		h.Custody.Request = h.Request()
		switch i % 3 {
		case 1:
			h.Exited.ExitCode = 3
		case 2:
			if binding == (evidence.Binding{}) {
				binding = f.Change(t, "c", h)
			} else {
				f.Bind(t, binding, h)
			}
		}
		f.Run(t, h)
		note := ledger.Prepared{Type: "Note", Media: "text/plain", Time: int64(i), Meta: []byte{byte(i)}, Data: fmt.Appendf(nil, "note %d", i)}
		_, err := store.Append(t.Context(), "notes", ledger.Version(i-1), note)
		require.NoError(t, err)
		if i%4 == 3 {
			a.sign(t)
		}
	}
	a.sign(t)
	for e, err := range store.ReadAll(t.Context(), 0) {
		require.NoError(t, err)
		a.events = append(a.events, e)
		if !journal.IsProductStream(e.Stream) {
			continue
		}
		p, _, err := journal.Decode(e)
		require.NoError(t, err)
		for _, m := range mentions(p) {
			keys := []ledger.BlobKey{m.Plain}
			if m.Ref != nil {
				keys = []ledger.BlobKey{ledger.BlobKey(m.Ref.Salted), ledger.BlobKey(m.Ref.Descriptor)}
			}
			for _, k := range keys {
				if _, known := a.namedAt[k]; !known {
					a.namedAt[k] = e.Index
				}
			}
		}
	}
	require.Greater(t, len(a.events), 300)
	require.NoError(t, store.Close())
	return a
}

func (a *audited) sign(t *testing.T) {
	t.Helper()
	c, err := a.fixture.Ledger.SignCheckpoint(t.Context(), a.fixture.Signer)
	require.NoError(t, err)
	a.checkpoints = append(a.checkpoints, c)
}

func (a *audited) size() int64 { return int64(len(a.events)) }

// copy makes a copy of the ledger's file to be tampered with.
func (a *audited) copy(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(a.path)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// audit audits a file, holding it against checkpoints kept elsewhere.
func audit(t testing.TB, path string, kept ...ledger.Checkpoint) journal.AuditReport {
	t.Helper()
	store, err := sqlite.Open(context.Background(), path, sqlite.Options{MustExist: true})
	require.NoError(t, err)
	a := journal.Audit{Exhibit: store, Mentions: mentions}
	for _, k := range kept {
		a.Kept = append(a.Kept, journal.KeptCheckpoint{Name: "kept checkpoint", Note: k.Note})
	}
	r, err := a.Run(context.Background())
	require.NoError(t, err)
	require.NoError(t, store.Close())
	return r
}

// tampering is write access to a ledger's file, behind the program's back.
type tampering struct {
	t  testing.TB
	db *sqlite3.Conn
}

// tamper opens a file as a forger would, with the triggers out of the way; what they did is hidden
// again afterwards, as far as the tables still allow it.
func tamper(t testing.TB, path string, edit func(*tampering)) {
	t.Helper()
	db, err := sqlite3.Open(path)
	require.NoError(t, err)
	x := &tampering{t, db}
	schema := x.schema()
	x.exec("PRAGMA synchronous=OFF")
	x.exec("BEGIN")
	x.exec("DROP TRIGGER events_stay")
	x.exec("DROP TRIGGER events_last")
	x.exec("DROP INDEX events_place")
	edit(x)
	for _, name := range []string{"events_stay", "events_last"} {
		x.exec(schema[name])
	}
	if err := db.Exec(schema["events_place"]); err != nil {
		x.exec("CREATE INDEX events_place ON events (stream, version)")
	}
	x.exec("COMMIT")
	require.NoError(t, db.Close())
}

func (x *tampering) schema() map[string]string {
	x.t.Helper()
	out := map[string]string{}
	s, _, err := x.db.Prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
	require.NoError(x.t, err)
	for s.Step() {
		out[s.ColumnText(0)] = s.ColumnText(1)
	}
	require.NoError(x.t, s.Close())
	return out
}

func (x *tampering) exec(sql string, args ...any) {
	x.t.Helper()
	s, _, err := x.db.Prepare(sql)
	require.NoError(x.t, err, sql)
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			err = s.BindInt64(i+1, v)
		case string:
			err = s.BindText(i+1, v)
		case []byte:
			err = s.BindBlob(i+1, v)
			if len(v) == 0 {
				err = s.BindZeroBlob(i+1, 0)
			}
		default:
			x.t.Fatalf("can't bind %T", arg)
		}
		require.NoError(x.t, err)
	}
	require.NoError(x.t, s.Exec(), sql)
	require.NoError(x.t, s.Close())
}

// value reads one value: int64, string or []byte.
func (x *tampering) value(sql string, args ...int64) (v any) {
	x.t.Helper()
	s, _, err := x.db.Prepare(sql)
	require.NoError(x.t, err)
	for i, arg := range args {
		require.NoError(x.t, s.BindInt64(i+1, arg))
	}
	require.True(x.t, s.Step(), sql)
	switch s.ColumnType(0) {
	case sqlite3.INTEGER:
		v = s.ColumnInt64(0)
	case sqlite3.TEXT:
		v = s.ColumnText(0)
	default:
		v = s.ColumnBlob(0, nil)
	}
	require.NoError(x.t, s.Close())
	return v
}

// row is an event's row as a forger rewrites it.
type row struct {
	ledger.Event
	nodes []byte
}

// rewrite replaces all events: index, version, prev and tree are made consistent again.
func (x *tampering) rewrite(events []ledger.Event) (roots []ledger.Hash) {
	x.t.Helper()
	x.exec("DELETE FROM events")
	heads := map[ledger.StreamID]ledger.Head{}
	var tree ledger.Frontier
	roots = []ledger.Hash{ledger.EmptyRoot}
	for i, e := range events {
		head, ok := heads[e.Stream]
		e.Prev = []byte{}
		if !ok {
			head = ledger.EmptyHead
		} else {
			e.Prev = head.Leaf[:]
		}
		e.Index, e.Version = ledger.Index(i), head.Version+1
		heads[e.Stream] = e.Head()
		var nodes []byte
		for _, n := range tree.AppendNodes(nil, e.Leaf()) {
			nodes = append(nodes, n[:]...)
		}
		x.insert(row{e, nodes})
		roots = append(roots, tree.Root())
	}
	return roots
}

func (x *tampering) insert(r row) {
	x.t.Helper()
	x.exec("INSERT INTO events (idx, stream, version, nodes, prev, type, time, media, meta, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		int64(r.Index), string(r.Stream), int64(r.Version), r.nodes, r.Prev, r.Type, r.Time, r.Media, r.Meta, r.Data)
}

// shift moves the indexes from `from` on by `by`, in two steps that never collide.
func (x *tampering) shift(from, by int64) {
	x.t.Helper()
	const away = 1 << 40
	x.exec("UPDATE events SET idx = idx + ? WHERE idx >= ?", int64(away), from)
	x.exec("UPDATE events SET idx = idx - ? + ? WHERE idx >= ?", int64(away), by, int64(away))
}

// req R5 req R6
func TestAuditOfAGoodLedger(t *testing.T) {
	a := newAudited(t)
	r := audit(t, a.path, a.checkpoints...)
	require.Nil(t, r.FirstBad)
	require.Equal(t, journal.AuditValid, r.Verdict)
	require.Equal(t, uint64(a.size()), r.Events)
	require.Equal(t, a.checkpoints[len(a.checkpoints)-1].Root, r.Root)
	require.Equal(t, uint64(len(a.checkpoints)), r.Checkpoints)
	require.Equal(t, len(a.checkpoints), r.Kept)
	require.Positive(t, r.Blobs.Checked)
	require.Zero(t, r.Blobs.Forgotten)
	require.Empty(t, r.Unread)

	// A forgotten blob is said, and breaks nothing.
	path := a.copy(t)
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	var registered evidence.AttemptRegistered
	p, _, err := journal.Decode(a.events[2])
	require.NoError(t, err)
	registered = p.(evidence.AttemptRegistered)
	require.NoError(t, store.Forget(t.Context(), ledger.BlobKey(registered.Environment)))
	require.NoError(t, store.Close())
	again := audit(t, path)
	require.Equal(t, journal.AuditValid, again.Verdict)
	require.Positive(t, again.Blobs.Forgotten)
	require.Equal(t, r.Blobs.Checked, again.Blobs.Checked+again.Blobs.Forgotten)
}
