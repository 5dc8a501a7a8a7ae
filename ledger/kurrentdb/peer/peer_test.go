package peer

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

func start(t *testing.T, o Options) (*Cluster, *esdb.Client) {
	t.Helper()
	c, err := Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, connect(t, c.URL())
}

// connect opens the official client on a cluster.
func connect(t *testing.T, url string) *esdb.Client {
	t.Helper()
	config, err := esdb.ParseConnectionString(url)
	require.NoError(t, err)
	config.Logger = esdb.NoopLogging()
	db, err := esdb.NewClient(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func event(name string) esdb.EventData {
	return esdb.EventData{EventID: uuid.NewSHA1(uuid.Nil, []byte(name)), EventType: "Said", Data: []byte(name), ContentType: esdb.ContentTypeBinary}
}

func put(t *testing.T, db *esdb.Client, stream string, expected esdb.ExpectedRevision, names ...string) (*esdb.WriteResult, error) {
	t.Helper()
	events := make([]esdb.EventData, len(names))
	for i, n := range names {
		events[i] = event(n)
	}
	return db.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: expected}, events...)
}

func mustPut(t *testing.T, db *esdb.Client, stream string, names ...string) {
	t.Helper()
	_, err := put(t, db, stream, esdb.Any{}, names...)
	require.NoError(t, err)
}

func code(t *testing.T, err error) esdb.ErrorCode {
	t.Helper()
	var e *esdb.Error
	require.ErrorAs(t, err, &e)
	return e.Code()
}

// read returns the data of a stream's events.
func read(t *testing.T, db *esdb.Client, stream string, o esdb.ReadStreamOptions) (out []string, err error) {
	t.Helper()
	r, err := db.ReadStream(t.Context(), stream, o, 1000)
	require.NoError(t, err)
	defer r.Close()
	for {
		e, err := r.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, string(e.Event.Data))
	}
}

func readAll(t *testing.T, db *esdb.Client, o esdb.ReadAllOptions) (out []*esdb.RecordedEvent) {
	t.Helper()
	r, err := db.ReadAll(t.Context(), o, 1000)
	require.NoError(t, err)
	defer r.Close()
	for {
		e, err := r.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, e.Event)
	}
}

func TestExpectedRevisions(t *testing.T) {
	_, db := start(t, Options{})
	mustPut(t, db, "s", "a", "b", "c")
	for name, c := range map[string]struct {
		expected esdb.ExpectedRevision
		events   []string
		last     int // -1: wrong expected version
	}{
		"above":                            {esdb.Revision(3), []string{"x"}, -1},
		"below, all there":                 {esdb.NoStream{}, []string{"a", "b"}, 2},
		"below, all there, in the middle":  {esdb.Revision(0), []string{"b"}, 2},
		"below, another order":             {esdb.NoStream{}, []string{"b", "a"}, -1},
		"below, one place off":             {esdb.Revision(0), []string{"a"}, -1},
		"below, none there":                {esdb.NoStream{}, []string{"x"}, -1},
		"below, some there":                {esdb.Revision(1), []string{"c", "x"}, -1},
		"any, all there":                   {esdb.Any{}, []string{"b", "c"}, 2},
		"the stream exists, and all there": {esdb.StreamExists{}, []string{"a", "b", "c"}, 2},
	} {
		r, err := put(t, db, "s", c.expected, c.events...)
		if c.last < 0 {
			require.Equal(t, esdb.ErrorCodeWrongExpectedVersion, code(t, err), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, uint64(c.last), r.NextExpectedVersion, name)
	}
	_, err := put(t, db, "none", esdb.StreamExists{}, "a")
	require.Equal(t, esdb.ErrorCodeWrongExpectedVersion, code(t, err))
	_, err = put(t, db, "none", esdb.Revision(0), "a")
	require.Equal(t, esdb.ErrorCodeWrongExpectedVersion, code(t, err))

	// At the head the IDs aren't looked at: the same event twice.
	r, err := put(t, db, "s", esdb.Revision(2), "c")
	require.NoError(t, err)
	require.Equal(t, uint64(3), r.NextExpectedVersion)
	got, err := read(t, db, "s", esdb.ReadStreamOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "c"}, got)
}

