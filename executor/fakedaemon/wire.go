package fakedaemon

// The documents of the Engine API as Engine 20.10 (API 1.41) writes them: the same fields, order,
// and choice between null, empty and left out. Fields of newer APIs are marked.

// config is a container's or image's configuration.
type config struct {
	Hostname        string
	Domainname      string
	User            string
	AttachStdin     bool
	AttachStdout    bool
	AttachStderr    bool
	ExposedPorts    map[string]struct{} `json:",omitempty"`
	Tty             bool
	OpenStdin       bool
	StdinOnce       bool
	Env             []string
	Cmd             []string
	Healthcheck     *healthcheck `json:",omitempty"`
	ArgsEscaped     bool         `json:",omitempty"`
	Image           string
	Volumes         map[string]struct{}
	WorkingDir      string
	Entrypoint      []string
	NetworkDisabled bool   `json:",omitempty"`
	MacAddress      string `json:",omitempty"`
	OnBuild         []string
	Labels          map[string]string
	StopSignal      string   `json:",omitempty"`
	StopTimeout     *int     `json:",omitempty"`
	Shell           []string `json:",omitempty"`
}

type healthcheck struct {
	Test        []string `json:",omitempty"`
	Interval    int64    `json:",omitempty"`
	Timeout     int64    `json:",omitempty"`
	StartPeriod int64    `json:",omitempty"`
	Retries     int      `json:",omitempty"`
}

// hostConfig is what the host grants a container.
type hostConfig struct {
	Binds           []string
	ContainerIDFile string
	LogConfig       logConfig
	NetworkMode     string
	PortBindings    map[string][]any
	RestartPolicy   restartPolicy
	AutoRemove      bool
	VolumeDriver    string
	VolumesFrom     []string
	CapAdd          []string
	CapDrop         []string
	CgroupnsMode    string
	Dns             []string
	DnsOptions      []string
	DnsSearch       []string
	ExtraHosts      []string
	GroupAdd        []string
	IpcMode         string
	Cgroup          string
	Links           []string
	OomScoreAdj     int
	PidMode         string
	Privileged      bool
	PublishAllPorts bool
	ReadonlyRootfs  bool
	SecurityOpt     []string
	StorageOpt      map[string]string `json:",omitempty"`
	Tmpfs           map[string]string `json:",omitempty"`
	UTSMode         string
	UsernsMode      string
	ShmSize         int64
	Sysctls         map[string]string `json:",omitempty"`
	Runtime         string            `json:",omitempty"`
	ConsoleSize     [2]uint
	Isolation       string
	resources
	Mounts        []mountRequest `json:",omitempty"`
	MaskedPaths   []string
	ReadonlyPaths []string
	Init          *bool `json:",omitempty"`
}

type resources struct {
	CpuShares            int64
	Memory               int64
	NanoCpus             int64
	CgroupParent         string
	BlkioWeight          uint16
	BlkioWeightDevice    []any
	BlkioDeviceReadBps   []any
	BlkioDeviceWriteBps  []any
	BlkioDeviceReadIOps  []any
	BlkioDeviceWriteIOps []any
	CpuPeriod            int64
	CpuQuota             int64
	CpuRealtimePeriod    int64
	CpuRealtimeRuntime   int64
	CpusetCpus           string
	CpusetMems           string
	Devices              []any
	DeviceCgroupRules    []string
	DeviceRequests       []any
	KernelMemory         *int64 `json:",omitempty"` // gone in 1.42
	KernelMemoryTCP      *int64 `json:",omitempty"` // gone in 1.42
	MemoryReservation    int64
	MemorySwap           int64
	MemorySwappiness     *int64
	OomKillDisable       *bool
	PidsLimit            *int64
	Ulimits              []ulimit
	CpuCount             int64
	CpuPercent           int64
	IOMaximumIOps        uint64
	IOMaximumBandwidth   uint64
}

type logConfig struct {
	Type   string
	Config map[string]string
}

type restartPolicy struct {
	Name              string
	MaximumRetryCount int
}

type ulimit struct {
	Name string
	Hard int64
	Soft int64
}

type mountRequest struct {
	Type          string         `json:",omitempty"`
	Source        string         `json:",omitempty"`
	Target        string         `json:",omitempty"`
	ReadOnly      bool           `json:",omitempty"`
	Consistency   string         `json:",omitempty"`
	BindOptions   *bindOptions   `json:",omitempty"`
	VolumeOptions map[string]any `json:",omitempty"`
	TmpfsOptions  map[string]any `json:",omitempty"`
}

