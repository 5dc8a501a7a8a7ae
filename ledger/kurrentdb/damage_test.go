package kurrentdb

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/kurrentdb/peer"
)

// raw opens the official client, as another program would.
func raw(t testing.TB, c *peer.Cluster) *esdb.Client {
	t.Helper()
	config, err := esdb.ParseConnectionString(c.URL())
	require.NoError(t, err)
	config.Logger = esdb.NoopLogging()
	db, err := esdb.NewClient(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// audited runs the byte part of an audit over an exhibit, and what the backend checks of itself.
func audited(t *testing.T, s *Store) error {
	t.Helper()
	x := s.Exhibit()
	size, err := x.Size(t.Context())
	require.NoError(t, err)
	a := ledger.NewAuditor()
	for e, err := range x.Stored(t.Context(), ledger.Index(size)) {
		if err != nil {
			return err
		}
		if err := a.Visit(e, e.Leaf()); err != nil {
			return err
		}
	}
	if a.Size() < size {
		return fmt.Errorf("%d events of %d", a.Size(), size)
	}
	return x.CheckStorage(t.Context())
}

const events = "baildock:main:e:"

// damages are what can happen to a ledger of six events outside of it: stream a has indexes 0, 1, 3
// and 5, stream b has 2 and 4.
var damages = []struct {
	name  string
	do    func(t *testing.T, c *peer.Cluster, db *esdb.Client)
	names string       // in the store's error
	index ledger.Index // of the finding
	field string       // "storage" for a *ledger.DamagedError
	hid   bool         // nothing is lost yet
	fresh bool         // a store without a cache can't know
}{
	{"soft delete", func(t *testing.T, c *peer.Cluster, db *esdb.Client) {
		_, err := db.DeleteStream(t.Context(), events+"a", esdb.DeleteStreamOptions{ExpectedRevision: esdb.StreamExists{}})
		require.NoError(t, err)
	}, "its metadata hides events: $tb", 0, "storage", true, false},
	{"soft delete, written to again", func(t *testing.T, c *peer.Cluster, db *esdb.Client) {
		_, err := db.DeleteStream(t.Context(), events+"a", esdb.DeleteStreamOptions{ExpectedRevision: esdb.StreamExists{}})
		require.NoError(t, err)
		_, err = db.AppendToStream(t.Context(), events+"a", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}},
			esdb.EventData{EventID: uuid.New(), EventType: "Said", Data: []byte("x")})
		require.NoError(t, err)
	}, "", 6, "", false, false}, // what hides and what is foreign are both there: one is met first
	{"soft delete, scavenged", func(t *testing.T, c *peer.Cluster, db *esdb.Client) {
		_, err := db.DeleteStream(t.Context(), events+"b", esdb.DeleteStreamOptions{ExpectedRevision: esdb.StreamExists{}})
		require.NoError(t, err)
		c.Scavenge()
	}, "its metadata hides events", 2, "", false, false},
	{"tombstone", func(t *testing.T, c *peer.Cluster, db *esdb.Client) {
		_, err := db.TombstoneStream(t.Context(), events+"a", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.StreamExists{}})
		require.NoError(t, err)
	}, "deleted for ever (tombstone)", 6, "event", false, false},
	{"tombstone, scavenged", func(t *testing.T, c *peer.Cluster, db *esdb.Client) {
		_, err := db.TombstoneStream(t.Context(), events+"a", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.StreamExists{}})
		require.NoError(t, err)
		c.Scavenge()
	}, "the cluster no longer has index 5", 0, "", false, false},
	{"$maxCount", func(_ *testing.T, c *peer.Cluster, _ *esdb.Client) {
		c.Inject("$$"+events+"a", "$metadata", []byte(`{"$maxCount":1}`))
	}, "$maxCount is 1", 0, "storage", true, false},
	{"$maxAge", func(_ *testing.T, c *peer.Cluster, _ *esdb.Client) {
		c.Inject("$$"+events+"a", "$metadata", []byte(`{"$maxAge":1000}`))
	}, "$maxAge is 1000", 0, "storage", true, false},
	{"$tb", func(_ *testing.T, c *peer.Cluster, _ *esdb.Client) {
		c.Inject("$$"+events+"b", "$metadata", []byte(`{"$tb":1}`))
	}, "$tb is 1", 0, "storage", true, false},
	{"metadata of the checkpoints", func(_ *testing.T, c *peer.Cluster, _ *esdb.Client) {
		c.Inject("$$baildock:main:checkpoints", "$metadata", []byte(`{"$maxCount":1}`))
	}, "stream baildock:main:checkpoints: its metadata hides events", 0, "storage", true, false},
	{"a foreign event", func(_ *testing.T, c *peer.Cluster, _ *esdb.Client) {
		c.Inject(events+"b", "Foreign", []byte("hello"))
	}, "isn't one of the ledger's", 6, "event", false, false},
	{"an event of another stream", func(t *testing.T, c *peer.Cluster, db *esdb.Client) {
		e, leaf := ledger.Chain("a", ledger.EmptyHead, said("x"))
		c.Inject(events+"c", e[0].Type, ledger.MarshalLeaf(e[0]))
		_ = leaf
	}, "says it belongs to stream a", 6, "event", false, false},
	{"a forged event with a wrong predecessor", func(t *testing.T, c *peer.Cluster, db *esdb.Client) {
		e, leaf := ledger.Chain("b", ledger.Head{Version: 1, Leaf: ledger.Hash{7}}, said("x"))
		_, err := db.AppendToStream(t.Context(), events+"b", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Revision(1)},
			esdb.EventData{EventID: idOf(leaf[0]), EventType: e[0].Type, Data: ledger.MarshalLeaf(e[0])})
		require.NoError(t, err)
	}, "doesn't name its predecessor", 6, "prev", false, false},
	{"a stream's name that none can have", func(_ *testing.T, c *peer.Cluster, _ *esdb.Client) {
		c.Inject(events+"Not/One", "Said", []byte("x"))
	}, "", 6, "event", false, false},
	{"redaction", func(t *testing.T, c *peer.Cluster, _ *esdb.Client) {
		require.NoError(t, c.Redact(events+"a", 1, make([]byte, 40)))
	}, "", 1, "event", false, false},
	{"redaction with another event", func(t *testing.T, c *peer.Cluster, _ *esdb.Client) {
		e, _ := ledger.Chain("a", ledger.EmptyHead, said("x"), said("y"))
		require.NoError(t, c.Redact(events+"a", 1, ledger.MarshalLeaf(e[1])))
	}, "", 1, "event", false, false},
	{"a gap", func(t *testing.T, c *peer.Cluster, _ *esdb.Client) {
		require.NoError(t, c.Lose(events+"b", 0))
	}, "", 2, "", false, false},
	{"the last event lost", func(t *testing.T, c *peer.Cluster, _ *esdb.Client) {
		require.NoError(t, c.Lose(events+"a", 3))
	}, "", 5, "log", false, true},
	{"a shorter log", func(_ *testing.T, c *peer.Cluster, _ *esdb.Client) {
		c.Truncate(2)
	}, "its log ends before that", 4, "log", false, true},
	{"a shorter log, gone on", func(t *testing.T, c *peer.Cluster, _ *esdb.Client) {
		c.Truncate(2)
		other := open(t, c.URL(), quick) // a machine that knew nothing of it
		mustAppend(t, other, "b", 0, "another five")
		mustAppend(t, other, "a", 2, "another six")
	}, "the log was restored from a backup, cut or replaced", 4, "leaf hash", false, true},
}

