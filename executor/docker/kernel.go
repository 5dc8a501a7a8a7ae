package docker

import (
	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

func (d *Driver) Kernel(p executor.Plan, id evidence.ContainerID, pid int) executor.KernelSight {
	return executor.KernelSight{}
}
