package executor

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/baildock/baildock/evidence"
)

// watch follows one container in the daemon's events: whether memory ran out, how it died, and
// what somebody else did to it (req C9, F5). It is a closed world: an action that is neither
// ours nor harmless is foreign.
type watch struct {
	network string // the one network the container may be connected to

	died   chan struct{} // closed when the container's die was delivered
	broken chan struct{} // closed when the subscription broke
	oom    chan struct{} // a token for every oom event

	mu      sync.Mutex
	id      string
	early   []Event // before the ID was known
	counts  map[string]int
	foreign map[string]bool
	started bool // we sent the start, or are about to
	killing bool // we sent a kill, or are about to
	over    bool // what follows is our own removal
	lost    error
	code    string // exit code of the die
	diedAt  int64  // time of the last die, ns since the epoch, the daemon's word
}

func newWatch(network string) *watch {
	return &watch{
		network: network, died: make(chan struct{}), broken: make(chan struct{}), oom: make(chan struct{}, 1),
		counts: map[string]int{}, foreign: map[string]bool{},
	}
}

// eventsLostError stands for a subscription that ended without a reason while it was needed.
type eventsLostError struct{ why string }

func (e *eventsLostError) Error() string { return "the daemon's events were lost: " + e.why }

// follow takes events until the subscription ends.
func (w *watch) follow(s EventStream) {
	_, err := guarded(func() (struct{}, error) {
		for e := range s.C {
			w.take(e)
		}
		return struct{}{}, s.Err()
	})
	w.lose(err)
}

// lose marks the subscription as ended. After our own end nothing is lost.
func (w *watch) lose(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost != nil || w.over {
		return
	}
	if err == nil {
		err = &eventsLostError{"the subscription ended early"}
	}
	w.lost = err
	close(w.broken)
}

func (w *watch) take(e Event) {
	w.mu.Lock()
	known := w.id != ""
	switch {
	case w.over:
	case known:
		w.judge(e)
	case len(w.early) < maxEarlyEvents:
		w.early = append(w.early, e)
	}
	full := !known && len(w.early) == maxEarlyEvents
	w.mu.Unlock()
	if full {
		w.lose(&eventsLostError{"too many came before the container was known"})
	}
}

// aim says which container is ours; events that came before are judged now.
func (w *watch) aim(id evidence.ContainerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.id = id.Hex()
	for _, e := range w.early {
		w.judge(e)
	}
	w.early = nil
}

// starts says that a start from here on may be ours; one before can't be.
func (w *watch) starts() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = true
}

// outrun says that the daemon refused our start because the container ran already.
func (w *watch) outrun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.foreign["start"] = true
}

// kills says that a kill from here on may be ours.
func (w *watch) kills() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killing = true
}

// Actions a run makes itself, with how often; and what harms nothing.
var (
	ownActions      = map[string]int{"create": 1, "attach": 1, "start": 1, "die": 1}
	harmlessActions = []string{"oom", "top", "detach"}
	// foreignCodes names what somebody else can do to a container; anything else is action_unknown.
	foreignCodes = map[string]string{
		"attach": "attach", "start": "start", "kill": "kill", "stop": "stop", "restart": "restart", "destroy": "removal",
		"exec_create": "exec", "exec_start": "exec", "exec_die": "exec", "exec_detach": "exec",
		"update": "update", "rename": "rename", "pause": "pause", "unpause": "pause", "resize": "resize",
		"archive-path": "copy", "extract-to-dir": "copy", "copy": "copy", "export": "copy",
		"commit": "commit", "checkpoint": "checkpoint",
	}
)

// judge is called with the lock held.
func (w *watch) judge(e Event) {
	switch {
	case e.Type == "network" && e.Container == w.id:
		if e.Action == "connect" {
			w.counts["connect"]++
			if e.Network != w.network || w.counts["connect"] > 1 {
				w.foreign["network_connect"] = true
			}
		}
	case e.Type == "container" && e.Actor == w.id:
		action, _, _ := strings.Cut(e.Action, ":")
		w.counts[action]++
		w.act(action, e)
	}
}

func (w *watch) act(action string, e Event) {
	switch action {
	case "die":
		if w.counts[action] == 1 {
			w.code = e.ExitCode
			close(w.died)
		}
		w.diedAt = e.TimeNano
	case "start":
		if !w.started {
			w.foreign["start"] = true
		}
	case "oom":
		select {
		case w.oom <- struct{}{}:
		default:
		}
	case "kill":
		if w.killing {
			return
		}
	}
	if slices.Contains(harmlessActions, action) || w.counts[action] <= ownActions[action] {
		return
	}
	code, known := foreignCodes[action]
	if !known {
		code = "action_unknown"
	}
	w.foreign[code] = true
}

// sight is what was seen of a container up to now.
type sight struct {
	oom     evidence.OOMEvent
	foreign []string // sorted codes
	lost    error
	died    bool
	ran     bool   // a start or a die was seen
	code    string // of the die, as the daemon spells it
	diedAt  int64  // of the last die
}

// seen sums up. "None" for memory needs the container's die on the same subscription (req F5).
func (w *watch) seen() sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := sight{oom: evidence.OOMUnknown, lost: w.lost, died: w.counts["die"] > 0, ran: w.counts["start"]+w.counts["die"] > 0, code: w.code, diedAt: w.diedAt}
	switch {
	case w.counts["oom"] > 0:
		s.oom = evidence.OOMSeen
	case s.died && w.lost == nil:
		s.oom = evidence.OOMNone
	}
	for code := range w.foreign {
		s.foreign = append(s.foreign, code)
	}
	slices.Sort(s.foreign)
	return s
}

// end says that whatever follows is our own removal.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// agrees reports whether the die carried the same exit code.
func (s sight) agrees(code int64) bool {
	n, err := strconv.ParseInt(s.code, 10, 64)
	return err == nil && n == code
}
