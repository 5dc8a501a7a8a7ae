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
	c := &call{name: "wait", limit: maxWaitReply, headerBy: controlDeadline}
	// ContainerWait returns once the header came, or with its error already in the channel.
	result, failed := d.api.ContainerWait(withCall(ctx, c), id.Hex(), container.WaitConditionNextExit)
	select {
	case err := <-failed:
		return nil, orAbsent(c, c.fault(err), id)
	default:
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
