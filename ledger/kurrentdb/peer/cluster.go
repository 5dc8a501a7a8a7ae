package peer

import (
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
)

// Options describe a cluster. The zero value is one node without TLS and users, with the limits a
// server has by default.
type Options struct {
	Nodes     int    // 1 when 0; node 0 leads at first
	MaxAppend int    // bytes of one append; 1 MiB when 0
	Version   string // what the servers say; 24.10.4 when empty

	TLS   *tls.Config     // serve TLS with this
	Users map[string]User // by name; nil asks nobody who they are, as an insecure server does

	OldPositions bool // events read from a stream have no position, as on servers before 2022
	NoCaughtUp   bool // subscriptions don't say when they caught up, as on servers before 23.10

	Address string // where node 0 listens; a free port of the loopback when empty
}

// User is somebody who may connect.
type User struct {
	Password string
	Admin    bool // in $admins
}

// Cluster is some nodes with one log, in memory.
type Cluster struct {
	opts  Options
	log   *log
	nodes []*Node

	mu      sync.Mutex
	leader  int
	writes  int
	script  func(n int, w Write) Fault
	cutAt   int // cut a read after this many events; -1: don't
	cutLeft int // this many more times
	refuse  int // cut this many more reads at once
}

// Start starts a cluster on the loopback. Close ends it.
func Start(o Options) (*Cluster, error) {
	if o.Nodes <= 0 {
		o.Nodes = 1
	}
	if o.MaxAppend <= 0 {
		o.MaxAppend = 1 << 20
	}
	if o.Version == "" {
		o.Version = "24.10.4"
	}
	c := &Cluster{opts: o, log: newLog(), cutAt: -1}
	for i := range o.Nodes {
		n := &Node{cluster: c, Number: i, held: never}
		c.nodes = append(c.nodes, n)
		if i == 0 {
			n.address = o.Address
		}
		if err := n.Start(); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Close stops every node.
func (c *Cluster) Close() {
	for _, n := range c.nodes {
		n.Stop()
	}
}

// Node returns one of the nodes.
func (c *Cluster) Node(i int) *Node { return c.nodes[i] }

// URL is the connection string: one node, or all of them as gossip seeds. Settings are added to
// it, as key=value.
func (c *Cluster) URL(settings ...string) string {
	var hosts []string
	for _, n := range c.nodes {
		hosts = append(hosts, n.address)
	}
	if c.opts.TLS == nil {
		settings = append([]string{"tls=false"}, settings...)
	}
	url := "esdb://" + strings.Join(hosts, ",")
	if len(settings) > 0 {
		url += "?" + strings.Join(settings, "&")
	}
	return url
}

// Leader returns the node that leads.
func (c *Cluster) Leader() *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[c.leader]
}

// MoveLeader makes another node the leader, as an election does. What it hasn't replicated yet it
// gets first: a leader holds everything that was acknowledged.
func (c *Cluster) MoveLeader(to int) {
	c.nodes[to].Release()
	c.mu.Lock()
	c.leader = to
	c.mu.Unlock()
}

// Write is a write that a script may disturb.
type Write struct {
	Node   int
	Stream string
	Events int // 0: a deletion
}

// Fault is what happens to a write.
type Fault int

const (
	NoFault     Fault = iota
	NotReady          // refused, nothing stored: Unavailable
	TimeoutLost       // nothing stored, but the reply can't be told from TimeoutDone: Aborted
	TimeoutDone       // stored, then the commit is said to have timed out: Aborted
	SilentLost        // nothing stored and no reply
	SilentDone        // stored and no reply
	CutBefore         // the connection is cut, nothing stored
	CutAfter          // stored, then the connection is cut
	faults
)

// Faults are all of them, NoFault apart.
func Faults() []Fault {
	var out []Fault
	for f := NoFault + 1; f < faults; f++ {
		out = append(out, f)
	}
	return out
}

func (f Fault) String() string {
	return [...]string{"no fault", "not ready", "timed out, lost", "timed out, done", "silent, lost", "silent, done", "cut before", "cut after"}[f]
}

// Script decides the fault of every write from now on, counted from 0. nil ends it.
func (c *Cluster) Script(script func(n int, w Write) Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script, c.writes = script, 0
}

// Writes returns how many writes came since the last Script.
func (c *Cluster) Writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

func (c *Cluster) nextFault(w Write) Fault {
	c.mu.Lock()
	n, script := c.writes, c.script
	c.writes++
	c.mu.Unlock()
	if script == nil {
		return NoFault
	}
	return script(n, w)
}

// CutReads cuts the connection of the next reads and subscriptions: before anything is sent, for
// `refused` of them, and then `times` more after `after` events.
func (c *Cluster) CutReads(refused, times, after int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse, c.cutLeft, c.cutAt = refused, times, after
}

func (c *Cluster) readFault(int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse > 0 {
		c.refuse--
		return true
	}
	return false
}

func (c *Cluster) cutRead(sent int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cutLeft > 0 && sent == c.cutAt {
		c.cutLeft--
		return true
	}
	return false
}

// members is the cluster as gossip sees it.
func (c *Cluster) members() []member {
	c.mu.Lock()
	leader := c.leader
	c.mu.Unlock()
	var out []member
	for i, n := range c.nodes {
		host, port := n.endpoint()
		out = append(out, member{host, port, i == leader, n.alive()})
	}
	return out
}

type member struct {
	host          string
	port          int
	leader, alive bool
}

func (m member) String() string { return fmt.Sprintf("%s:%d", m.host, m.port) }
