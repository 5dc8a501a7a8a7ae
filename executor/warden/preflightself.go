package warden

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// SelfReport is what the probe of a preflight prints on its standard output: one canonical value. What
// it could not look at is named by Failed and stays zero, which equals nothing that is asked for.
type SelfReport struct {
	Version uint          `cbor:"1,keyasint"` // 1
	Status  []StatusField `cbor:"2,keyasint"` // lines of /proc/self/status, sorted by name
	Marker  []byte        `cbor:"3,keyasint"` // what the marker holds
	Root    Filesystem    `cbor:"4,keyasint"` // of /
	Scratch Filesystem    `cbor:"5,keyasint"` // of the scratch directory
	Routes  []string      `cbor:"6,keyasint"` // interfaces with a route, the loopback's apart, sorted
	Failed  []string      `cbor:"7,keyasint"` // what could not be looked at
}

// Filesystem is one filesystem as the probe met it.
type Filesystem struct {
	Type     int64  `cbor:"1,keyasint"` // statfs's
	Size     uint64 `cbor:"2,keyasint"` // bytes
	Block    uint64 `cbor:"3,keyasint"` // bytes
	ReadOnly bool   `cbor:"4,keyasint"` // mounted so
	Create   uint   `cbor:"5,keyasint"` // errno of making a file and writing to it; 0: it worked
	Beyond   uint   `cbor:"6,keyasint"` // errno of one block more than it has; 0: it worked, or was not tried
}

// Lines of /proc/self/status that a preflight asks for.
var selfLines = []string{"CapAmb", "CapBnd", "CapEff", "CapInh", "CapPrm", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Uid"}

// lookRoutes is how Failed names the look at the routes: there, nothing found is something.
const lookRoutes = "routes"

// markerName lies in the private directory that is bound at the workspace's place.
const markerName = "marker"

// maxMarker is more than a marker has.
const maxMarker = 256

// PreflightSelf reports the process and the container it runs in. It is what the binary does inside a
// preflight's container.
func PreflightSelf(out io.Writer) error {
	r := SelfReport{Version: 1, Status: []StatusField{}, Routes: []string{}, Failed: []string{}}
	table, err := evidence.ProfileByName(evidence.ProfileContained)
	if err != nil {
		return err
	}
	for _, look := range []struct {
		name string
		at   func() error
	}{
		{"status", r.status},
		{"marker", func() error { return r.marker(filepath.Join(table.SourcePath, markerName)) }},
		{"root", func() error { return r.Root.look("/", false) }},
		{"scratch", func() error { return r.Scratch.look(table.ScratchPath, true) }},
		{lookRoutes, r.routes},
	} {
		if err := look.at(); err != nil {
			r.Failed = append(r.Failed, look.name)
		}
	}
	_, err = out.Write(evidence.Marshal(r))
	return err
}

func (r *SelfReport) status() error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		name, value, ok := strings.Cut(string(line), ":")
		if ok && slices.Contains(selfLines, name) {
			r.Status = append(r.Status, StatusField{name, strings.Join(strings.Fields(value), " ")})
		}
	}
	slices.SortFunc(r.Status, func(a, b StatusField) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func (r *SelfReport) marker(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	r.Marker, err = io.ReadAll(io.LimitReader(file, maxMarker))
	return errors.Join(err, file.Close())
}

// routes lists the interfaces of /proc/net/route, where the name is the first of the columns below a
// heading, and of /proc/net/ipv6_route, where it is the last and which a kernel without IPv6 lacks. An
// interface that is down has no route, whatever tunnels a kernel puts into every namespace.
func (r *SelfReport) routes() error {
	v4, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return err
	}
	v6, err := os.ReadFile("/proc/net/ipv6_route")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(v4)), "\n")
	for _, line := range lines[1:] {
		r.Routes = append(r.Routes, strings.Fields(line + " ?")[0])
	}
	for line := range strings.Lines(string(v6)) {
		columns := strings.Fields("? " + line)
		r.Routes = append(r.Routes, columns[len(columns)-1])
	}
	slices.Sort(r.Routes)
	r.Routes = slices.DeleteFunc(slices.Compact(r.Routes), func(name string) bool { return name == "lo" })
	return nil
}

// look asks the filesystem at a directory what it is, and tries what it must refuse: any file on a
// read-only one, and one block more than a bounded one has, which takes no memory to ask for.
func (f *Filesystem) look(dir string, bounded bool) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return err
	}
	f.Type, f.Block, f.Size = st.Type, uint64(st.Bsize), st.Blocks*uint64(st.Bsize)
	f.ReadOnly = st.Flags&unix.ST_RDONLY != 0
	path := filepath.Join(dir, ".baildock-preflight")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		_, err = file.Write(bytes.Repeat([]byte{1}, int(f.Block)))
		if err == nil && bounded {
			f.Beyond = errnoOf(unix.Fallocate(int(file.Fd()), 0, 0, int64(f.Size+f.Block)))
		}
		err = errors.Join(err, file.Close(), os.Remove(path))
	}
	f.Create = errnoOf(err)
	return nil
}

// errnoOf is an error's number; one without a number is the largest there is.
func errnoOf(err error) uint {
	var n unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &n):
		return uint(n)
	}
	return uint(unix.EHWPOISON)
}
