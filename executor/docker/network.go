package docker

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/network"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// InspectNetwork reads one network by full ID.
func (d *Driver) InspectNetwork(ctx context.Context, id evidence.ContainerID) (executor.Network, error) {
	var out executor.Network
	c, err := d.control(ctx, "inspect network", d.by.control, func(ctx context.Context) error {
		n, err := d.api.NetworkInspect(ctx, id.Hex(), network.InspectOptions{})
		if err != nil {
			return err
		}
		if out.ID, err = parseID(n.ID); err != nil {
			return err
		}
		if out.ID != id { // the daemon also finds a network by a name that looks like an ID
			return fmt.Errorf("asked for network %s, got %s", id.Hex(), out.ID.Hex())
		}
		out.Request, out.Handle = n.Labels[executor.LabelRequest], n.Labels[executor.LabelHandle]
		return nil
	})
	return out, networkAbsent(c, err, id)
}

// RemoveNetwork removes by full ID. The daemon refuses while a container is connected.
func (d *Driver) RemoveNetwork(ctx context.Context, id evidence.ContainerID) error {
	c, err := d.control(ctx, "remove network", d.by.control, func(ctx context.Context) error {
		return d.api.NetworkRemove(ctx, id.Hex())
	})
	return networkAbsent(c, err, id)
}

func networkAbsent(c *call, err error, id evidence.ContainerID) error {
	if err != nil && c.absentNetwork(id.Hex()) {
		return fmt.Errorf("network %s: %w", id.Hex(), executor.ErrAbsent)
	}
	return err
}
