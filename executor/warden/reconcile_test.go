package warden

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// bent is a driver whose daemon says something else of itself.
type bent struct {
	executor.Driver
	probe func(*executor.Runtime)
	ended func(evidence.DaemonProcess) (bool, error)
}

func (b bent) Probe(ctx context.Context) (executor.Runtime, error) {
	rt, err := b.Driver.Probe(ctx)
	if b.probe != nil {
		b.probe(&rt)
	}
	return rt, err
}

func (b bent) DaemonEnded(p evidence.DaemonProcess) (bool, error) {
	if b.ended != nil {
		return b.ended(p)
	}
	return b.Driver.DaemonEnded(p)
}

// otherBoot makes the runner die in a boot before this one.
func otherBoot(c *journal.Claim, d *evidence.DaemonIdentity) {
	c.Home.Boot[0]++
	d.Boot[0]++
}

// formerProcess makes the custody one of a daemon process that there was.
func formerProcess(_ *journal.Claim, d *evidence.DaemonIdentity) {
	d.Process = &evidence.DaemonProcess{PID: 77, Start: 1, Namespace: 1}
}

// laterProcess makes the daemon another process of the same boot.
func laterProcess(rt *executor.Runtime) {
	rt.Identity.Daemon.Process = &evidence.DaemonProcess{PID: 78, Start: 2, Namespace: 1}
}

func gone(evidence.DaemonProcess) (bool, error)  { return true, nil }
func alive(evidence.DaemonProcess) (bool, error) { return false, nil }

