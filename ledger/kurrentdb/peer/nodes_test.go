package peer

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

func TestRedirect(t *testing.T) {
	c, err := Start(Options{Nodes: 3})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	follower := connect(t, c.URL("nodePreference=follower"))
	mustPut(t, follower, "s", "a") // passed on: the client doesn't send the header by itself
	leader := connect(t, "esdb://"+c.Node(1).Address()+"?tls=false")
	r, err := leader.ReadStream(withLeader(t.Context()), "s", esdb.ReadStreamOptions{}, 10)
	require.NoError(t, err)
	_, err = r.Recv()
	require.Equal(t, esdb.ErrorCodeNotLeader, code(t, err))
	r.Close()
	r, err = leader.ReadStream(withLeader(t.Context()), "s", esdb.ReadStreamOptions{}, 10) // it went there
	require.NoError(t, err)
	_, err = r.Recv()
	require.NoError(t, err)
	r.Close()

	c.MoveLeader(2)
	c.Node(0).Stop()
	again := connect(t, c.URL()) // through gossip
	mustPut(t, again, "s", "b")
	c.Node(2).Isolate()
	_, err = put(t, connect(t, "esdb://"+c.Node(2).Address()+"?tls=false"), "s", esdb.Any{}, "c")
	require.Equal(t, esdb.ErrorAborted, code(t, err), "it can commit nothing alone")
}

func TestLag(t *testing.T) {
	c, err := Start(Options{Nodes: 2})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	leader, follower := connect(t, "esdb://"+c.Node(0).Address()+"?tls=false"), connect(t, "esdb://"+c.Node(1).Address()+"?tls=false")
	mustPut(t, leader, "s", "a")
	c.Node(1).Hold()
	mustPut(t, leader, "s", "b")
	got, err := read(t, follower, "s", esdb.ReadStreamOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, got)
	c.Node(1).Release()
	got, err = read(t, follower, "s", esdb.ReadStreamOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, got)
}

func TestWriteFaults(t *testing.T) {
	stored := map[Fault]bool{TimeoutDone: true, SilentDone: true, CutAfter: true}
	for _, f := range Faults() {
		t.Run(f.String(), func(t *testing.T) {
			c, db := start(t, Options{})
			c.Script(func(n int, _ Write) Fault {
				if n == 0 {
					return f
				}
				return NoFault
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := db.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, event("a"))
			require.Error(t, err)
			require.Equal(t, stored[f], c.Len() == 1)
		})
	}
}

func TestOldPositions(t *testing.T) {
	_, db := start(t, Options{OldPositions: true})
	mustPut(t, db, "s", "a")
	r, err := db.ReadStream(t.Context(), "s", esdb.ReadStreamOptions{}, 1)
	require.NoError(t, err)
	defer r.Close()
	e, err := r.Recv()
	require.NoError(t, err)
	require.Equal(t, uint64(noPosition), e.Event.Position.Commit)
}

// Every test that FIDELITY.md names is there.
func TestFidelity(t *testing.T) {
	page, err := os.ReadFile("FIDELITY.md")
	require.NoError(t, err)
	var code []byte
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		code = append(code, b...)
	}
	named := regexp.MustCompile(`Test[A-Za-z]+`).FindAllString(string(page), -1)
	require.Greater(t, len(named), 25)
	for _, name := range named {
		require.Contains(t, string(code), "func "+name+"(t *testing.T)")
	}
}
