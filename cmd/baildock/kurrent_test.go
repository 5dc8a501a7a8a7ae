package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger/kurrentdb/peer"
)

// clusterEnv is a connection string without ledger=: the program under test then keeps each home's
// ledger there, under a name of the home's own, where nothing else is said.
const clusterEnv = "BAILDOCK_TEST_CLUSTER"

// clusterKey is where a script's cluster lies.
type clusterKey struct{}

func ledgerOfHome() {
	cluster := os.Getenv(clusterEnv)
	if cluster == "" || os.Getenv("BAILDOCK_LEDGER") != "" {
		return
	}
	home := os.Getenv("BAILDOCK_HOME")
	for i, a := range os.Args {
		if v, ok := strings.CutPrefix(a, "--home="); ok {
			home = v
		}
		if a == "--home" && i+1 < len(os.Args) {
			home = os.Args[i+1]
		}
	}
	home, err := filepath.Abs(home)
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("BAILDOCK_LEDGER", fmt.Sprintf("%s&ledger=%x", cluster, sha256.Sum256([]byte(home)))[:len(cluster)+len("&ledger=")+16]); err != nil {
		panic(err)
	}
}

// onCluster gives every script a cluster of three nodes.
func onCluster(e *testscript.Env) error {
	c, err := peer.Start(peer.Options{Nodes: 3})
	if err != nil {
		return err
	}
	e.Defer(c.Close)
	e.Values[clusterKey{}] = c
	e.Setenv(clusterEnv, c.URL())
	e.Setenv("CLUSTER", c.URL())
	return nil
}

// peerOf does something to a script's cluster: peer WHAT [STREAM] [NUMBER]. Streams are those of the
// ledger "main".
func peerOf(ts *testscript.TestScript, neg bool, args []string) {
	c, ok := ts.Value(clusterKey{}).(*peer.Cluster)
	if neg || !ok || len(args) == 0 {
		ts.Fatalf("usage: peer WHAT [STREAM] [NUMBER], on a cluster")
	}
	stream, number := "", 0
	for _, a := range args[1:] {
		if n, err := strconv.Atoi(a); err == nil {
			number = n
		} else {
			stream = "baildock:main:e:" + a
		}
	}
	switch args[0] {
	case "redact":
		ts.Check(c.Redact(stream, uint64(number), []byte("nothing to see here")))
	case "lose":
		ts.Check(c.Lose(stream, uint64(number)))
	case "inject":
		c.Inject(stream, "Foreign", []byte("from another program"))
	case "hide":
		c.Inject("$$"+stream, "$metadata", fmt.Appendf(nil, `{"$tb":%d}`, number))
	case "show":
		c.Inject("$$"+stream, "$metadata", []byte(`{}`))
	case "cut":
		c.Truncate(number)
	case "settings":
		c.Inject("$settings", "update-default-acl", []byte(`{}`))
	case "lead":
		c.MoveLeader(number)
	case "trouble":
		trouble(c)
	case "peace":
		c.Script(nil)
		stop, ok := troubles.LoadAndDelete(c)
		if !ok {
			ts.Fatalf("there is no trouble")
		}
		stop.(func())()
	case "stop":
		c.Node(number).Stop()
	case "start":
		ts.Check(c.Node(number).Start())
	default:
		ts.Fatalf("peer can't %s", args[0])
	}
}

// troubles are clusters in trouble, with what ends it.
var troubles sync.Map

// trouble lets every eleventh write fail in one way or another, and every half second the leader
// move, a node die and come back, and connections break.
func trouble(c *peer.Cluster) {
	faults := peer.Faults()
	c.Script(func(n int, _ peer.Write) peer.Fault {
		f := faults[n/11%len(faults)]
		if n%11 == 10 && f != peer.SilentLost && f != peer.SilentDone { // those cost a deadline each
			return f
		}
		return peer.NoFault
	})
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for leader := 0; ; leader = (leader + 1) % 3 {
			next := (leader + 1) % 3
			c.MoveLeader(next)
			c.Node(leader).Stop()
			if err := c.Node(leader).Start(); err != nil {
				panic(err)
			}
			c.Node(next).Cut()
			select {
			case <-over:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	troubles.Store(c, func() { close(over); <-ended })
}

// scriptsOf copies scripts of a directory into one of their own.
func scriptsOf(t *testing.T, dir string, names ...string) string {
	t.Helper()
	out := t.TempDir()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name+".txtar"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(out, name+".txtar"), b, 0o600))
	}
	return out
}

// req R3: what a home does on a cluster only, and how a ledger moves between a file and a cluster.
func TestClusterScripts(t *testing.T) {
	scripts(t, filepath.Join("testdata", "cluster"), 3, onCluster, "append", "audit", "init", "ledger-copy")
}

// req R3: the scripts of the embedded backend, unchanged, with every home's ledger on a cluster.
func TestScriptsOnCluster(t *testing.T) {
	names := []string{"append", "bundle", "change", "prove", "query", "recover", "replay", "witness"}
	scripts(t, scriptsOf(t, "testdata", names...), len(names), onCluster)
}
