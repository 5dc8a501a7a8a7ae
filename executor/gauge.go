package executor

import (
	"time"

	"github.com/baildock/baildock/evidence"
)

// gauge looks at a workspace again and again while its command runs (req N10).
type gauge struct {
	full chan outcome[string] // the bound that was found broken, or why none could be looked at; nil without a workspace
	stop chan struct{}
	done chan struct{}
}

func newGauge(usage Usage) *gauge {
	g := &gauge{stop: make(chan struct{}), done: make(chan struct{})}
	if usage == nil {
		close(g.done)
		return g
	}
	g.full = make(chan outcome[string], 1)
	go g.run(usage)
	return g
}

func (g *gauge) run(usage Usage) {
	defer close(g.done)
	pause := gaugeEvery
	for {
		select {
		case <-g.stop:
			return
		case <-time.After(pause):
		}
		began := time.Now()
		broken, err := guarded(func() (string, error) { return usage() })
		if broken != "" || err != nil {
			g.full <- outcome[string]{broken, err}
			return
		}
		// A large workspace takes long to look at; the looks must not be what the machine does.
		pause = max(gaugeEvery, gaugeRest*time.Since(began))
	}
}

// end stops looking and waits for a look under way, though not for one that never returns.
func (g *gauge) end() {
	close(g.stop)
	select {
	case <-g.done:
	case <-time.After(gaugeBound):
	}
}

// outgrown says why the command is stopped after a look.
func (r *run) outgrown(o outcome[string]) evidence.StopCause {
	if o.err != nil {
		// What can't be looked at may fill the disk unseen.
		r.fault("workspace_unreadable")
		r.notePanic(o.err)
		return evidence.StopFault
	}
	r.Progress("stop", "the workspace outgrew its bound: "+o.value)
	return evidence.StopWorkspace
}
