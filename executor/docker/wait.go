package docker

import (
	"context"
	"errors"

	"github.com/docker/docker/api/types/container"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Wait registers for the next exit. The daemon answers the registration with a header at once and
// sends the status when the container exits, so the reply has a bound for its header and its
// size, and lasts as long as ctx.
func (d *Driver) Wait(ctx context.Context, id evidence.ContainerID) (<-chan executor.Exit, error) {
	if _, err := d.pin(ctx); err != nil {
		return nil, err
	}
	c := &call{name: "wait", limit: maxWaitReply, headerBy: d.by.control}
	result, failed := d.api.ContainerWait(withCall(ctx, c), id.Hex(), container.WaitConditionNextExit)
	// It returns once the header came. Without a good one its error is in the channel already; with
	// one the registration stands, and an error belongs to the exit.
	if c.status/100 != 2 {
		return nil, orAbsent(c, c.fault(<-failed), id)
	}
	out := make(chan executor.Exit, 1)
	go func() {
		defer close(out)
		select {
		case r := <-result:
			exit := executor.Exit{Code: r.StatusCode}
			if r.Error != nil {
				exit.Err = &executor.Fault{Call: "wait", Err: errors.New(clip(r.Error.Message, maxMessage))}
			}
			out <- exit
		case err := <-failed:
			out <- executor.Exit{Err: c.fault(err)}
		}
	}()
	return out, nil
}
