package tamper_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

// place is where an edit must be found: at one of the indexes from..to, in a field of one of these
// names.
type place struct {
	from, to int64
	fields   []string // prefixes; none: any
}

func at(i int64, fields ...string) place { return place{i, i, fields} }

// edit tampers with the ledger somewhere and says where an audit must find it.
type edit struct {
	name string
	do   func(a *audited, x *tampering, r *rand.Rand) place
	kept bool // nothing in the file can show it; a checkpoint kept elsewhere does
}

// edits are all kinds of tampering.
func edits() []edit {
	out := []edit{
		{name: "drop an event", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i := r.Int64N(a.size())
			x.exec("DELETE FROM events WHERE idx = ?", i)
			return at(i, "index", "checkpoint size")
		}},
		{name: "drop an event and close the gap", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i := r.Int64N(a.size())
			x.exec("DELETE FROM events WHERE idx = ?", i)
			x.shift(i+1, -1)
			return at(i)
		}},
		{name: "insert an event", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i := r.Int64N(a.size())
			x.shift(i, 1)
			e := ledger.Event{Index: ledger.Index(i), Stream: "inserted", Type: "Note", Media: "text/plain", Prev: []byte{}, Meta: []byte{}, Data: []byte("new")}
			leaf := e.Leaf()
			x.insert(row{e, leaf[:]})
			// Where one node is due, the forged event is right in itself; its neighbour's tree isn't.
			return place{i, i + 1, nil}
		}},
		{name: "insert an event before the first", do: func(_ *audited, x *tampering, r *rand.Rand) place {
			e := ledger.Event{Index: math.MaxUint64, Stream: "inserted", Type: "Note", Media: "text/plain", Prev: []byte{}, Meta: []byte{}, Data: []byte("new")}
			x.insert(row{e, []byte{}})
			return place{}
		}},
		{name: "store an event twice", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i := r.Int64N(a.size())
			e := a.events[i]
			e.Index = ledger.Index(a.size())
			x.insert(row{e, x.value("SELECT nodes FROM events WHERE idx = ?", i).([]byte)})
			return at(a.size(), "version")
		}},
		{name: "reorder", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i := r.Int64N(a.size() - 1)
			j := i + 1 + r.Int64N(a.size()-i-1)
			x.exec("UPDATE events SET idx = -1 WHERE idx = ?", i)
			x.exec("UPDATE events SET idx = ? WHERE idx = ?", i, j)
			x.exec("UPDATE events SET idx = ? WHERE idx = -1", j)
			return place{i, i + 1, nil} // two leaves that swap are each right in themselves
		}},
		{name: "truncate", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i := 1 + r.Int64N(a.size()-1)
			x.exec("DELETE FROM events WHERE idx >= ?", i)
			return at(i, "checkpoint size")
		}},
		{name: "truncate with the checkpoints", kept: true, do: func(a *audited, x *tampering, r *rand.Rand) place {
			i := 1 + r.Int64N(a.size()-1)
			x.exec("DELETE FROM events WHERE idx >= ?", i)
			x.exec("DELETE FROM checkpoints WHERE size > ?", i)
			return at(i, "kept checkpoint size")
		}},
		{name: "rewrite behind the checkpoints", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i, changed := a.harmless(r)
			x.rewrite(changed)
			return at(a.covering(i)-1, "checkpoint root")
		}},
		{name: "rewrite and sign everything again", kept: true, do: func(a *audited, x *tampering, r *rand.Rand) place {
			_, changed := a.harmless(r)
			roots := x.rewrite(changed)
			for _, c := range a.checkpoints {
				again, err := a.fixture.Signer.Sign(c.Size, roots[c.Size])
				require.NoError(x.t, err)
				x.exec("UPDATE checkpoints SET root = ?, note = ? WHERE size = ?", again.Root[:], again.Note, int64(c.Size))
			}
			return at(a.size()-1, "kept checkpoint root")
		}},
		{name: "rewrite and drop the checkpoints", kept: true, do: func(a *audited, x *tampering, r *rand.Rand) place {
			_, changed := a.harmless(r)
			x.rewrite(changed)
			x.exec("DELETE FROM checkpoints")
			return at(a.size()-1, "kept checkpoint root")
		}},
		{name: "leave out a step and sign everything again", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i := a.step(r)
			events := slices.Delete(slices.Clone(a.events), int(i), int(i)+1)
			roots := x.rewrite(events)
			x.exec("DELETE FROM checkpoints")
			again, err := a.fixture.Signer.Sign(uint64(len(events)), roots[len(events)])
			require.NoError(x.t, err)
			x.exec("INSERT INTO checkpoints (size, origin, root, note) VALUES (?, ?, ?, ?)", int64(again.Size), again.Origin, again.Root[:], again.Note)
			// Bytes are all right. The history isn't, at the latest where the record is derived again.
			last := i
			for k, e := range events[i:] {
				if e.Stream == a.events[i].Stream {
					last = i + int64(k)
				}
			}
			return place{i, last, []string{"history", "binding", "basis", "claim", "request", "record"}}
		}},
		{name: "lie about an output and sign everything again", do: func(a *audited, x *tampering, r *rand.Rand) place {
			i, events := a.lying(x.t, r)
			roots := x.rewrite(events)
			x.exec("DELETE FROM checkpoints")
			again, err := a.fixture.Signer.Sign(uint64(len(events)), roots[len(events)])
			require.NoError(x.t, err)
			x.exec("INSERT INTO checkpoints (size, origin, root, note) VALUES (?, ?, ?, ?)", int64(again.Size), again.Origin, again.Root[:], again.Note)
			return at(i, "named blobs") // the bytes are all right, and not what the event says of them
		}},
		{name: "flip a bit of a checkpoint's size", do: func(a *audited, x *tampering, r *rand.Rand) place {
			size := int64(a.checkpoints[r.IntN(len(a.checkpoints))].Size)
			other := size ^ 1<<r.IntN(64)
			for slices.ContainsFunc(a.checkpoints, func(c ledger.Checkpoint) bool { return int64(c.Size) == other }) {
				other = size ^ 1<<r.IntN(64)
			}
			x.exec("UPDATE checkpoints SET size = ? WHERE size = ?", other, size)
			if other < 0 || other > a.size() {
				return at(a.size(), "checkpoint size")
			}
			return at(max(other-1, 0), "checkpoint size", "checkpoint signature")
		}},
		{name: "replace a blob's bytes", do: func(a *audited, x *tampering, r *rand.Rand) place {
			id, named := a.blob(x, r)
			data := x.value("SELECT data FROM blob_chunks WHERE id = ?", id*1024).([]byte)
			x.exec("UPDATE blob_chunks SET data = ? WHERE id = ?", flipped(data, r), id*1024)
			return at(named, "blob")
		}},
		{name: "cut a blob", do: func(a *audited, x *tampering, r *rand.Rand) place {
			id, named := a.blob(x, r)
			x.exec("DELETE FROM blob_chunks WHERE id = ?", id*1024)
			return at(named, "blob")
		}},
		{name: "flip a bit of a blob's size", do: func(a *audited, x *tampering, r *rand.Rand) place {
			id, named := a.blob(x, r)
			size := x.value("SELECT size FROM blobs WHERE id = ?", id).(int64)
			x.exec("UPDATE blobs SET size = ? WHERE id = ?", size^1<<r.IntN(64), id)
			return at(named, "blob")
		}},
		{name: "give a blob another salt", do: func(a *audited, x *tampering, r *rand.Rand) place {
			id, named := a.blob(x, r)
			salt := x.value("SELECT salt FROM blobs WHERE id = ?", id).([]byte)
			if len(salt) == 0 {
				salt = make([]byte, ledger.SaltSize)
			}
			x.exec("UPDATE blobs SET salt = ? WHERE id = ?", flipped(salt, r), id)
			return at(named, "blob")
		}},
		{name: "move the border between a blob's salt and its data", do: func(a *audited, x *tampering, r *rand.Rand) place {
			id, named := a.blob(x, r)
			salt := x.value("SELECT salt FROM blobs WHERE id = ?", id).([]byte)
			data := x.value("SELECT data FROM blob_chunks WHERE id = ?", id*1024).([]byte)
			if len(salt) == 0 {
				n := min(len(data), ledger.SaltSize)
				salt, data = data[:n], data[n:]
			} else {
				salt, data = nil, slices.Concat(salt, data)
			}
			x.exec("UPDATE blobs SET salt = ?, size = ? WHERE id = ?", salt, int64(len(data)), id)
			x.exec("UPDATE blob_chunks SET data = ? WHERE id = ?", data, id*1024)
			return at(named, "blob", "descriptor")
		}},
	}
	for _, column := range []string{"stream", "type", "media", "prev", "meta", "data", "nodes", "time", "version", "idx"} {
		out = append(out, edit{name: "flip a bit of " + column, do: func(a *audited, x *tampering, r *rand.Rand) place {
			return a.flipEvent(x, r, column)
		}})
	}
	for _, column := range []string{"origin", "root", "note"} {
		out = append(out, edit{name: "flip a bit of a checkpoint's " + column, do: func(a *audited, x *tampering, r *rand.Rand) place {
			size := int64(a.checkpoints[r.IntN(len(a.checkpoints))].Size)
			v := x.value("SELECT "+column+" FROM checkpoints WHERE size = ?", size)
			x.exec("UPDATE checkpoints SET "+column+" = ? WHERE size = ?", flip(v, r), size)
			return at(size-1, "checkpoint")
		}})
	}
	return out
}