// req R5, req R3: each is found and named, by a store that was open, by one that opens with its
// cache, and by one that knows nothing, as far as it can.
func TestDamage(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, peer.Options{})
			opts := Options{CallTimeout: 2 * time.Second, Patience: 3 * time.Second, Cache: filepath.Join(t.TempDir(), "cache.db")}
			s := open(t, c.URL(), opts)
			require.NoError(t, s.Protect(t.Context()))
			mustAppend(t, s, "a", ledger.NoStream, "one", "two")
			mustAppend(t, s, "b", ledger.NoStream, "three")
			mustAppend(t, s, "a", 1, "four")
			mustAppend(t, s, "b", 0, "five")
			mustAppend(t, s, "a", 2, "six")
			require.NoError(t, audited(t, s))
			require.NoError(t, s.Close())
			d.do(t, c, raw(t, c))

			again := open(t, c.URL(), opts)
			requireFinding(t, audited(t, again), d.index, d.field)
			if d.names != "" {
				_, err := again.Append(t.Context(), "new", ledger.NoStream, said("x"))
				var damaged *ledger.DamagedError
				require.ErrorAs(t, err, &damaged)
				require.ErrorContains(t, err, d.names)
				require.NotErrorIs(t, err, ledger.ErrUnknownOutcome)
			}
			if d.fresh {
				return
			}
			fresh := opts
			fresh.Cache = ""
			requireFinding(t, audited(t, open(t, c.URL(), fresh)), d.index, d.field)
		})
	}
}