func TestBatchInOrder(t *testing.T) {
	_, db := start(t, Options{})
	before := time.Now().Add(-time.Second)
	mustPut(t, db, "s", "a", "b")
	mustPut(t, db, "t", "c")
	all := readAll(t, db, esdb.ReadAllOptions{})
	require.Len(t, all, 3)
	for i, e := range all {
		require.Equal(t, string("abc"[i]), string(e.Data))
		require.WithinRange(t, e.CreatedDate, before, time.Now().Add(time.Second))
		require.Equal(t, e.Position.Commit, e.Position.Prepare)
		if i > 0 {
			require.Greater(t, e.Position.Commit, all[i-1].Position.Commit+1, "gaps")
		}
	}
	_, err := put(t, db, "s", esdb.Revision(7), "x", "y")
	require.Error(t, err)
	require.Len(t, readAll(t, db, esdb.ReadAllOptions{}), 3)
}

func TestTooLarge(t *testing.T) {
	c, db := start(t, Options{MaxAppend: 4096})
	e := event("large")
	e.Data = make([]byte, 4096)
	_, err := db.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, e)
	require.Error(t, err, "its type counts too")
	e.Data = e.Data[:4000]
	_, err = db.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, e)
	require.NoError(t, err)
	many := make([]esdb.EventData, 5000)
	for i := range many {
		many[i] = event(strconv.Itoa(i))
		many[i].Data = make([]byte, 1000)
	}
	_, err = db.AppendToStream(t.Context(), "t", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, many...)
	require.ErrorIs(t, err, io.EOF, "the client has no other word for it")
	require.Equal(t, []string{"s"}, c.Streams())
}

func TestReadAll(t *testing.T) {
	_, db := start(t, Options{})
	mustPut(t, db, "s", "a", "b", "c", "d")
	all := readAll(t, db, esdb.ReadAllOptions{})
	names := func(events []*esdb.RecordedEvent) (out string) {
		for _, e := range events {
			out += string(e.Data)
		}
		return out
	}
	require.Equal(t, "bcd", names(readAll(t, db, esdb.ReadAllOptions{From: all[1].Position})), "inclusive")
	require.Equal(t, "a", names(readAll(t, db, esdb.ReadAllOptions{From: all[1].Position, Direction: esdb.Backwards})), "exclusive")
	require.Equal(t, "dcba", names(readAll(t, db, esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards})))
	for from, want := range map[esdb.StreamPosition]string{esdb.End{}: "[d c b a]", esdb.Revision(1): "[b a]", esdb.Start{}: "[a]"} {
		got, err := read(t, db, "s", esdb.ReadStreamOptions{From: from, Direction: esdb.Backwards})
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprint(got))
	}
	got, err := read(t, db, "s", esdb.ReadStreamOptions{From: esdb.Revision(4)})
	require.NoError(t, err)
	require.Empty(t, got, "behind the end, and no error")
}

func TestSubscribe(t *testing.T) {
	for name, c := range map[string]struct {
		filter *esdb.SubscriptionFilter
		want   string
	}{
		"all":             {nil, "dx1ef"},
		"prefixes":        {&esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"s", "nothing"}}, "def"},
		"names by regex":  {&esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: "^o"}, "x1"},
		"types by prefix": {&esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: []string{"Sa"}}, "dx1ef"},
		"types, no match": {&esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: "^Sang"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, db := start(t, Options{})
			mustPut(t, db, "s", "a", "b", "c", "d")
			mustPut(t, db, "other", "x", "1")
			from := readAll(t, db, esdb.ReadAllOptions{})[2].Position
			sub, err := db.SubscribeToAll(t.Context(), esdb.SubscribeToAllOptions{From: from, Filter: c.filter, MaxSearchWindow: 2, CheckpointInterval: 2})
			require.NoError(t, err)
			defer sub.Close()
			got, caughtUp, checkpoints := "", 0, 0
			for got != c.want || caughtUp == 0 || c.filter != nil && checkpoints == 0 {
				m := sub.Recv()
				require.Nil(t, m.SubscriptionDropped)
				switch {
				case m.EventAppeared != nil:
					got += string(m.EventAppeared.Event.Data)
				case m.CheckPointReached != nil:
					checkpoints++
				case m.CaughtUp != nil:
					caughtUp++
					mustPut(t, db, "s", "e", "f")
				}
			}
			require.Equal(t, 1, caughtUp)
			if c.filter == nil {
				require.Zero(t, checkpoints)
			}
		})
	}
}

