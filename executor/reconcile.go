package executor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/baildock/baildock/evidence"
)

// Reconciler closes custody that a runner left open. The attempt must have been taken from that
// runner: its recorder writes for a generation of its own.
type Reconciler struct {
	Driver   Driver
	Recorder Recorder
	Progress Progress  // nil: nobody listens
	Random   io.Reader // of salts; nil: crypto/rand
	Places   []Place   // host paths that evidence names by their role; may be nil
}

// Reconcile takes each open custody to its end as a runner does its own (req E3, E4): a look at the
// daemon, the container's ID if it isn't known yet, both labels, the order, the removal by full ID,
// an inspection that finds nothing, and a look at the daemon again. What stays open after that has
// a CleanupUnconfirmed that says why.
//
// One custody takes at most ReconcileCalls calls and ReconcileBound; ctx may end it sooner. The
// result is recorded in either case: recording doesn't depend on ctx. The error is nil also when
// custody stayed open; it is not nil when something could not be recorded, among them ErrFenced,
// after which nothing more is done.
func (r Reconciler) Reconcile(ctx context.Context, custodies ...evidence.Custody) error {
	if r.Random == nil {
		r.Random = rand.Reader
	}
	if r.Progress == nil {
		r.Progress = func(string, string) {}
	}
	ledger := newScribe(context.WithoutCancel(ctx), r.Recorder, r.Random)
	// A network goes only once no container is connected to it.
	custodies = slices.Clone(custodies)
	slices.SortStableFunc(custodies, func(a, b evidence.Custody) int {
		return cmp.Compare(removalTurn[a.Kind], removalTurn[b.Kind])
	})
	for _, custody := range custodies {
		if !custody.Open() {
			continue
		}
		_, err := guarded(func() (struct{}, error) { return struct{}{}, r.close(ctx, ledger, custody) })
		if err != nil {
			return fmt.Errorf("close custody %s: %w", custody.Handle, err)
		}
	}
	return nil
}

// removalTurn is the order in which kinds go, and the kinds there are.
var removalTurn = map[evidence.CustodyKind]int{evidence.CustodyContainer: 1, evidence.CustodyNetwork: 2}

// close takes one custody to its end.
func (r Reconciler) close(ctx context.Context, ledger *scribe, custody evidence.Custody) error {
	life, end := context.WithTimeout(ctx, ReconcileBound)
	defer end()
	c := &closing{
		driver: r.Driver, life: life, ledger: ledger, progress: r.Progress, detail: r.detailer(ledger),
		handle: custody.Handle, request: custody.Request, daemon: custody.Daemon,
		recorded: custody.Container != nil, orphaned: true,
	}
	if custody.Kind == evidence.CustodyNetwork {
		c.driver = networks{r.Driver}
	} else if removalTurn[custody.Kind] == 0 {
		c.open(evidence.CleanupUnverifiable, OpenKind, fmt.Errorf("kind %q", custody.Kind))
		return errors.Join(c.errs...)
	}
	now, err := r.Driver.Probe(life)
	switch {
	case err != nil:
		c.open(evidence.CleanupUnverifiable, OpenUnprobed, err)
	case !now.Identity.Daemon.SameHost(custody.Daemon):
		c.open(evidence.CleanupUnverifiable, OpenReplaced, nil)
	case custody.Container != nil:
		c.id = *custody.Container
		c.remove()
	case c.find(nil, func() bool { return c.outlived(now) }):
		c.remove()
	}
	return errors.Join(c.errs...)
}

func (r Reconciler) detailer(ledger *scribe) func(...string) (*evidence.BlobRef, error) {
	return func(lines ...string) (*evidence.BlobRef, error) {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = Portable(line, r.Places...)
		}
		return ledger.detail(out...)
	}
}

// outlived deals with custody whose create got no certain answer and left nothing with its labels: it
// closes it if the create can't complete any more, because the daemon that was asked lives no more
// (req E5). now is the later one, which listed nothing. Whatever is missing from the proof leaves
// custody open; where that is a look that failed, it is said why. It is false where nothing was said.
func (c *closing) outlived(now Runtime) bool {
	unproved := func(code string, err error) bool {
		c.open(evidence.CleanupUnverifiable, code, err)
		return true
	}
	proof, err := c.proofOf(now)
	switch {
	case err != nil:
		return unproved(OpenUnanswered, fmt.Errorf("whether the daemon that was asked has ended: %w", err))
	case proof == "":
		return false
	}
	// Asked again: what a former life made before it ended is listed by now. Both lists lie between two
	// looks at one life of the daemon.
	ids, err := c.driver.FindOwned(c.life, c.request, c.handle)
	switch {
	case err != nil:
		return unproved(OpenLookup, err)
	case len(ids) > 0:
		return unproved(OpenUnanswered, errors.New("a container with its labels came up meanwhile: recover again"))
	}
	again, err := c.driver.Probe(c.life)
	switch {
	case err != nil:
		return unproved(OpenUnprobed, err)
	case !sameLife(now.Identity.Daemon, again.Identity.Daemon):
		return unproved(OpenUnanswered, errors.New("the daemon changed meanwhile: recover again"))
	}
	c.progress("ruled_out", string(proof))
	c.record(evidence.CreateRuledOut{Handle: c.handle, Proof: proof, Daemon: &again.Identity.Daemon})
	return true
}

func sameLife(a, b evidence.DaemonIdentity) bool {
	return a.Equal(b) && (a.Process == nil) == (b.Process == nil) && (a.Process == nil || *a.Process == *b.Process)
}

// proofOf names the proof that the daemon asked to create lives no more; none is "".
func (c *closing) proofOf(now Runtime) (evidence.CreateProof, error) {
	asked, present := c.daemon, now.Identity.Daemon
	if asked.Machine == nil || slices.Contains(now.Reductions, evidence.ReducedDesktop) {
		// Without a machine ID a boot is no boot of this machine; behind a desktop's proxy the daemon
		// runs in a virtual machine, which may outlive its host's boot.
		return "", nil
	}
	switch {
	case evidence.OutlivedBy(evidence.ProofRebooted, asked, present):
		return evidence.ProofRebooted, nil
	case evidence.OutlivedBy(evidence.ProofEnded, asked, present):
		ended, err := c.driver.DaemonEnded(*asked.Process)
		if err != nil || !ended {
			return "", err
		}
		return evidence.ProofEnded, nil
	}
	return "", nil
}
