package evidence

// commandProfile is the whole of `command/v1`.
var commandProfile = Profile{
	Version:     1,
	Name:        ProfileCommand,
	UID:         65532,
	GID:         65532,
	Hostname:    "baildock",
	WorkDir:     "/source",
	SourcePath:  "/source",
	ScratchPath: "/scratch",
	Environment: []EnvVar{{"HOME", "/scratch"}, {"TMPDIR", "/scratch"}},
	Injected:    []string{"HOSTNAME", "PATH"},
	Network:     NetworkNone,
	Nofile:      128,
	Core:        0,
	Controls:    commandControls,
	Fields:      commandFields,
}

// Controls of `command/v1`. Numbers are never reused; other profiles use the same number for the
// same meaning.
const (
	CtlImage        ControlID = 1
	CtlArgv         ControlID = 2
	CtlEnvironment  ControlID = 3
	CtlWorkDir      ControlID = 4
	CtlUser         ControlID = 5
	CtlGroups       ControlID = 6
	CtlHostname     ControlID = 7
	CtlOwnership    ControlID = 8
	CtlStreams      ControlID = 9
	CtlNetwork      ControlID = 10
	CtlPorts        ControlID = 11
	CtlNameLookup   ControlID = 12
	CtlReadOnlyRoot ControlID = 13
	CtlSource       ControlID = 14
	CtlScratch      ControlID = 15
	CtlNoMounts     ControlID = 16
	CtlNoDevices    ControlID = 17
	CtlCapabilities ControlID = 18
	CtlNoNewPrivs   ControlID = 19
	CtlSeccomp      ControlID = 20
	CtlUnprivileged ControlID = 21
	CtlLSM          ControlID = 22
	CtlPIDSpace     ControlID = 23
	CtlIPCSpace     ControlID = 24
	CtlUTSSpace     ControlID = 25
	CtlCgroupSpace  ControlID = 26
	CtlMountSpace   ControlID = 27
	CtlUserSpace    ControlID = 28
	CtlCgroup       ControlID = 29
	CtlRuntime      ControlID = 30
	CtlNoInit       ControlID = 31
	CtlMemory       ControlID = 32
	CtlSwap         ControlID = 33
	CtlOOMKiller    ControlID = 34
	CtlCPU          ControlID = 35
	CtlPIDs         ControlID = 36
	CtlBlockIO      ControlID = 37
	CtlNofile       ControlID = 38
	CtlCore         ControlID = 39
	CtlNoLog        ControlID = 40
	CtlNoRestart    ControlID = 41
	CtlNoHealth     ControlID = 42
	CtlNoSysctls    ControlID = 43
	CtlMaskedPaths  ControlID = 44
	CtlNoExec       ControlID = 45
	CtlState        ControlID = 46
)

var (
	byInspection = []EvidenceKind{Observed, Kernel}
	// Inspection never shows a default profile, and a report of the daemon alone is no observation.
	bySeccomp = []EvidenceKind{Observed, Kernel, Probed}
	// No field of the API can ask for a shared mount namespace: each container gets its own.
	byConstruction = []EvidenceKind{Accepted, Kernel}
)

