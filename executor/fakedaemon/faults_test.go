package fakedaemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
)

// cells is how many faults the table has; a call or kind added must be seen here.
const cells = 594

// TestEveryCell hits every call with every kind of fault that it can have, through the official
// client, and wants the fault's own sign: in the answer, in the daemon, or both.
func TestEveryCell(t *testing.T) {
	all := fakedaemon.Cells()
	t.Logf("count: %d cells", len(all))
	require.Equal(t, cells, len(all))
	kinds := map[fakedaemon.FaultKind]int{}
	for _, f := range all {
		kinds[f.Effect.Kind()]++
		t.Run(fmt.Sprintf("%s/%s", f.Call, f.Effect.Kind()), func(t *testing.T) {
			t.Parallel() // the slow ones wait
			newCell(t, f).run()
		})
	}
	for _, k := range fakedaemon.Kinds() {
		require.NotZero(t, kinds[k], "no cell has kind %s", k)
	}
}

// cell is one fault on a fresh bench, with how the daemon was before it.
type cell struct {
	*bench
	f      fakedaemon.Fault
	good   any // a good answer, where asking changes nothing
	engine fakedaemon.Engine
	state  string
}

func newCell(t *testing.T, f fakedaemon.Fault) *cell {
	b := newBench(t, fakedaemon.Engine20())
	b.prepare(f.Call)
	c := &cell{bench: b, f: f, engine: b.Engine()}
	if reads(f.Call) {
		var err error
		c.good, err = b.invoke(patient(t), f.Call)
		require.NoError(t, err)
	}
	b.Fault(f)
	c.state = c.sum()
	return c
}

func reads(c fakedaemon.Call) bool {
	switch c {
	case fakedaemon.CallVersion, fakedaemon.CallImageList, fakedaemon.CallImageInspect, fakedaemon.CallInspect, fakedaemon.CallList, fakedaemon.CallNetworkInspect:
		return true
	}
	return false
}

// sum is everything that a call could change.
func (c *cell) sum() string {
	var b strings.Builder
	for _, one := range c.Containers() {
		raw := json.RawMessage{}
		if !one.Hidden {
			var err error
			raw, err = c.Inspection(one.ID)
			require.NoError(c.t, err)
		}
		fmt.Fprintf(&b, "%+v %s\n", one, raw)
	}
	return b.String()
}

func (c *cell) run() {
	t := c.t
	if c.f.Effect.Kind() == fakedaemon.KindFlip {
		c.flip()
		return
	}
	switch c.f.Effect.Kind() {
	case fakedaemon.KindLate, fakedaemon.KindSlow, fakedaemon.KindSlowReply, fakedaemon.KindStalled, fakedaemon.KindSilent, fakedaemon.KindLost:
		c.outlast()
		return
	}
	ctx := patient(t)
	if c.f.Call == fakedaemon.CallEvents && c.f.Effect.Kind() == fakedaemon.KindSwapped {
		short, cancel := context.WithTimeout(ctx, slow)
		defer cancel()
		ctx = short // the other daemon has nothing to say of our containers
	}
	said, err := c.invoke(ctx, c.f.Call)
	hit := c.hit()
	switch c.f.Effect.Kind() {
	case fakedaemon.KindRefuse:
		require.Regexp(t, "told to refuse|500", c.pingless(err))
		require.Equal(t, 500, hit.Status)
		c.untouched()
	case fakedaemon.KindFailedDone, fakedaemon.KindDeniedDone:
		require.Regexp(t, "told to fail|500|409", c.pingless(err))
	case fakedaemon.KindAbsent:
		require.Regexp(t, "[Nn]o such |not found|404", err)
		c.untouched()
	case fakedaemon.KindIgnored:
		require.NoError(t, err)
		c.untouched()
	case fakedaemon.KindDropBefore:
		require.Error(t, c.pingless(err))
		require.Zero(t, hit.Status)
		c.untouched()
	case fakedaemon.KindDropReply:
		require.Error(t, c.pingless(err))
		require.NotZero(t, hit.Status)
	case fakedaemon.KindTruncated, fakedaemon.KindMalformed:
		require.Error(t, err, "%v", said)
	case fakedaemon.KindCut:
		switch c.f.Call {
		case fakedaemon.CallExecStart: // which says nothing, so that its end is no news
		case fakedaemon.CallAttach: // the client's own copying takes a torn frame for an end
			require.Equal(t, [2]string{}, said)
		default:
			require.Error(t, err, "%v", said)
		}
	case fakedaemon.KindOversized, fakedaemon.KindRepeatedKey:
		// What makes them faults is the reader's bound or strictness; the official client has none.
		require.Contains(t, hit.Faults, string(c.f.Effect.Kind()))
	case fakedaemon.KindOverride, fakedaemon.KindMissing, fakedaemon.KindWrongLabel, fakedaemon.KindNoLabel:
		require.NoError(t, err)
		if c.good != nil {
			require.NotEqual(t, c.good, said)
			again, err := c.invoke(patient(t), c.f.Call)
			require.NoError(t, err)
			require.Equal(t, c.good, again, "the next answer is good")
		}
	case fakedaemon.KindWarned:
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(said), "swap limit")
	case fakedaemon.KindReplaced:
		require.NotEqual(t, c.engine.ID, c.Engine().ID)
	case fakedaemon.KindSwapped:
		require.NotEqual(t, c.engine.ID, c.Engine().ID)
		for _, one := range c.Containers() {
			require.Equal(t, one.ID == c.idle || one.ID == c.busy, one.Hidden)
		}
		c.Restore()
		require.Equal(t, c.engine.ID, c.Engine().ID)
	case fakedaemon.KindChanged:
		require.NotEqual(t, c.engine.Version, c.Engine().Version)
	case fakedaemon.KindInterfere:
		require.Contains(t, strings.Join(c.everything(), " "), "exec_create")
	default:
		t.Fatalf("no test knows the kind %s", c.f.Effect.Kind())
	}
}

