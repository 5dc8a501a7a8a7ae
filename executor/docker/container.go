package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// Create renders the plan and sends it.
func (d *Driver) Create(ctx context.Context, p executor.Plan) (executor.Created, error) {
	var out executor.Created
	req, err := render(p)
	if err != nil {
		return out, fmt.Errorf("%w: %w", executor.ErrNotSent, err)
	}
	_, err = d.control(ctx, "create", d.by.create, func(ctx context.Context) error {
		resp, err := d.api.ContainerCreate(ctx, req.Config, req.HostConfig, req.NetworkingConfig, nil, p.Name)
		if err != nil {
			return err
		}
		if out.ID, err = parseID(resp.ID); err != nil {
			return err
		}
		for _, w := range resp.Warnings {
			out.Warnings = append(out.Warnings, clip(w, maxMessage))
		}
		return nil
	})
	return out, err
}

// Inspect reads one container by full ID.
func (d *Driver) Inspect(ctx context.Context, id evidence.ContainerID) (executor.Inspection, error) {
	var in executor.Inspection
	c, err := d.control(ctx, "inspect", d.by.control, func(ctx context.Context) error {
		_, raw, err := d.api.ContainerInspectWithRaw(ctx, id.Hex(), false)
		if err != nil {
			return err
		}
		if in, err = parseInspection(raw); err != nil {
			return err
		}
		if in.ID != id {
			return fmt.Errorf("asked for container %s, got %s", id.Hex(), in.ID.Hex())
		}
		return nil
	})
	return in, orAbsent(c, err, id)
}

// FindOwned lists by both labels. The daemon filters; what it lists is checked again.
func (d *Driver) FindOwned(ctx context.Context, request evidence.RequestDigest, handle evidence.HandleKey) ([]evidence.ContainerID, error) {
	var ids []evidence.ContainerID
	want := map[string]string{executor.LabelRequest: request.String(), executor.LabelHandle: handle.String()}
	args := filters.NewArgs()
	for k, v := range want {
		args.Add("label", k+"="+v)
	}
	_, err := d.control(ctx, "list", d.by.control, func(ctx context.Context) error {
		list, err := d.api.ContainerList(ctx, container.ListOptions{All: true, Filters: args})
		if err != nil {
			return err
		}
		if len(list) > maxContainers {
			return fmt.Errorf("%w: %d containers carry the same labels", errTooLarge, len(list))
		}
		for _, s := range list {
			if s.Labels[executor.LabelRequest] != want[executor.LabelRequest] || s.Labels[executor.LabelHandle] != want[executor.LabelHandle] {
				return fmt.Errorf("the daemon listed a container without the labels asked for")
			}
			id, err := parseID(s.ID)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ids, func(a, b evidence.ContainerID) int { return strings.Compare(a.Hex(), b.Hex()) })
	return ids, nil
}

// errStarted stands for the daemon's answer that the container ran already, which has no text.
var errStarted = errors.New("somebody else started the container before")

// Start starts a created container. One that runs already was started by somebody else.
func (d *Driver) Start(ctx context.Context, id evidence.ContainerID) error {
	c, err := d.control(ctx, "start", d.by.control, func(ctx context.Context) error {
		return d.api.ContainerStart(ctx, id.Hex(), container.StartOptions{})
	})
	if err == nil && c.status == http.StatusNotModified { // no error to the client
		return &executor.Fault{Call: "start", Answered: true, Status: c.status, Err: errStarted}
	}
	return orAbsent(c, err, id)
}

// Kill sends SIGKILL. A container that isn't running is as good as killed.
func (d *Driver) Kill(ctx context.Context, id evidence.ContainerID) error {
	c, err := d.control(ctx, "kill", d.by.control, func(ctx context.Context) error {
		return d.api.ContainerKill(ctx, id.Hex(), "SIGKILL")
	})
	if err != nil && c.broken() == nil && c.status == http.StatusConflict && strings.Contains(c.message, "is not running") {
		return nil
	}
	return orAbsent(c, err, id)
}

// Remove removes by full ID, running or not, with its anonymous volumes (a container of ours has none).
func (d *Driver) Remove(ctx context.Context, id evidence.ContainerID) error {
	c, err := d.control(ctx, "remove", d.by.control, func(ctx context.Context) error {
		return d.api.ContainerRemove(ctx, id.Hex(), container.RemoveOptions{Force: true, RemoveVolumes: true})
	})
	return orAbsent(c, err, id)
}

func orAbsent(c *call, err error, id evidence.ContainerID) error {
	if err != nil && c.absent("container", id.Hex()) {
		return fmt.Errorf("container %s: %w", id.Hex(), executor.ErrAbsent)
	}
	return err
}

// parseID reads the daemon's full container ID: 64 lower-case hex digits and nothing else.
func parseID(s string) (evidence.ContainerID, error) {
	var id evidence.ContainerID
	if err := id.UnmarshalText([]byte(s)); err != nil || strings.HasPrefix(s, "sha256:") {
		return evidence.ContainerID{}, fmt.Errorf("container ID %q is not 64 lower-case hex digits", clip(s, maxFact))
	}
	return id, nil
}