var commandControls = []ControlSpec{
	{CtlImage, "image", byInspection},
	{CtlArgv, "argv", byInspection},
	{CtlEnvironment, "environment", byInspection},
	{CtlWorkDir, "working_directory", byInspection},
	{CtlUser, "user", byInspection},
	{CtlGroups, "groups", byInspection},
	{CtlHostname, "hostname", byInspection},
	{CtlOwnership, "ownership", byInspection},
	{CtlStreams, "streams", byInspection},
	{CtlNetwork, "network", byInspection},
	{CtlPorts, "ports", byInspection},
	{CtlNameLookup, "name_lookup", byInspection},
	{CtlReadOnlyRoot, "read_only_root", byInspection},
	{CtlSource, "source_mount", byInspection},
	{CtlScratch, "scratch_mount", byInspection},
	{CtlNoMounts, "no_other_mounts", byInspection},
	{CtlNoDevices, "no_devices", byInspection},
	{CtlCapabilities, "capabilities", byInspection},
	{CtlNoNewPrivs, "no_new_privileges", byInspection},
	{CtlSeccomp, "seccomp", bySeccomp},
	{CtlUnprivileged, "unprivileged", byInspection},
	{CtlLSM, "security_module", byInspection},
	{CtlPIDSpace, "pid_namespace", byInspection},
	{CtlIPCSpace, "ipc_namespace", byInspection},
	{CtlUTSSpace, "uts_namespace", byInspection},
	{CtlCgroupSpace, "cgroup_namespace", byInspection},
	{CtlMountSpace, "mount_namespace", byConstruction},
	{CtlUserSpace, "user_namespace", byInspection},
	{CtlCgroup, "cgroup", byInspection},
	{CtlRuntime, "runtime", byInspection},
	{CtlNoInit, "no_init", byInspection},
	{CtlMemory, "memory", byInspection},
	{CtlSwap, "swap", byInspection},
	{CtlOOMKiller, "oom_killer", byInspection},
	{CtlCPU, "cpu", byInspection},
	{CtlPIDs, "processes", byInspection},
	{CtlBlockIO, "block_io", byInspection},
	{CtlNofile, "open_files", byInspection},
	{CtlCore, "core_dumps", byInspection},
	{CtlNoLog, "no_log", byInspection},
	{CtlNoRestart, "no_restart", byInspection},
	{CtlNoHealth, "no_health_command", byInspection},
	{CtlNoSysctls, "no_sysctls", byInspection},
	{CtlMaskedPaths, "masked_paths", byInspection},
	{CtlNoExec, "no_exec", byInspection},
	{CtlState, "state", byInspection},
}

