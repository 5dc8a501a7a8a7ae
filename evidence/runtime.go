package evidence

// DaemonIdentity tells one daemon on one machine in one boot (req C3). Removal and reconcile
// need Engine and Machine equal; success needs all of it equal at three points.
type DaemonIdentity struct {
	Engine    string     `cbor:"1,keyasint" json:"engine"`                      // the daemon's own ID
	Machine   *MachineID `cbor:"2,keyasint,omitempty" json:"machine,omitempty"` // none: machine-id-missing
	Boot      Nonce      `cbor:"3,keyasint" json:"boot"`
	SocketDev uint64     `cbor:"4,keyasint" json:"socket_dev"`
	SocketIno uint64     `cbor:"5,keyasint" json:"socket_ino"`
	PeerUID   uint32     `cbor:"6,keyasint" json:"peer_uid"`

	// Process is the daemon's own process, where it is the one that listens. It tells two lives of one
	// daemon in one boot apart and is no part of what must be equal.
	Process *DaemonProcess `cbor:"7,keyasint,omitempty" json:"process,omitempty"`
}

// DaemonProcess is one process in one boot, as seen from one PID namespace.
type DaemonProcess struct {
	PID       uint32 `cbor:"1,keyasint" json:"pid"`
	Start     uint64 `cbor:"2,keyasint" json:"start"`     // clock ticks from boot to its start (proc_pid_stat(5), field 22)
	Namespace uint64 `cbor:"3,keyasint" json:"namespace"` // inode of the PID namespace it was seen from
}

// SameHost reports whether both are the same engine on the same machine; unknown machines never are
// unless both lack an ID and share a boot.
func (d DaemonIdentity) SameHost(o DaemonIdentity) bool {
	if d.Engine != o.Engine || (d.Machine == nil) != (o.Machine == nil) {
		return false
	}
	if d.Machine == nil {
		return d.Boot == o.Boot
	}
	return *d.Machine == *o.Machine
}

// Equal reports whether both are the same daemon in the same boot behind the same socket.
func (d DaemonIdentity) Equal(o DaemonIdentity) bool {
	return d.SameHost(o) && d.Boot == o.Boot && d.SocketDev == o.SocketDev &&
		d.SocketIno == o.SocketIno && d.PeerUID == o.PeerUID
}

// BuildIdentity is what the daemon says it is made of.
type BuildIdentity struct {
	Version   string      `cbor:"1,keyasint" json:"version"`
	GitCommit string      `cbor:"2,keyasint" json:"git_commit"`
	API       string      `cbor:"3,keyasint" json:"api"` // highest API version it speaks
	Kernel    string      `cbor:"4,keyasint" json:"kernel"`
	OS        string      `cbor:"5,keyasint" json:"os"`
	Arch      string      `cbor:"6,keyasint" json:"arch"`
	Runtime   string      `cbor:"7,keyasint" json:"runtime"` // runc with its reported commit or version
	Facts     FactsDigest `cbor:"8,keyasint" json:"facts"`   // selected capability, runtime and component facts
}

// RuntimeIdentity is a daemon and its build.
type RuntimeIdentity struct {
	Daemon DaemonIdentity `cbor:"1,keyasint" json:"daemon"`
	Build  BuildIdentity  `cbor:"2,keyasint" json:"build"`
}

// Equal reports whether both parts are equal.
func (r RuntimeIdentity) Equal(o RuntimeIdentity) bool {
	return r.Daemon.Equal(o.Daemon) && r.Build == o.Build
}

// Digest names the runtime's stream: SHA-256 of the canonical array of engine ID, machine ID
// (null when missing) and build.
func (r RuntimeIdentity) Digest() RuntimeDigest {
	var machine any
	if r.Daemon.Machine != nil {
		machine = *r.Daemon.Machine
	}
	return Sum[runtimeMeaning](Marshal([]any{r.Daemon.Engine, machine, r.Build}))
}

// Stream is the runtime's stream.
func (r RuntimeIdentity) Stream() string { return RuntimePrefix + r.Digest().Hex() }
