package executor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/baildock/baildock/evidence"
)

// creation is how far the create of the container came.
type creation int

const (
	notTaken creation = iota // nothing was recorded and nothing can exist
	unsent                   // custody may be recorded; the create was not sent
	sent                     // no answer yet, or none that proves anything
	refused                  // the daemon answered that it refuses
	created                  // the ID is known
)

// custody is what this run knows of the container that it may have made.
type custody struct {
	stage    creation
	id       evidence.ContainerID      // once created
	arrival  evidence.ContainerCreated // of that ID
	recorded bool                      // the arrival is durable
	refusal  evidence.CreateRuledOut   // of a refused create, until a look confirms it
	lost     error                     // why the create's answer proves nothing
	last     *Inspection               // the newest
}

// take makes the plan and takes custody of what is going to be created: durable before the
// create is sent (req E1), under a name and a nonce that nobody could have chosen (req E2, E7).
func (r *run) take(context.Context) error {
	var handle evidence.HandleKey
	if _, err := io.ReadFull(r.Random, handle[:]); err != nil {
		return fmt.Errorf("draw a handle: %w", err)
	}
	r.plan = Plan{
		Profile: r.job.Profile, Recipe: r.job.Recipe, Environment: r.job.Environment, Values: r.job.Values,
		Seccomp: r.premises.runtime.Seccomp, Request: r.job.Request, Handle: handle,
		Name:   "baildock-" + string(r.job.Attempt) + "-" + hex.EncodeToString(handle[:6]),
		Source: r.job.Source,
	}
	r.custody.stage = unsent
	return r.ledger.record(evidence.CustodyTaken{
		Handle: handle, Kind: evidence.CustodyContainer, Name: r.plan.Name,
		Request: r.plan.Request, Daemon: r.premises.runtime.Identity.Daemon,
	})
}

// create sends the create once. What the answer leaves open is settled by cleanup.
func (r *run) create(context.Context) error {
	r.Progress("create", r.plan.Name)
	r.custody.stage = sent
	c, err := r.Driver.Create(r.life, r.plan)
	var f *Fault
	switch {
	case err == nil:
		r.custody.stage, r.custody.id = created, c.ID
		r.watch.aim(c.ID)
		r.custody.arrival = evidence.ContainerCreated{Handle: r.plan.Handle, Container: c.ID, Warnings: uint64(len(c.Warnings))}
		return r.arrived(c.Warnings)
	case errors.Is(err, ErrNotSent):
		r.custody.stage = unsent
		return fmt.Errorf("the create could not be sent: %w", err)
	case errors.As(err, &f) && f.Answered && f.Status >= 400 && f.Status < http.StatusInternalServerError:
		r.custody.stage, r.custody.lost = refused, err
		return r.refusedCreate(f)
	}
	// An error after the daemon began to create, or no answer: it may exist, now or later.
	r.Progress("refused", "the create stayed without a certain answer")
	r.custody.lost = err
	return errEnded
}

// arrived records the known ID: durable before anything else is done with it (req E1).
func (r *run) arrived(warnings []string) error {
	detail, err := r.detail(warnings...)
	if err != nil {
		return err
	}
	r.custody.arrival.Detail = detail
	if err := r.ledger.record(r.custody.arrival); err != nil {
		return err
	}
	r.custody.recorded = true
	if len(warnings) > 0 { // req C4: nothing starts that the daemon changed on its own
		r.Progress("refused", "the daemon created the container with warnings")
		return errEnded
	}
	return nil
}

// refusedCreate prepares what is recorded of a refused create, once a look by its labels agrees that
// nothing was created.
func (r *run) refusedCreate(f *Fault) error {
	r.Progress("refused", "the daemon refused the create")
	detail, err := r.detail(f.Error())
	r.custody.refusal = evidence.CreateRuledOut{Handle: r.plan.Handle, Proof: evidence.ProofRefused, Status: uint64(f.Status), Detail: detail}
	if err != nil {
		return err
	}
	return errEnded
}