func TestSoftDelete(t *testing.T) {
	_, db := start(t, Options{})
	_, err := read(t, db, "s", esdb.ReadStreamOptions{})
	require.Equal(t, esdb.ErrorCodeResourceNotFound, code(t, err))
	mustPut(t, db, "s", "a", "b")
	_, err = db.DeleteStream(t.Context(), "s", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Revision(7)})
	require.Error(t, err)
	_, err = db.DeleteStream(t.Context(), "s", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Revision(1)})
	require.NoError(t, err)
	_, err = read(t, db, "s", esdb.ReadStreamOptions{})
	require.Equal(t, esdb.ErrorCodeResourceNotFound, code(t, err))
	meta, err := db.GetStreamMetadata(t.Context(), "s", esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards})
	require.NoError(t, err)
	require.Equal(t, uint64(1)<<63, *meta.TruncateBefore(), "2^63-1, as a JSON number read as a float")
	r, err := put(t, db, "s", esdb.NoStream{}, "c")
	require.NoError(t, err, "it looks new")
	require.Equal(t, uint64(2), r.NextExpectedVersion, "it goes on")
	got, err := read(t, db, "s", esdb.ReadStreamOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, got)
	var seen string
	for _, e := range readAll(t, db, esdb.ReadAllOptions{}) {
		if e.StreamID == "s" {
			seen += string(e.Data)
		}
	}
	require.Equal(t, "abc", seen, "$all shows what was hidden")
}

func TestTombstone(t *testing.T) {
	_, db := start(t, Options{})
	mustPut(t, db, "s", "a")
	_, err := db.TombstoneStream(t.Context(), "s", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.StreamExists{}})
	require.NoError(t, err)
	_, err = read(t, db, "s", esdb.ReadStreamOptions{})
	require.Equal(t, esdb.ErrorCodeStreamDeleted, code(t, err))
	_, err = put(t, db, "s", esdb.Any{}, "b")
	require.Equal(t, esdb.ErrorCodeStreamDeleted, code(t, err))
	_, err = db.TombstoneStream(t.Context(), "s", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.StreamExists{}})
	require.Equal(t, esdb.ErrorCodeStreamDeleted, code(t, errors.Unwrap(err)))
	all := readAll(t, db, esdb.ReadAllOptions{})
	require.Equal(t, typeStreamDeleted, all[len(all)-1].EventType)
}

func TestMetadataHides(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*esdb.StreamMetadata)
		want []string
	}{
		"$tb":       {func(m *esdb.StreamMetadata) { m.SetTruncateBefore(2) }, []string{"c", "d"}},
		"$maxCount": {func(m *esdb.StreamMetadata) { m.SetMaxCount(1) }, []string{"d"}},
		"$maxAge":   {func(m *esdb.StreamMetadata) { m.SetMaxAge(time.Hour) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, db := start(t, Options{})
			mustPut(t, db, "s", "a", "b", "c", "d")
			var m esdb.StreamMetadata
			c.set(&m)
			_, err := db.SetStreamMetadata(t.Context(), "s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, m)
			require.NoError(t, err)
			cluster.log.mu.Lock()
			cluster.log.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
			cluster.log.mu.Unlock()
			got, err := read(t, db, "s", esdb.ReadStreamOptions{})
			if c.want == nil {
				require.Equal(t, esdb.ErrorCodeResourceNotFound, code(t, err))
			} else {
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			}
			require.Len(t, readAll(t, db, esdb.ReadAllOptions{}), 5, "four, and the metadata")
			cluster.Scavenge()
			require.Len(t, readAll(t, db, esdb.ReadAllOptions{}), 1+len(c.want))
		})
	}
}
