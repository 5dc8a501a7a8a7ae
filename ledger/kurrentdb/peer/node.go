package peer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// never is a position no log reaches.
const never = math.MaxUint64

// Node is one server of a cluster.
type Node struct {
	streams.UnimplementedStreamsServer

	Number  int
	cluster *Cluster

	mu       sync.Mutex
	address  string
	server   *grpc.Server
	listener *cutListener
	done     chan struct{}
	held     uint64 // a follower sees the log up to here; never: all of it
	alone    bool   // cut off from the other nodes
}

// Start makes the node listen, on its old port when it had one.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server != nil {
		return nil
	}
	address := n.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	for tries := 0; errors.Is(err, syscall.EADDRINUSE) && tries < 500; tries++ {
		time.Sleep(10 * time.Millisecond) // a connection from somewhere has the port for its own end just now
		l, err = net.Listen("tcp", address)
	}
	if err != nil {
		return fmt.Errorf("start node %d: %w", n.Number, err)
	}
	n.address = l.Addr().String()
	n.listener = &cutListener{Listener: l, conns: map[net.Conn]bool{}}
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(17 << 20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(unaryTrailers), grpc.StreamInterceptor(streamTrailers),
	}
	if n.cluster.opts.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(n.cluster.opts.TLS)))
	}
	n.server, n.done = grpc.NewServer(opts...), make(chan struct{})
	streams.RegisterStreamsServer(n.server, n)
	gossip.RegisterGossipServer(n.server, gossiper{node: n})
	serverfeatures.RegisterServerFeaturesServer(n.server, features{node: n})
	server, listener := n.server, n.listener
	go func() { _ = server.Serve(listener) }() // ends when the listener is closed
	return nil
}

// Stop ends the node at once, as a crash does: connections are cut. Start brings it back.
func (n *Node) Stop() {
	n.mu.Lock()
	server, done := n.server, n.done
	n.server = nil
	n.mu.Unlock()
	if server == nil {
		return
	}
	close(done)
	n.Cut()
	server.Stop()
}

// Cut cuts every connection of the node.
func (n *Node) Cut() {
	n.mu.Lock()
	l := n.listener
	n.mu.Unlock()
	l.cut()
}

// Hold keeps a follower from seeing what is appended from now on. Release lets it catch up.
func (n *Node) Hold() {
	n.cluster.log.mu.Lock()
	defer n.cluster.log.mu.Unlock()
	n.held = n.cluster.log.next
}

func (n *Node) Release() {
	n.cluster.log.mu.Lock()
	defer n.cluster.log.mu.Unlock()
	n.held = never
	n.cluster.log.tell()
}

// Isolate cuts a node off from the others, while clients still reach it: it can commit nothing and
// its gossip says that the others are dead. Rejoin ends it.
func (n *Node) Isolate() { n.mu.Lock(); n.alone = true; n.mu.Unlock() }

// Rejoin ends Isolate.
func (n *Node) Rejoin() { n.mu.Lock(); n.alone = false; n.mu.Unlock() }

func (n *Node) isolated() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.alone }

func (n *Node) alive() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.server != nil }

func (n *Node) stopped() <-chan struct{} { n.mu.Lock(); defer n.mu.Unlock(); return n.done }

// end is the position before which the node sees the log. The caller holds the log's lock.
func (n *Node) end() uint64 { return min(n.held, n.cluster.log.next) }

func (n *Node) endpoint() (string, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, err := net.ResolveTCPAddr("tcp", n.address)
	if err != nil {
		return n.address, 0
	}
	return a.IP.String(), a.Port
}

// Address is where the node listens.
func (n *Node) Address() string { n.mu.Lock(); defer n.mu.Unlock(); return n.address }

// admit checks who calls.
func (n *Node) admit(ctx context.Context) error {
	_, err := n.caller(ctx)
	return err
}

func (n *Node) caller(ctx context.Context) (User, error) {
	if n.cluster.opts.Users == nil {
		return User{Admin: true}, nil // an insecure server asks nobody
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get("authorization") {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(v, "Basic "))
		if err != nil {
			continue
		}
		name, password, _ := strings.Cut(string(raw), ":")
		if u, ok := n.cluster.opts.Users[name]; ok && u.Password == password {
			return u, nil
		}
	}
	return User{}, errUnauthenticated()
}

// needLeader sends callers that asked for the leader there.
func (n *Node) needLeader(ctx context.Context) error {
	leader := n.cluster.Leader()
	if leader == n || !wantsLeader(ctx) {
		return nil
	}
	if n.isolated() || !leader.alive() {
		return errNoLeader()
	}
	host, port := leader.endpoint()
	return errNotLeader(host, port)
}

// cutListener remembers its connections, to cut them.
type cutListener struct {
	net.Listener
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (l *cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	return &cutConn{Conn: c, l: l}, nil
}

func (l *cutListener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // a reset, not an end
		}
		_ = c.Close() // it is meant to break
		delete(l.conns, c)
	}
}

type cutConn struct {
	net.Conn
	l *cutListener
}

func (c *cutConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c.Conn)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// Errors carry their facts in trailers.
func unaryTrailers(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	resp, err := next(ctx, req)
	var r *refusal
	if errors.As(err, &r) {
		if err := grpc.SetTrailer(ctx, r.trailer); err != nil {
			return nil, err
		}
	}
	return resp, err
}

func streamTrailers(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	err := next(srv, ss)
	var r *refusal
	if errors.As(err, &r) {
		ss.SetTrailer(r.trailer)
	}
	return err
}

type gossiper struct {
	gossip.UnimplementedGossipServer
	node *Node
}

func (g gossiper) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	info := &gossip.ClusterInfo{}
	alone := g.node.isolated()
	for i, m := range g.node.cluster.members() {
		state := gossip.MemberInfo_Follower
		if m.leader {
			state = gossip.MemberInfo_Leader
		}
		alive := m.alive
		if alone && i != g.node.Number {
			alive = false
		}
		if alone && i == g.node.Number {
			state = gossip.MemberInfo_Unknown
		}
		if n := g.node.cluster.nodes[i]; !alone && n.isolated() {
			alive = false
		}
		info.Members = append(info.Members, &gossip.MemberInfo{
			State: state, IsAlive: alive, HttpEndPoint: &gossip.EndPoint{Address: m.host, Port: uint32(m.port)},
		})
	}
	return info, nil
}

type features struct {
	serverfeatures.UnimplementedServerFeaturesServer
	node *Node
}

func (f features) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	return &serverfeatures.SupportedMethods{EventStoreServerVersion: f.node.cluster.opts.Version}, nil
}
