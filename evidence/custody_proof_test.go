package evidence_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// req E5: a create is ruled out by another life of the daemon only where the event shows one.
func TestCreateRuledOutByAnotherLife(t *testing.T) {
	h := evidencetest.Success()
	asked := h.Custody.Daemon
	asked.Process = &evidence.DaemonProcess{PID: 9, Start: 1, Namespace: 1}
	for name, c := range map[string]struct {
		proof evidence.CreateProof
		now   func(*evidence.DaemonIdentity) *evidence.DaemonIdentity
		legal bool
	}{
		"rebooted":       {evidence.ProofRebooted, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity { d.Boot[0]++; return d }, true},
		"same boot":      {evidence.ProofRebooted, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity { return d }, false},
		"no daemon":      {evidence.ProofRebooted, func(*evidence.DaemonIdentity) *evidence.DaemonIdentity { return nil }, false},
		"another engine": {evidence.ProofRebooted, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity { d.Boot[0]++; d.Engine = "X"; return d }, false},
		"another machine": {evidence.ProofRebooted, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity {
			d.Boot[0]++
			d.Machine = &evidence.MachineID{1}
			return d
		}, false},
		"unknown machine": {evidence.ProofRebooted, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity { d.Boot[0]++; d.Machine = nil; return d }, false},
		"ended": {evidence.ProofEnded, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity {
			d.Process = &evidence.DaemonProcess{PID: 10, Start: 2, Namespace: 1}
			return d
		}, true},
		"ended, number reused": {evidence.ProofEnded, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity {
			d.Process = &evidence.DaemonProcess{PID: 9, Start: 2, Namespace: 1}
			return d
		}, true},
		"ended, same process": {evidence.ProofEnded, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity { return d }, false},
		"ended, unknown":      {evidence.ProofEnded, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity { d.Process = nil; return d }, false},
		"ended, in another boot": {evidence.ProofEnded, func(d *evidence.DaemonIdentity) *evidence.DaemonIdentity {
			d.Boot[0]++
			d.Process = &evidence.DaemonProcess{PID: 10}
			return d
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			taken := *h.Custody
			taken.Daemon = asked
			var cs evidence.Custodies
			require.NoError(t, cs.Apply(taken))
			now := asked
			err := cs.Apply(evidence.CreateRuledOut{Handle: taken.Handle, Proof: c.proof, Daemon: c.now(&now)})
			if !c.legal {
				require.Error(t, err)
				require.Len(t, cs.Open(), 1)
				return
			}
			require.NoError(t, err)
			require.Empty(t, cs.Open())
			require.Equal(t, c.proof, cs[0].Proof)
		})
	}
}

// req B6, req G7: what an abandoned container may mount is not gone.
func TestAbandonedKeepsItsSnapshot(t *testing.T) {
	h := evidencetest.Success()
	a, err := evidence.Fold(h.Events()[:6]...)
	require.NoError(t, err)
	for _, p := range []evidence.Payload{
		evidence.CleanupUnconfirmed{Handle: evidencetest.Handle, State: evidence.CleanupUnverifiable, Code: "x"},
		evidence.AttemptFenced{Generation: 2, By: evidence.FencedByRecover},
		evidence.CustodyAbandoned{Handle: evidencetest.Handle},
	} {
		require.NoError(t, a.Apply(p))
	}
	require.Error(t, a.Apply(evidence.SnapshotRemoved{}))
	r := evidence.RecordOf(&a)
	require.Equal(t, evidence.OutcomeIndeterminate, r.Outcome)
	require.Equal(t, evidence.SnapshotHeld, r.Snapshot)
	require.True(t, r.Cleanup[0].Abandoned)
	require.NoError(t, a.Apply(evidence.AttemptFinished{Record: r.Digest()}))
}
