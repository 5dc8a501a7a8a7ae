package fakedaemon

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// netw is one network.
type netw struct {
	reply  networkReply
	subnet int // third byte of 172.x
}

func (d *Daemon) newNetwork(name, driver string) *netw {
	n := &netw{}
	r := &n.reply
	r.Name, r.Id, r.Created, r.Scope, r.Driver = name, d.newID(), stamp(d.now()), "local", driver
	r.IPAM.Driver, r.IPAM.Config = "default", []map[string]string{}
	r.Containers, r.Options, r.Labels = map[string]networkMember{}, map[string]string{}, map[string]string{}
	if driver == "bridge" {
		n.subnet = 17
		r.IPAM.Config = []map[string]string{{"Subnet": "172.17.0.0/16"}}
		r.Options = map[string]string{
			"com.docker.network.bridge.default_bridge": "true", "com.docker.network.bridge.enable_icc": "true",
			"com.docker.network.bridge.enable_ip_masquerade": "true", "com.docker.network.bridge.host_binding_ipv4": "0.0.0.0",
			"com.docker.network.bridge.name": "docker0", "com.docker.network.driver.mtu": "1500",
		}
	}
	return n
}

func (d *Daemon) findNetwork(ref string) (*netw, bool) {
	for _, n := range d.networks {
		if n.reply.Id == ref || n.reply.Name == ref {
			return n, true
		}
	}
	for _, n := range d.networks {
		if len(ref) >= 12 && strings.HasPrefix(n.reply.Id, ref) {
			return n, true
		}
	}
	return nil, false
}

func noNetwork(ref string) reply { return refusal(http.StatusNotFound, "network %s not found", ref) }

// join writes down the networks that a created container asks for, before it is on any.
func (c *container) join(q createRequest) {
	switch mode := c.host.NetworkMode; {
	case mode == "default":
		c.endpoints["bridge"] = c.d.newEndpoint()
	case strings.HasPrefix(mode, "container:"):
	default:
		c.endpoints[mode] = c.d.newEndpoint()
	}
	if q.NetworkingConfig == nil {
		return
	}
	for name, asked := range q.NetworkingConfig.EndpointsConfig {
		e := c.d.newEndpoint()
		if asked != nil {
			e.Aliases, e.Links, e.IPAMConfig = asked.Aliases, asked.Links, asked.IPAMConfig
		}
		c.endpoints[name] = e
	}
}

func (d *Daemon) newEndpoint() *endpoint {
	e := &endpoint{}
	if d.engine.atLeast(44) {
		e.DNSNames = new([]string)
	}
	if d.engine.atLeast(48) {
		e.GwPriority = new(int)
	}
	return e
}

// plug puts a starting container on its networks.
func (d *Daemon) plug(c *container) *reply {
	for name := range c.endpoints {
		if _, ok := d.findNetwork(name); !ok {
			r := noNetwork(name)
			return &r
		}
	}
	c.sandbox = d.newID()
	for name, e := range c.endpoints {
		n, _ := d.findNetwork(name)
		d.connected(c, n, e)
	}
	return nil
}

func (d *Daemon) connected(c *container, n *netw, e *endpoint) {
	e.NetworkID, e.EndpointID = n.reply.Id, d.newID()
	member := networkMember{Name: c.name, EndpointID: e.EndpointID}
	if n.reply.Driver == "bridge" {
		d.addresses++
		host := d.addresses + 1
		e.Gateway, e.IPAddress, e.IPPrefixLen = fmt.Sprintf("172.%d.0.1", n.subnet), fmt.Sprintf("172.%d.0.%d", n.subnet, host), 16
		e.MacAddress = fmt.Sprintf("02:42:ac:%02x:00:%02x", n.subnet, host)
		member.MacAddress, member.IPv4Address = e.MacAddress, e.IPAddress+"/16"
	}
	n.reply.Containers[c.id] = member
	d.emit(c.w, n.event("connect", c.id))
}

// unplug takes a container that has ended off its networks. It stays on their list.
func (d *Daemon) unplug(c *container) {
	for name, e := range c.endpoints {
		for _, n := range c.w.networks {
			if n.reply.Name == name && e.EndpointID != "" {
				d.leave(c, n, e)
			}
		}
	}
}

func (d *Daemon) leave(c *container, n *netw, e *endpoint) {
	delete(n.reply.Containers, c.id)
	e.EndpointID, e.Gateway, e.IPAddress, e.IPPrefixLen, e.MacAddress = "", "", "", 0, ""
	d.emit(c.w, n.event("disconnect", c.id))
}

func (d *Daemon) networkList(x *exchange) reply {
	f, no := x.filters()
	if no != nil {
		return *no
	}
	out := []networkReply{}
	for _, n := range d.networks {
		if f.labels(n.reply.Labels) && f.any("name", func(v string) bool { return strings.Contains(n.reply.Name, v) }) &&
			f.any("id", func(v string) bool { return strings.HasPrefix(n.reply.Id, v) }) &&
			f.any("driver", func(v string) bool { return n.reply.Driver == v }) {
			r := n.reply
			r.Containers = map[string]networkMember{} // only inspect tells
			out = append(out, r)
		}
	}
	return jsonReply(http.StatusOK, out)
}