// everything is the actions of every container.
func (c *cell) everything() []string {
	var all []string
	for _, e := range c.EventLog() {
		all = append(all, e.Action)
	}
	return all
}

// pingless makes an error of a ping that went wrong: the client itself takes any answer for one.
func (c *cell) pingless(err error) error {
	if err == nil && c.f.Call == fakedaemon.CallPing {
		return fmt.Errorf("told to refuse, told to fail: the client asked %d times", c.Count(fakedaemon.CallPing))
	}
	return err
}

// hit is the request that the fault hit.
func (c *cell) hit() fakedaemon.Request {
	r := c.struck()
	require.NotNil(c.t, r, "the fault hit nothing")
	require.Equal(c.t, []string{string(c.f.Effect.Kind())}, r.Faults)
	return *r
}

func (c *cell) struck() *fakedaemon.Request {
	for _, r := range c.Requests(c.f.Call) {
		if len(r.Faults) > 0 {
			return &r
		}
	}
	return nil
}

func (c *cell) untouched() {
	c.t.Helper()
	if c.f.Call == fakedaemon.CallAttach || c.f.Call == fakedaemon.CallWait {
		return // the bench itself starts or kills what it attaches to or waits for
	}
	require.Equal(c.t, c.state, c.sum())
}

// outlast leaves a call that takes longer than its client, and wants to know what became of it.
func (c *cell) outlast() {
	t := c.t
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := c.invoke(ctx, c.f.Call)
		answered <- err
	}()
	require.Eventually(t, func() bool { return c.struck() != nil }, 30*time.Second, time.Millisecond)
	kind := c.f.Effect.Kind()
	if kind != fakedaemon.KindSlow && kind != fakedaemon.KindLate {
		require.Eventually(t, func() bool { return c.struck().Status != 0 }, 30*time.Second, time.Millisecond, "done before the reply")
	}
	if kind == fakedaemon.KindLate {
		require.Eventually(t, func() bool { return c.Pending() == 1 }, 30*time.Second, time.Millisecond)
	}
	cancel()
	err := <-answered
	if kind != fakedaemon.KindSilent || c.f.Call != fakedaemon.CallExecStart {
		require.Error(t, err)
	}
	hit := c.hit()
	switch kind {
	case fakedaemon.KindSlow:
		require.Zero(t, hit.Status)
		require.Eventually(t, func() bool { return c.hit().Status != 0 }, 30*time.Second, slow/20)
	case fakedaemon.KindLate:
		require.Zero(t, hit.Status)
		c.untouched()
		require.Equal(t, 1, c.CompleteLate())
		require.Zero(t, c.Pending())
		require.NotZero(t, c.hit().Status)
	}
}

// flip asks four times: every second answer differs.
func (c *cell) flip() {
	if c.good == nil {
		return
	}
	for i := range 4 {
		said, err := c.invoke(patient(c.t), c.f.Call)
		require.NoError(c.t, err)
		require.Equal(c.t, i%2 == 1, !assert.ObjectsAreEqual(c.good, said), "answer %d", i+1)
	}
}
