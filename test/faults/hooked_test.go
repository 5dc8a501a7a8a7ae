package faults

import (
	"context"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// hooked is a driver whose calls of the daemon are told before they are made and after they came back.
type hooked struct {
	executor.Driver
	before, after func(call string)
}

func (h *hooked) around(call string) func() {
	h.before(call)
	return func() { h.after(call) }
}

func (h *hooked) Probe(ctx context.Context) (executor.Runtime, error) {
	defer h.around("probe")()
	return h.Driver.Probe(ctx)
}

func (h *hooked) ImageInspect(ctx context.Context, ref string) (executor.Image, error) {
	defer h.around("image")()
	return h.Driver.ImageInspect(ctx, ref)
}

func (h *hooked) Create(ctx context.Context, p executor.Plan) (executor.Created, error) {
	defer h.around("create")()
	return h.Driver.Create(ctx, p)
}

func (h *hooked) Inspect(ctx context.Context, id evidence.ContainerID) (executor.Inspection, error) {
	defer h.around("inspect")()
	return h.Driver.Inspect(ctx, id)
}

func (h *hooked) FindOwned(ctx context.Context, r evidence.RequestDigest, k evidence.HandleKey) ([]evidence.ContainerID, error) {
	defer h.around("find")()
	return h.Driver.FindOwned(ctx, r, k)
}

func (h *hooked) Attach(ctx context.Context, id evidence.ContainerID) (executor.Output, error) {
	defer h.around("attach")()
	return h.Driver.Attach(ctx, id)
}

func (h *hooked) Wait(ctx context.Context, id evidence.ContainerID) (<-chan executor.Exit, error) {
	defer h.around("wait")()
	return h.Driver.Wait(ctx, id)
}

func (h *hooked) Start(ctx context.Context, id evidence.ContainerID) error {
	defer h.around("start")()
	return h.Driver.Start(ctx, id)
}

func (h *hooked) Kill(ctx context.Context, id evidence.ContainerID) error {
	defer h.around("kill")()
	return h.Driver.Kill(ctx, id)
}

func (h *hooked) Remove(ctx context.Context, id evidence.ContainerID) error {
	defer h.around("remove")()
	return h.Driver.Remove(ctx, id)
}

func (h *hooked) Events(ctx context.Context) (executor.EventStream, error) {
	defer h.around("events")()
	return h.Driver.Events(ctx)
}
