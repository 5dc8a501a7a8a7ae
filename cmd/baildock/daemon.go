package main

import (
	"context"
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
)

func socketFlag() cli.Flag {
	return &cli.StringFlag{Name: "docker-socket", Value: docker.DefaultSocket, Usage: "local Unix socket `PATH` of the Docker daemon"}
}

// openDaemon prepares the driver. Only the flag names a daemon; what the environment says of one
// is ignored, with a note (req C1).
func (p *program) openDaemon(c *cli.Context) (*docker.Driver, error) {
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT"} {
		if os.Getenv(name) != "" {
			p.note("note: %s is set and ignored; --docker-socket names the daemon", name)
		}
	}
	d, err := docker.Open(c.String("docker-socket"))
	if err != nil {
		return nil, fail(exitUsage, "docker_socket", "%w", err)
	}
	return d, nil
}

// imageResolver finds a local image by name or ID.
type imageResolver func(ctx context.Context, ref string) (executor.Image, error)

func (p *program) resolver(c *cli.Context) imageResolver {
	return func(ctx context.Context, ref string) (img executor.Image, err error) {
		d, err := p.openDaemon(c)
		if err != nil {
			return img, err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		img, err = d.ImageInspect(ctx, ref)
		var fault *executor.Fault
		switch {
		case errors.Is(err, executor.ErrAbsent):
			return img, fail(exitRefused, "image_absent", "image %q is not on this daemon; nothing was recorded", ref).
				hint("nothing is ever pulled: baildock image list shows what is here, baildock image make makes one")
		case errors.As(err, &fault):
			return img, daemonFailure(c, err)
		case err != nil:
			return img, fail(exitUsage, "image_name", "%w", err)
		}
		return img, nil
	}
}

// daemonFailure is a daemon that can't be used, before anything was recorded.
func daemonFailure(c *cli.Context, err error) error {
	return fail(exitRefused, "daemon_unavailable", "the Docker daemon can't be used: %w", err).
		hint("is it running, and may you use %s? --docker-socket names another", c.String("docker-socket"))
}