// req E3, req E4, req E5, req E7, req G6: what reconcile believes. Whatever it doesn't, it leaves open
// with the known ID and removes nothing that isn't proved ours; the same call with the trouble gone
// closes it.
func TestReconcile(t *testing.T) {
	always := func(c fakedaemon.Call, e fakedaemon.Effect) fakedaemon.Fault {
		return fakedaemon.Fault{Call: c, Effect: e, Times: fakedaemon.Always}
	}
	once := func(c fakedaemon.Call, e fakedaemon.Effect) fakedaemon.Fault {
		return fakedaemon.Fault{Call: c, Effect: e}
	}
	type after struct {
		state  evidence.CleanupState // of a closed custody
		code   string                // of an open one
		proof  evidence.CreateProof
		others int  // containers of others, which must still be there
		lasts  bool // it stays open for good: nothing can be proved
	}
	for name, c := range map[string]struct {
		at     stage
		bend   []func(*journal.Claim, *evidence.DaemonIdentity)
		faults []fakedaemon.Fault
		set    func(t *testing.T, y *yard, h husk)
		driver func(executor.Driver) executor.Driver
		want   after
	}{
		"known present":                 {at: made, want: after{state: evidence.CleanupRemoved}},
		"known absent":                  {at: made, set: act(fakedaemon.ActRemove), want: after{state: evidence.CleanupAbsent}},
		"known renamed":                 {at: running, set: act(fakedaemon.ActRename), want: after{state: evidence.CleanupForceKilled}},
		"known paused":                  {at: running, set: act(fakedaemon.ActPause), want: after{state: evidence.CleanupForceKilled}},
		"known its name reused":         {at: made, set: act(fakedaemon.ActReuseName), want: after{state: evidence.CleanupRemoved, others: 1}},
		"known replaced by a twin":      {at: made, set: act(fakedaemon.ActReplace), want: after{state: evidence.CleanupAbsent, others: 1}},
		"known of another boot":         {at: exited, bend: bends(otherBoot), want: after{state: evidence.CleanupTerminated}},
		"known absent in another boot":  {at: made, bend: bends(otherBoot), set: act(fakedaemon.ActRemove), want: after{state: evidence.CleanupAbsent}},
		"known after a restart":         {at: running, set: func(t *testing.T, y *yard, _ husk) { require.NoError(t, y.daemon.Restart()) }, want: after{state: evidence.CleanupForceKilled}},
		"known after an upgrade":        {at: made, set: func(_ *testing.T, y *yard, _ husk) { y.daemon.Change(fakedaemon.Upgraded) }, want: after{state: evidence.CleanupRemoved}}, // req C3
		"known foreign labels":          {at: made, faults: []fakedaemon.Fault{always(fakedaemon.CallInspect, fakedaemon.WrongLabel{})}, want: after{code: executor.OpenLabels}},
		"known one foreign label":       {at: made, faults: []fakedaemon.Fault{always(fakedaemon.CallInspect, fakedaemon.WrongLabel{Name: executor.LabelHandle})}, want: after{code: executor.OpenLabels}},
		"known no labels":               {at: made, faults: []fakedaemon.Fault{always(fakedaemon.CallInspect, fakedaemon.NoLabel{})}, want: after{code: executor.OpenLabels}},
		"known inspect unanswered":      {at: made, faults: []fakedaemon.Fault{always(fakedaemon.CallInspect, fakedaemon.DropReply{})}, want: after{code: executor.OpenUnreadable}},
		"known inspect refused":         {at: made, faults: []fakedaemon.Fault{always(fakedaemon.CallInspect, fakedaemon.Refuse{})}, want: after{code: executor.OpenUnreadable}},
		"known removal ignored":         {at: made, faults: []fakedaemon.Fault{always(fakedaemon.CallRemove, fakedaemon.Ignored{})}, want: after{code: executor.OpenPresent}},
		"known removal refused":         {at: made, faults: []fakedaemon.Fault{always(fakedaemon.CallRemove, fakedaemon.Refuse{})}, want: after{code: executor.OpenPresent}},
		"known removal unanswered once": {at: made, faults: []fakedaemon.Fault{once(fakedaemon.CallRemove, fakedaemon.DropReply{})}, want: after{state: evidence.CleanupRemoved}},
		"known removal lost":            {at: made, faults: []fakedaemon.Fault{once(fakedaemon.CallRemove, fakedaemon.DropBefore{})}, want: after{state: evidence.CleanupRemoved}},
		"known daemon replaced":         {at: made, set: func(_ *testing.T, y *yard, _ husk) { y.daemon.Replace(true) }, want: after{code: executor.OpenReplaced}},
		"known same objects other ID":   {at: made, set: func(_ *testing.T, y *yard, _ husk) { y.daemon.Replace(false) }, want: after{code: executor.OpenReplaced}},
		"known replaced at the removal": {at: made, faults: []fakedaemon.Fault{once(fakedaemon.CallRemove, fakedaemon.Swapped{})}, want: after{code: executor.OpenReplaced}},
		"known replaced at the inspect": {at: made, faults: []fakedaemon.Fault{once(fakedaemon.CallInspect, fakedaemon.Swapped{})}, want: after{code: executor.OpenReplaced}},
		"known other machine":           {at: made, driver: probing(func(rt *executor.Runtime) { rt.Identity.Daemon.Machine = &evidence.MachineID{1} }), want: after{code: executor.OpenReplaced}},
		"known daemon silent":           {at: made, faults: []fakedaemon.Fault{always(fakedaemon.CallInfo, fakedaemon.DropBefore{})}, want: after{code: executor.OpenUnprobed}},
		"known said absent not gone":    {at: made, faults: []fakedaemon.Fault{once(fakedaemon.CallInspect, fakedaemon.Absent{})}, want: after{state: evidence.CleanupRemoved}},

		"lost made":                {at: lost, want: after{state: evidence.CleanupRemoved}},
		"lost renamed":             {at: lost, set: act(fakedaemon.ActRename), want: after{state: evidence.CleanupRemoved}},
		"lost name reused":         {at: lost, set: act(fakedaemon.ActReuseName), want: after{state: evidence.CleanupRemoved, others: 1}},
		"lost two carry labels":    {at: lost, set: act(fakedaemon.ActRelabel), want: after{code: executor.OpenAmbiguous, others: 1, lasts: true}},
		"lost list fails":          {at: lost, faults: []fakedaemon.Fault{always(fakedaemon.CallList, fakedaemon.DropReply{})}, want: after{code: executor.OpenLookup}},
		"lost inspect unanswered":  {at: lost, faults: []fakedaemon.Fault{always(fakedaemon.CallInspect, fakedaemon.DropReply{})}, want: after{code: executor.OpenUnreadable}},
		"lost inspect contradicts": {at: lost, faults: []fakedaemon.Fault{always(fakedaemon.CallInspect, fakedaemon.WrongLabel{})}, want: after{code: executor.OpenLabels}},
		"lost daemon replaced":     {at: lost, set: func(_ *testing.T, y *yard, _ husk) { y.daemon.Replace(true) }, want: after{code: executor.OpenReplaced}},

		"unsent":                           {at: taken, want: after{code: executor.OpenUnanswered, lasts: true}},
		"unsent rebooted":                  {at: taken, bend: bends(otherBoot), want: after{state: evidence.CleanupNotCreated, proof: evidence.ProofRebooted}},
		"lost rebooted":                    {at: lost, bend: bends(otherBoot), want: after{state: evidence.CleanupRemoved}},
		"unsent rebooted desktop":          {at: taken, bend: bends(otherBoot), driver: probing(desktop), want: after{code: executor.OpenUnanswered}},
		"unsent rebooted no machine ID":    {at: taken, bend: bends(otherBoot, noMachine), driver: probing(func(rt *executor.Runtime) { rt.Identity.Daemon.Machine = nil }), want: after{code: executor.OpenReplaced, lasts: true}},
		"unsent daemon restarted unproved": {at: taken, set: func(t *testing.T, y *yard, _ husk) { require.NoError(t, y.daemon.Restart()) }, want: after{code: executor.OpenUnanswered, lasts: true}},
		"unsent daemon ended": {at: taken, bend: bends(formerProcess), want: after{state: evidence.CleanupNotCreated, proof: evidence.ProofEnded},
			driver: func(d executor.Driver) executor.Driver { return bent{d, laterProcess, gone} }},
		"unsent daemon moved alive": {at: taken, bend: bends(formerProcess), want: after{code: executor.OpenUnanswered, lasts: true},
			driver: func(d executor.Driver) executor.Driver { return bent{d, laterProcess, alive} }},
		"unsent same process": {at: taken, bend: bends(formerProcess), want: after{code: executor.OpenUnanswered, lasts: true},
			driver: func(d executor.Driver) executor.Driver {
				return bent{d, func(rt *executor.Runtime) {
					rt.Identity.Daemon.Process = &evidence.DaemonProcess{PID: 77, Start: 1, Namespace: 1}
				}, gone}
			}},
		"unsent process unknown now": {at: taken, bend: bends(formerProcess), want: after{code: executor.OpenUnanswered, lasts: true},
			driver: func(d executor.Driver) executor.Driver { return bent{d, nil, gone} }},
		"unsent rebooted list fails": {at: taken, bend: bends(otherBoot), faults: []fakedaemon.Fault{{Call: fakedaemon.CallList, Nth: 2, Effect: fakedaemon.DropReply{}}},
			want: after{code: executor.OpenLookup}},
		"unsent rebooted restarted again": {at: taken, bend: bends(otherBoot), want: after{code: executor.OpenUnanswered, lasts: true},
			driver: restless},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, fakedaemon.Options{})
			y.programs(c.at)
			h := y.die(t, "one", c.at, c.bend...)
			if c.set != nil {
				c.set(t, y, h)
			}
			foreign := others(y, h)
			require.Len(t, foreign, c.want.others)
			y.daemon.Fault(c.faults...)
			plain := y.warden.Driver
			if c.driver != nil {
				y.warden.Driver = c.driver(plain)
			}
			before := len(y.daemon.Requests())
			_, err := y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
			// Requests of the API a call of the driver: a probe asks twice, and once for the API itself.
			require.LessOrEqual(t, len(y.daemon.Requests())-before, executor.ReconcileCalls+8)
			custody, _ := y.stored(t, h.id).Custodies.MainContainer()
			if c.want.code == "" {
				require.NoError(t, err)
				require.Equal(t, c.want.state, custody.State)
				require.Equal(t, c.want.proof, custody.Proof)
				require.Equal(t, c.want.proof == "", custody.Ordered, "an order of ours came before any absence counted")
			} else {
				var open *UnconfirmedError
				require.ErrorAs(t, err, &open)
				require.Equal(t, c.want.code, custody.Unconfirmed)
				require.EqualValues(t, 2, open.Generation)
				require.Equal(t, evidence.StateRunning, y.stored(t, h.id).State)
				require.Len(t, y.snapshots(t), 1)
				if c.at >= made {
					require.Equal(t, h.container, *custody.Container, "the known ID is kept")
				} else {
					require.Nil(t, custody.Container)
				}
				y.daemon.ClearFaults()
				y.daemon.Restore()
				if !c.want.lasts {
					y.warden.Driver = plain
					_, err = y.recoverBy(t, h.id, open.Generation, evidence.FencedByRecover)
					require.NoError(t, err, "with the trouble gone it ends")
				}
			}
			if !c.want.lasts {
				require.Equal(t, evidence.StateFinished, y.stored(t, h.id).State)
				require.Empty(t, y.snapshots(t))
				_, there := y.daemon.Container(h.container.Hex())
				require.False(t, there)
			}
			require.Equal(t, foreign, others(y, h), "what isn't ours is untouched")
			require.Empty(t, y.daemon.Requests(fakedaemon.CallStop))
			y.sound(t, h.container)
		})
	}
}