// commandFields is sorted by path. Values of the run:
//
//	${id} ${name}                     the container's full ID, and its name after a slash
//	${image} ${executable} ${args}    of the recipe
//	${env} ${labels}                  everything declared: recipe and profile; image and ownership
//	${user} ${hostname} ${work_dir}   of the profile
//	${mounts_asked} ${mounts_made}    the source, as asked for and as Docker made it
//	${tmpfs} ${security} ${ulimits}   scratch options by path; security options; resource limits
//	${network} ${networks}            the network's name, and the list of it alone
//	${memory} ${nano_cpus} ${pids}    limits of the recipe
//
// Fields of the state are bookkeeping: they move on between create and exit, and the runner
// reads them by themselves.
var commandFields = []FieldRule{
	{"AppArmorProfile", FieldOneOf, `["","docker-default"]`, CtlLSM},
	{"Args", FieldEqual, `${args}`, CtlArgv},
	{"Config.AttachStderr", FieldEqual, `true`, CtlStreams},
	{"Config.AttachStdin", FieldEqual, `false`, CtlStreams},
	{"Config.AttachStdout", FieldEqual, `true`, CtlStreams},
	{"Config.Cmd", FieldEqual, `${args}`, CtlArgv},
	{"Config.Domainname", FieldEqual, `""`, CtlHostname},
	{"Config.Entrypoint", FieldEqual, `[${executable}]`, CtlArgv},
	{"Config.Env", FieldEqual, `${env}`, CtlEnvironment},
	{"Config.ExposedPorts", FieldAny, ``, CtlPorts}, // an image's wish; nothing is published by it
	{"Config.Healthcheck", FieldEqual, `{"Test":["NONE"]}`, CtlNoHealth},
	{"Config.Hostname", FieldEqual, `${hostname}`, CtlHostname},
	{"Config.Image", FieldEqual, `${image}`, CtlImage},
	{"Config.Labels", FieldEqual, `${labels}`, CtlOwnership},
	{"Config.OpenStdin", FieldEqual, `false`, CtlStreams},
	{"Config.StdinOnce", FieldEqual, `false`, CtlStreams},
	{"Config.StopSignal", FieldEqual, `"SIGKILL"`, CtlNoRestart},
	{"Config.Tty", FieldEqual, `false`, CtlStreams},
	{"Config.User", FieldEqual, `${user}`, CtlUser},
	{"Config.Volumes", FieldEqual, `null`, CtlNoMounts},
	{"Config.WorkingDir", FieldEqual, `${work_dir}`, CtlWorkDir},
	{"Created", FieldAny, ``, 0},
	{"Driver", FieldAny, ``, 0}, // storage driver
	{"ExecIDs", FieldEqual, `null`, CtlNoExec},
	{"GraphDriver", FieldAny, ``, 0}, // directories of the storage driver
	{"HostConfig.AutoRemove", FieldEqual, `false`, CtlNoRestart},
	{"HostConfig.Binds", FieldEqual, `null`, CtlNoMounts},
	{"HostConfig.BlkioDeviceReadBps", FieldEqual, `null`, CtlBlockIO},
	{"HostConfig.BlkioDeviceReadIOps", FieldEqual, `null`, CtlBlockIO},
	{"HostConfig.BlkioDeviceWriteBps", FieldEqual, `null`, CtlBlockIO},
	{"HostConfig.BlkioDeviceWriteIOps", FieldEqual, `null`, CtlBlockIO},
	{"HostConfig.BlkioWeight", FieldEqual, `0`, CtlBlockIO},
	{"HostConfig.BlkioWeightDevice", FieldEqual, `null`, CtlBlockIO},
	{"HostConfig.CapAdd", FieldEqual, `null`, CtlCapabilities},
	{"HostConfig.CapDrop", FieldEqual, `["ALL"]`, CtlCapabilities},
	{"HostConfig.Cgroup", FieldEqual, `""`, CtlCgroup},
	{"HostConfig.CgroupParent", FieldEqual, `""`, CtlCgroup},
	{"HostConfig.CgroupnsMode", FieldEqual, `"private"`, CtlCgroupSpace},
	{"HostConfig.ConsoleSize", FieldOneOf, `[[0,0],null]`, CtlStreams},
	{"HostConfig.CpuPeriod", FieldEqual, `0`, CtlCPU},
	{"HostConfig.CpuQuota", FieldEqual, `0`, CtlCPU},
	{"HostConfig.CpuShares", FieldEqual, `0`, CtlCPU},
	{"HostConfig.CpusetCpus", FieldEqual, `""`, CtlCPU},
	{"HostConfig.CpusetMems", FieldEqual, `""`, CtlCPU},
	{"HostConfig.DeviceCgroupRules", FieldEqual, `null`, CtlNoDevices},
	{"HostConfig.DeviceRequests", FieldEqual, `null`, CtlNoDevices},
	{"HostConfig.Devices", FieldEqual, `null`, CtlNoDevices},
	{"HostConfig.Dns", FieldEqual, `null`, CtlNameLookup},
	{"HostConfig.DnsOptions", FieldEqual, `null`, CtlNameLookup},
	{"HostConfig.DnsSearch", FieldEqual, `null`, CtlNameLookup},
	{"HostConfig.ExtraHosts", FieldEqual, `null`, CtlNameLookup},
	{"HostConfig.GroupAdd", FieldEqual, `null`, CtlGroups},
	{"HostConfig.Init", FieldEqual, `false`, CtlNoInit},
	{"HostConfig.IpcMode", FieldEqual, `"none"`, CtlIPCSpace},
	{"HostConfig.Isolation", FieldEqual, `""`, CtlRuntime},
	{"HostConfig.Links", FieldEqual, `null`, CtlNameLookup},
	{"HostConfig.LogConfig.Config", FieldEqual, `null`, CtlNoLog},
	{"HostConfig.LogConfig.Type", FieldEqual, `"none"`, CtlNoLog},
	{"HostConfig.MaskedPaths", FieldHolds, `["/proc/asound","/proc/acpi","/proc/kcore","/proc/keys","/proc/latency_stats","/proc/timer_list","/proc/timer_stats","/proc/sched_debug","/proc/scsi","/sys/firmware"]`, CtlMaskedPaths},
	{"HostConfig.Memory", FieldEqual, `${memory}`, CtlMemory},
	{"HostConfig.MemoryReservation", FieldEqual, `0`, CtlMemory},
	{"HostConfig.MemorySwap", FieldEqual, `${memory}`, CtlSwap},
	{"HostConfig.MemorySwappiness", FieldOneOf, `[null,-1]`, CtlSwap}, // older engines spell "unset" as -1
	{"HostConfig.Mounts", FieldEqual, `${mounts_asked}`, CtlSource},
	{"HostConfig.NanoCpus", FieldEqual, `${nano_cpus}`, CtlCPU},
	{"HostConfig.NetworkMode", FieldEqual, `${network}`, CtlNetwork},
	{"HostConfig.OomKillDisable", FieldOneOf, `[false,null]`, CtlOOMKiller},
	{"HostConfig.OomScoreAdj", FieldEqual, `0`, CtlOOMKiller},
	{"HostConfig.PidMode", FieldEqual, `""`, CtlPIDSpace},
	{"HostConfig.PidsLimit", FieldEqual, `${pids}`, CtlPIDs},
	{"HostConfig.PortBindings", FieldEqual, `null`, CtlPorts},
	{"HostConfig.Privileged", FieldEqual, `false`, CtlUnprivileged},
	{"HostConfig.PublishAllPorts", FieldEqual, `false`, CtlPorts},
	{"HostConfig.ReadonlyPaths", FieldHolds, `["/proc/bus","/proc/fs","/proc/irq","/proc/sys","/proc/sysrq-trigger"]`, CtlMaskedPaths},
	{"HostConfig.ReadonlyRootfs", FieldEqual, `true`, CtlReadOnlyRoot},
	{"HostConfig.RestartPolicy.MaximumRetryCount", FieldEqual, `0`, CtlNoRestart},
	{"HostConfig.RestartPolicy.Name", FieldEqual, `"no"`, CtlNoRestart},
	{"HostConfig.Runtime", FieldEqual, `"runc"`, CtlRuntime},
	{"HostConfig.SecurityOpt", FieldEqual, `${security}`, CtlNoNewPrivs},
	{"HostConfig.SecurityOpt", FieldEqual, `${security}`, CtlSeccomp},
	{"HostConfig.ShmSize", FieldEqual, `67108864`, CtlIPCSpace}, // named, but IPC mode none mounts no shared memory
	{"HostConfig.StorageOpt", FieldEqual, `null`, CtlBlockIO},
	{"HostConfig.Sysctls", FieldEqual, `null`, CtlNoSysctls},
	{"HostConfig.Tmpfs", FieldEqual, `${tmpfs}`, CtlScratch},
	{"HostConfig.UTSMode", FieldEqual, `""`, CtlUTSSpace},
	{"HostConfig.Ulimits", FieldEqual, `${ulimits}`, CtlNofile},
	{"HostConfig.Ulimits", FieldEqual, `${ulimits}`, CtlCore},
	{"HostConfig.UsernsMode", FieldEqual, `""`, CtlUserSpace},
	{"HostConfig.VolumeDriver", FieldEqual, `""`, CtlNoMounts},
	{"HostConfig.VolumesFrom", FieldEqual, `null`, CtlNoMounts},
	{"HostnamePath", FieldAny, ``, 0}, // files the daemon makes and mounts read-only
	{"HostsPath", FieldAny, ``, 0},
	{"Id", FieldEqual, `${id}`, CtlOwnership},
	{"Image", FieldEqual, `${image}`, CtlImage},
	{"ImageManifestDescriptor", FieldAny, ``, 0}, // where the image came from; its ID is compared
	{"LogPath", FieldEqual, `""`, CtlNoLog},
	{"MountLabel", FieldAny, ``, 0}, // SELinux labels the daemon chose; asking for others is a security option
	{"Mounts", FieldEqual, `${mounts_made}`, CtlSource},
	{"Mounts", FieldEqual, `${mounts_made}`, CtlNoMounts},
	{"Name", FieldEqual, `${name}`, CtlOwnership},
	{"NetworkSettings.Networks", FieldKeys, `${networks}`, CtlNetwork},
	{"NetworkSettings.Networks.none.EndpointID", FieldAny, ``, 0}, // random, set by the start
	{"NetworkSettings.Networks.none.NetworkID", FieldAny, ``, 0},
	{"NetworkSettings.SandboxID", FieldAny, ``, 0},
	{"NetworkSettings.SandboxKey", FieldAny, ``, 0},
	{"Path", FieldEqual, `${executable}`, CtlArgv},
	{"Platform", FieldEqual, `"linux"`, CtlRuntime},
	{"ProcessLabel", FieldAny, ``, 0},
	{"ResolvConfPath", FieldAny, ``, 0},
	{"RestartCount", FieldEqual, `0`, CtlNoRestart},
	{"State.Dead", FieldEqual, `false`, CtlState},
	{"State.Error", FieldAny, ``, 0},
	{"State.ExitCode", FieldAny, ``, 0},
	{"State.FinishedAt", FieldAny, ``, 0},
	{"State.OOMKilled", FieldAny, ``, 0},
	{"State.Paused", FieldEqual, `false`, CtlState},
	{"State.Pid", FieldAny, ``, 0},
	{"State.Restarting", FieldEqual, `false`, CtlState},
	{"State.Running", FieldAny, ``, 0},
	{"State.StartedAt", FieldAny, ``, 0},
	{"State.Status", FieldOneOf, `["created","running","exited"]`, CtlState},
}