func (d *Daemon) networkInspect(x *exchange) reply {
	n, ok := d.findNetwork(x.object)
	if !ok {
		return noNetwork(x.object)
	}
	return jsonReply(http.StatusOK, n.reply)
}

func (d *Daemon) networkCreate(x *exchange) reply {
	var q struct {
		Name       string
		Driver     string
		Internal   bool
		Attachable bool
		EnableIPv6 bool
		Options    map[string]string
		Labels     map[string]string
	}
	if r := x.decode(&q); r != nil {
		return *r
	}
	if slices.ContainsFunc(d.networks, func(n *netw) bool { return n.reply.Name == q.Name }) {
		return refusal(http.StatusConflict, "network with name %s already exists", q.Name)
	}
	if q.Driver == "" {
		q.Driver = "bridge"
	}
	n := d.newNetwork(q.Name, q.Driver)
	r := &n.reply
	r.Internal, r.Attachable, r.EnableIPv6 = q.Internal, q.Attachable, q.EnableIPv6
	r.Options, r.Labels = map[string]string{}, map[string]string{}
	for k, v := range q.Options {
		r.Options[k] = v
	}
	for k, v := range q.Labels {
		r.Labels[k] = v
	}
	if q.Driver == "bridge" {
		n.subnet = 15 + len(d.networks)
		r.IPAM.Config = []map[string]string{{"Subnet": fmt.Sprintf("172.%d.0.0/16", n.subnet), "Gateway": fmt.Sprintf("172.%d.0.1", n.subnet)}}
	}
	d.networks = append(d.networks, n)
	d.emit(d.world, n.event("create", ""))
	return jsonReply(http.StatusCreated, struct{ Id, Warning string }{r.Id, ""})
}

func (x *exchange) member() (*netw, *container, *reply) {
	var q struct{ Container string }
	if r := x.decode(&q); r != nil {
		return nil, nil, r
	}
	n, ok := x.d.findNetwork(x.object)
	if !ok {
		r := noNetwork(x.object)
		return nil, nil, &r
	}
	c, ok := x.d.find(q.Container)
	if !ok {
		r := noContainer(q.Container)
		return nil, nil, &r
	}
	return n, c, nil
}

func (d *Daemon) networkConnect(x *exchange) reply {
	n, c, no := x.member()
	if no != nil {
		return *no
	}
	if no := d.connect(c, n); no != nil {
		return *no
	}
	return done(http.StatusOK)
}

func (d *Daemon) connect(c *container, n *netw) *reply {
	var r reply
	switch {
	case c.endpoints[n.reply.Name] != nil && !c.running:
		return nil
	case c.host.NetworkMode == "host" || strings.HasPrefix(c.host.NetworkMode, "container:"):
		r = refusal(http.StatusBadRequest, "container sharing network namespace with another container or host cannot be connected to any other network")
		return &r
	case c.endpoints[n.reply.Name] != nil && c.endpoints[n.reply.Name].EndpointID != "":
		r = refusal(http.StatusForbidden, "endpoint with name %s already exists in network %s", c.name, n.reply.Name)
		return &r
	case len(c.endpoints) > 0 && (n.reply.Driver == "null" || c.endpoints["none"] != nil):
		r = refusal(http.StatusBadRequest, "container cannot be connected to multiple networks with one of the networks in private (none) mode")
		return &r
	}
	e := d.newEndpoint()
	c.endpoints[n.reply.Name] = e
	if c.running {
		d.connected(c, n, e)
	}
	return nil
}

func (d *Daemon) networkDisconnect(x *exchange) reply {
	n, c, no := x.member()
	if no != nil {
		return *no
	}
	if c.endpoints[n.reply.Name] == nil {
		return refusal(http.StatusForbidden, "container %s is not connected to network %s", c.id, n.reply.Name)
	}
	d.disconnect(c, n)
	return done(http.StatusOK)
}

// disconnect takes a container off one network for good. A running one is reported twice, as the
// daemon does.
func (d *Daemon) disconnect(c *container, n *netw) {
	if e := c.endpoints[n.reply.Name]; e.EndpointID != "" {
		d.leave(c, n, e)
	}
	delete(c.endpoints, n.reply.Name)
	d.emit(c.w, n.event("disconnect", c.id))
}

func (d *Daemon) networkRemove(x *exchange) reply {
	n, ok := d.findNetwork(x.object)
	switch {
	case !ok:
		return noNetwork(x.object)
	case n.reply.Name == "none" || n.reply.Name == "host" || n.reply.Name == "bridge":
		return refusal(http.StatusForbidden, "%s is a pre-defined network and cannot be removed", n.reply.Name)
	case len(n.reply.Containers) > 0:
		return refusal(http.StatusForbidden, "error while removing network: network %s id %s has active endpoints", n.reply.Name, n.reply.Id)
	}
	d.networks = slices.DeleteFunc(d.networks, func(o *netw) bool { return o == n })
	d.emit(d.world, n.event("destroy", ""))
	return done(http.StatusNoContent)
}
