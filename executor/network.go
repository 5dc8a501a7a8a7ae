package executor

import (
	"context"

	"github.com/baildock/baildock/evidence"
)

// Network is one inspect reply about a network.
type Network struct {
	ID      evidence.ContainerID // full
	Request string               // label, as found
	Handle  string               // label, as found
}

// networks drives a daemon's networks as closing drives containers: found by both labels, looked at and
// removed by full ID.
type networks struct{ Driver }

func (n networks) FindOwned(ctx context.Context, request evidence.RequestDigest, handle evidence.HandleKey) ([]evidence.ContainerID, error) {
	all, err := n.FindLabelled(ctx, evidence.CustodyNetwork)
	if err != nil {
		return nil, err
	}
	var ids []evidence.ContainerID
	for _, l := range all {
		if r, h, ok := l.Owner(); ok && r == request && h == handle {
			ids = append(ids, l.ID)
		}
	}
	return ids, nil
}

// Inspect shows a network as something that never ran: nothing in it exits or is killed.
func (n networks) Inspect(ctx context.Context, id evidence.ContainerID) (Inspection, error) {
	in, err := n.InspectNetwork(ctx, id)
	return Inspection{ID: in.ID, Request: in.Request, Handle: in.Handle, Status: statusCreated}, err
}

func (n networks) Remove(ctx context.Context, id evidence.ContainerID) error {
	return n.RemoveNetwork(ctx, id)
}