// flipEvent flips one bit of one column of one event.
func (a *audited) flipEvent(x *tampering, r *rand.Rand, column string) place {
	for {
		i := r.Int64N(a.size())
		v := x.value("SELECT "+column+" FROM events WHERE idx = ?", i)
		if b, ok := v.([]byte); ok && len(b) == 0 {
			continue
		}
		now := flip(v, r)
		if n, ok := now.(int64); ok && column == "idx" {
			if n >= 0 && n < a.size() {
				continue // taken; SQLite itself refuses it
			}
			x.exec("UPDATE events SET idx = ? WHERE idx = ?", n, i)
			if n < 0 {
				return at(0, "index")
			}
			return at(i, "index", "checkpoint size")
		}
		x.exec("UPDATE events SET "+column+" = ? WHERE idx = ?", now, i)
		return at(i)
	}
}

// flip flips a bit of a value.
func flip(v any, r *rand.Rand) any {
	switch v := v.(type) {
	case int64:
		return v ^ 1<<r.IntN(64)
	case string:
		return string(flipped([]byte(v), r))
	default:
		return flipped(v.([]byte), r)
	}
}

func flipped(b []byte, r *rand.Rand) []byte {
	b = slices.Clone(b)
	bit := r.IntN(8 * len(b))
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// harmless changes one event to another that is legal in every respect.
func (a *audited) harmless(r *rand.Rand) (int64, []ledger.Event) {
	events := slices.Clone(a.events)
	for {
		i := r.IntN(len(events))
		switch e := &events[i]; {
		case e.Stream == "notes":
			e.Data = append(slices.Clone(e.Data), " and more"...)
		case strings.HasPrefix(string(e.Stream), evidence.AttemptPrefix):
			e.Time++
		default:
			continue // what claims rest on carries leaf hashes into other streams
		}
		return int64(i), events
	}
}

// lying makes the event of one output say more bytes than there are.
func (a *audited) lying(t testing.TB, r *rand.Rand) (int64, []ledger.Event) {
	events := slices.Clone(a.events)
	for {
		i := r.IntN(len(events))
		if events[i].Type != (evidence.OutputCaptured{}).EventType() {
			continue
		}
		p, meta, err := journal.Decode(events[i])
		require.NoError(t, err)
		captured, ok := p.(evidence.OutputCaptured)
		require.True(t, ok)
		more := 1 + r.Uint64N(1<<10)
		captured.Stdout.Stored += more
		captured.Stdout.Received += more
		events[i].Meta, events[i].Data = evidence.Encode(captured, meta)
		return int64(i), events
	}
}

// step chooses an event of a finished attempt other than its last one.
func (a *audited) step(r *rand.Rand) int64 {
	for {
		i := r.Int64N(a.size())
		if e := a.events[i]; strings.HasPrefix(string(e.Stream), evidence.AttemptPrefix) && e.Type != (evidence.AttemptFinished{}).EventType() {
			return i
		}
	}
}

// covering is the size of the first checkpoint that covers an event.
func (a *audited) covering(i int64) int64 {
	for _, c := range a.checkpoints {
		if int64(c.Size) > i {
			return int64(c.Size)
		}
	}
	panic("the last checkpoint covers all")
}

// blob chooses a stored blob and tells where it is named first.
func (a *audited) blob(x *tampering, r *rand.Rand) (id, named int64) {
	n := x.value("SELECT count(*) FROM blobs").(int64)
	id = x.value("SELECT id FROM blobs ORDER BY id LIMIT 1 OFFSET ?", r.Int64N(n)).(int64)
	key := ledger.BlobKey(x.value("SELECT key FROM blobs WHERE id = ?", id).([]byte))
	at, ok := a.namedAt[key]
	require.True(x.t, ok, "blob %s is named by no event", key)
	return id, int64(at)
}

// roundsPerEdit is how often each kind of edit is tried, each time elsewhere.
const roundsPerEdit = 24

// Every edit of a real ledger is found, at its place. A rewrite that makes all hashes and
// signatures consistent again is found by a checkpoint that somebody else kept, and by nothing
// else.
//
// req R5 req R4
func TestAuditFindsEveryEdit(t *testing.T) {
	a := newAudited(t)
	last := a.checkpoints[len(a.checkpoints)-1]
	tried, onlyKept := 0, 0
	for k, e := range edits() {
		for round := range roundsPerEdit {
			r := rand.New(rand.NewPCG(uint64(k), uint64(round)))
			name := fmt.Sprintf("%s, round %d", e.name, round)
			path := a.copy(t)
			var want place
			tamper(t, path, func(x *tampering) { want = e.do(a, x, r) })
			got := audit(t, path)
			if e.kept {
				require.Nil(t, got.FirstBad, name)
				onlyKept++
				got = audit(t, path, last)
			}
			require.Equal(t, journal.AuditInvalid, got.Verdict, name)
			f := got.FirstBad
			require.True(t, want.from <= int64(f.Index) && int64(f.Index) <= want.to, "%s: found at %d (%s), made at %d to %d", name, f.Index, f, want.from, want.to)
			require.True(t, len(want.fields) == 0 || slices.ContainsFunc(want.fields, func(p string) bool { return strings.HasPrefix(f.Field, p) }), "%s: found in %s, made in %v", name, f, want.fields)
			require.NotEqual(t, f.Expected, f.Found, name)
			require.LessOrEqual(t, got.Events, uint64(f.Index), name)
			tried++
		}
	}
	require.Equal(t, 32*roundsPerEdit, tried)
	require.Equal(t, 3*roundsPerEdit, onlyKept)
	t.Logf("count: %d edits of a ledger of %d events, each found at its place; %d of them only by a kept checkpoint", tried, a.size(), onlyKept)
}
