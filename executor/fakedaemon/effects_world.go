package fakedaemon

import "net/http"

// Absent answers that the object named isn't there.
type Absent struct{}

// Kind is KindAbsent.
func (Absent) Kind() FaultKind { return KindAbsent }

func (Absent) instead(x *exchange) (reply, bool) {
	switch x.route.call {
	case CallCreate:
		return noImageToRun(x.imageAsked()), true
	case CallImageInspect, CallImageRemove:
		return noImage(x.object), true
	case CallNetworkInspect, CallNetworkConnect, CallNetworkDisconnect, CallNetworkRemove:
		return noNetwork(x.object), true
	case CallExecStart, CallExecInspect:
		return noExec(x.object), true
	}
	return noContainer(x.object), true
}

// Ignored answers as if it had been done, and does nothing: a removal that leaves the container, a
// start that starts nothing, a create whose ID nobody knows.
type Ignored struct{}

// Kind is KindIgnored.
func (Ignored) Kind() FaultKind { return KindIgnored }

func (Ignored) instead(x *exchange) (reply, bool) {
	switch x.route.call {
	case CallCreate:
		return jsonReply(http.StatusCreated, createReply{x.d.newID(), []string{}}), true
	case CallUpdate:
		return jsonReply(http.StatusOK, map[string]any{"Warnings": nil}), true
	case CallNetworkConnect, CallNetworkDisconnect, CallCopyTo:
		return done(http.StatusOK), true
	}
	return done(http.StatusNoContent), true
}

// Replaced gives the daemon another engine ID from this request on; its objects are the same.
type Replaced struct{}

// Kind is KindReplaced.
func (Replaced) Kind() FaultKind { return KindReplaced }

func (Replaced) enter(x *exchange) { x.d.replace(false) }

// Swapped puts another daemon behind the socket from this request on, which has none of our
// objects. They run on, out of sight.
type Swapped struct{}

// Kind is KindSwapped.
func (Swapped) Kind() FaultKind { return KindSwapped }

func (Swapped) enter(x *exchange) { x.d.replace(true) }

// Changed changes what the daemon says about itself, from this request on.
type Changed struct {
	Engine func(*Engine) // nil = Upgraded
}

// Kind is KindChanged.
func (Changed) Kind() FaultKind { return KindChanged }

func (f Changed) enter(x *exchange) {
	if f.Engine == nil {
		f.Engine = Upgraded
	}
	x.d.engine = x.d.engine.With(f.Engine)
}

// Interfere makes somebody else act on the container that the request names or makes, directly
// after it is done, or directly before.
type Interfere struct {
	Action Action
	Before bool
}

// Kind is KindInterfere.
func (Interfere) Kind() FaultKind { return KindInterfere }

func (f Interfere) enter(x *exchange) {
	if f.Before {
		f.act(x)
	}
}

func (f Interfere) leave(x *exchange, _ *reply) {
	if !f.Before {
		f.act(x)
	}
}

func (f Interfere) act(x *exchange) {
	if c := x.d.concerned(x); c != nil {
		x.d.interfere(f.Action, c)
	}
}

// concerned is the container a request is about: the one its path names, else the newest.
func (d *Daemon) concerned(x *exchange) *container {
	if x.route.target {
		c, _ := d.find(x.object)
		return c
	}
	if n := len(d.containers); n > 0 {
		return d.containers[n-1]
	}
	return nil
}