type bindOptions struct {
	Propagation            string `json:",omitempty"`
	NonRecursive           bool   `json:",omitempty"`
	CreateMountpoint       bool   `json:",omitempty"` // 1.42
	ReadOnlyNonRecursive   bool   `json:",omitempty"` // 1.44
	ReadOnlyForceRecursive bool   `json:",omitempty"` // 1.44
}

// mountPoint is a mount as inspected.
type mountPoint struct {
	Type        string
	Name        string `json:",omitempty"`
	Source      string
	Destination string
	Driver      string `json:",omitempty"`
	Mode        string
	RW          bool
	Propagation string
}

type containerState struct {
	Status     string
	Running    bool
	Paused     bool
	Restarting bool
	OOMKilled  bool
	Dead       bool
	Pid        int
	ExitCode   int
	Error      string
	StartedAt  string
	FinishedAt string
}

type graphDriver struct {
	Data map[string]string
	Name string
}

type networkSettings struct {
	Bridge                 string
	SandboxID              string
	HairpinMode            bool
	LinkLocalIPv6Address   string
	LinkLocalIPv6PrefixLen int
	Ports                  map[string]any
	SandboxKey             string
	SecondaryIPAddresses   []any
	SecondaryIPv6Addresses []any
	EndpointID             string
	Gateway                string
	GlobalIPv6Address      string
	GlobalIPv6PrefixLen    int
	IPAddress              string
	IPPrefixLen            int
	IPv6Gateway            string
	MacAddress             string
	Networks               map[string]endpoint
}

type endpoint struct {
	IPAMConfig          any
	Links               []string
	Aliases             []string
	NetworkID           string
	EndpointID          string
	Gateway             string
	IPAddress           string
	IPPrefixLen         int
	IPv6Gateway         string
	GlobalIPv6Address   string
	GlobalIPv6PrefixLen int
	MacAddress          string
	DriverOpts          map[string]string
	GwPriority          *int      `json:",omitempty"` // 1.48
	DNSNames            *[]string `json:",omitempty"` // 1.44
}

type inspectReply struct {
	Id              string
	Created         string
	Path            string
	Args            []string
	State           containerState
	Image           string
	ResolvConfPath  string
	HostnamePath    string
	HostsPath       string
	LogPath         string
	Name            string
	RestartCount    int
	Driver          string
	Platform        string
	MountLabel      string
	ProcessLabel    string
	AppArmorProfile string
	ExecIDs         []string
	HostConfig      hostConfig
	GraphDriver     graphDriver
	Mounts          []mountPoint
	Config          config
	NetworkSettings networkSettings
}

type listEntry struct {
	Id              string
	Names           []string
	Image           string
	ImageID         string
	Command         string
	Created         int64
	Ports           []any
	Labels          map[string]string
	State           string
	Status          string
	HostConfig      struct{ NetworkMode string }
	NetworkSettings struct{ Networks map[string]endpoint }
	Mounts          []mountPoint
}

type createRequest struct {
	config
	HostConfig       *hostConfig
	NetworkingConfig *struct{ EndpointsConfig map[string]*endpoint }
}

type createReply struct {
	Id       string
	Warnings []string
}

type imageReply struct {
	Id              string
	RepoTags        []string
	RepoDigests     []string
	Parent          string
	Comment         string
	Created         string
	Container       *string `json:",omitempty"` // gone in 1.45
	ContainerConfig *config `json:",omitempty"` // gone in 1.45
	DockerVersion   string
	Author          string
	Config          config
	Architecture    string
	Os              string
	Size            int64
	VirtualSize     *int64 `json:",omitempty"` // gone in 1.44
	GraphDriver     graphDriver
	RootFS          struct {
		Type   string
		Layers []string
	}
	Metadata struct{ LastTagTime string }
}

type imageEntry struct {
	Containers  int64
	Created     int64
	Id          string
	Labels      map[string]string
	ParentId    string
	RepoDigests []string
	RepoTags    []string
	SharedSize  int64
	Size        int64
	VirtualSize *int64 `json:",omitempty"` // gone in 1.44
}

type networkReply struct {
	Name       string
	Id         string
	Created    string
	Scope      string
	Driver     string
	EnableIPv6 bool
	IPAM       struct {
		Driver  string
		Options map[string]string
		Config  []map[string]string
	}
	Internal   bool
	Attachable bool
	Ingress    bool
	ConfigFrom struct{ Network string }
	ConfigOnly bool
	Containers map[string]networkMember
	Options    map[string]string
	Labels     map[string]string
}

type networkMember struct {
	Name        string
	EndpointID  string
	MacAddress  string
	IPv4Address string
	IPv6Address string
}