func act(a fakedaemon.Action) func(*testing.T, *yard, husk) {
	return func(t *testing.T, y *yard, h husk) { require.NoError(t, y.daemon.Interfere(a, h.container.Hex())) }
}

func bends(fs ...func(*journal.Claim, *evidence.DaemonIdentity)) []func(*journal.Claim, *evidence.DaemonIdentity) {
	return fs
}

func probing(f func(*executor.Runtime)) func(executor.Driver) executor.Driver {
	return func(d executor.Driver) executor.Driver { return bent{Driver: d, probe: f} }
}

func desktop(rt *executor.Runtime) {
	rt.Reductions = append(slices.Clone(rt.Reductions), evidence.ReducedDesktop)
}

func noMachine(_ *journal.Claim, d *evidence.DaemonIdentity) { d.Machine = nil }

// restless is a daemon that is another process at every look.
func restless(d executor.Driver) executor.Driver {
	n := uint64(0)
	return bent{Driver: d, probe: func(rt *executor.Runtime) {
		n++
		rt.Identity.Daemon.Process = &evidence.DaemonProcess{PID: 9, Start: n, Namespace: 1}
	}}
}

// others lists the containers that aren't the husk's.
func others(y *yard, h husk) []string {
	var ids []string
	for _, c := range y.daemon.Containers() {
		if c.ID != h.container.Hex() {
			ids = append(ids, c.ID+" "+c.Name+" "+c.Status)
		}
	}
	return ids
}