func requireFinding(t *testing.T, err error, index ledger.Index, field string) {
	t.Helper()
	var damaged *ledger.DamagedError
	if field == "storage" {
		require.ErrorAs(t, err, &damaged)
		return
	}
	var f *ledger.Finding
	if errors.As(err, &damaged) && field == "" {
		return // named by what it is, where the place depends on what was seen before
	}
	require.ErrorAs(t, err, &f)
	if field != "" {
		require.Equal(t, field, f.Field, "%v", f)
		require.Equal(t, index, f.Index, "%v", f)
	}
}

// A store that is open notices what hides events at once, and goes on when it is taken back.
func TestHiddenWhileOpen(t *testing.T) {
	c := cluster(t, peer.Options{})
	s := open(t, c.URL(), quick)
	mustAppend(t, s, "a", ledger.NoStream, "one", "two")
	c.Inject("$$"+events+"a", "$metadata", []byte(`{"$tb":1}`))
	require.Eventually(t, func() bool { return s.follow.damage() != nil }, 10*time.Second, time.Millisecond)
	for _, err := range s.ReadAll(t.Context(), 0) {
		require.ErrorContains(t, err, "its metadata hides events")
	}
	c.Inject("$$"+events+"a", "$metadata", []byte(`{"own":"data"}`))
	require.Eventually(t, func() bool { return s.follow.damage() == nil }, 10*time.Second, time.Millisecond)
	mustAppend(t, s, "a", 1, "three")
	require.Equal(t, uint64(3), sound(t, s).Size())
}

// Access lists: what an init sets, an audit checks; nothing else in them is touched.
func TestProtect(t *testing.T) {
	serve, ca := peer.Certificate(t)
	c := cluster(t, peer.Options{TLS: serve, Users: map[string]peer.User{"admin": {Password: "a", Admin: true}, "user": {Password: "u"}}})
	url := func(who string) string {
		return "esdb://" + who + "@" + c.Node(0).Address() + "?tls=true&tlsCAFile=" + ca
	}
	admin := open(t, url("admin:a"), quick)
	mustAppend(t, admin, "a", ledger.NoStream, "one")
	require.ErrorContains(t, audited(t, admin), "lets every user delete streams")
	c.Inject("$settings", "update-default-acl", []byte(`{"$userStreamAcl":{"$r":"ouro","$w":["ouro","$all"],"$d":"$all","$mr":"$all","$mw":["ouro"]},"other":1}`))
	require.ErrorContains(t, audited(t, admin), "$d of $userStreamAcl")
	require.NoError(t, admin.Protect(t.Context()))
	require.NoError(t, admin.Protect(t.Context()), "again")
	require.NoError(t, audited(t, admin))
	now, err := admin.readSettings(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]any{"$r": "ouro", "$w": []any{"ouro", "$all"}, "$d": "$admins", "$mr": "$all", "$mw": []any{"ouro"}}, now.all["$userStreamAcl"])
	require.EqualValues(t, 1, now.all["other"])

	_, err = Open(t.Context(), url("user:u"), quick)
	require.ErrorContains(t, err, "needs to read $all")
	_, err = Open(t.Context(), url("user:wrong"), Options{CallTimeout: time.Second, Patience: time.Second})
	require.ErrorContains(t, err, "doesn't know this user")
	require.NotContains(t, err.Error(), "wrong")
	require.ErrorContains(t, admin.Forget(t.Context(), ledger.BlobKey{}), "absent")
}
