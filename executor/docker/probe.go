package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"

	"github.com/baildock/baildock/executor"
)

// Probe looks at the socket, asks the daemon for its information and its version at once, looks at
// the socket again, and judges the answers.
func (d *Driver) Probe(ctx context.Context) (executor.Runtime, error) {
	api, err := d.pin(ctx)
	if err != nil {
		return executor.Runtime{}, err
	}
	before, err := d.lookAtSocket(ctx)
	if err != nil {
		return executor.Runtime{}, &executor.Fault{Call: "socket", Err: err}
	}
	var info system.Info
	infoErr := make(chan error, 1)
	go func() {
		_, err := d.control(ctx, "info", d.by.control, func(ctx context.Context) (err error) {
			info, err = d.api.Info(ctx)
			return err
		})
		infoErr <- err
	}()
	var version types.Version
	_, err = d.control(ctx, "version", d.by.control, func(ctx context.Context) (err error) {
		version, err = d.api.ServerVersion(ctx)
		return err
	})
	if e := <-infoErr; e != nil {
		err = e
	}
	if err != nil {
		return executor.Runtime{}, err
	}
	process := d.daemonProcess(before.pid) // between two looks at the socket
	after, err := d.lookAtSocket(ctx)
	if err != nil {
		return executor.Runtime{}, &executor.Fault{Call: "socket", Err: err}
	}
	if before != after {
		return executor.Runtime{}, &executor.Fault{Call: "socket", Err: errors.New("the socket was replaced during the probe")}
	}
	rt, err := identify(info, version, api, after, d.hostFacts())
	if err != nil {
		return executor.Runtime{}, &executor.Fault{Call: "info", Err: err}
	}
	rt.Identity.Daemon.Process = process
	return rt, nil
}

// hostFacts reads this machine's own texts; one that can't be read stays empty and is judged.
func (d *Driver) hostFacts() hostFacts {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(d.host, name))
		if err != nil || len(b) > maxFact {
			return ""
		}
		return string(b)
	}
	return hostFacts{
		machineID: read("etc/machine-id"),
		bootID:    read("proc/sys/kernel/random/boot_id"),
		kernel:    read("proc/sys/kernel/osrelease"),
	}
}
