package sqlite

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// networkMagic lists the file systems whose locks, shared mappings or syncs can't be relied on
// between machines, by the magic number statfs(2) reports. SQLite's write-ahead log needs all three.
var networkMagic = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x01021997: "9p",
	0x5346414f: "AFS (OpenAFS)",
	0x6b414653: "AFS (kAFS)",
	0x73757245: "Coda",
	0x564c:     "NCP",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
	0x19830326: "BeeGFS",
	0x20030528: "OrangeFS",
	0x47504653: "GPFS",
	0x786f4256: "VirtualBox shared folder",
	0xbacbacbc: "VMware shared folder",
}

// fuseMagic is every FUSE file system: local, remote, and virtiofs.
const fuseMagic = 0x65735546

// localFUSE are the types of FUSE mounts that lie on a local disk. Any other may be remote.
var localFUSE = map[string]bool{"fuseblk": true}

// RefuseNetwork fails if path lies on a network file system.
func RefuseNetwork(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return fmt.Errorf("ask for the file system of %s: %w", path, err)
	}
	mount := func() (string, error) { return mountType(path, "/proc/self/mountinfo") }
	name, err := networkName(uint32(fs.Type), mount)
	if err != nil {
		return fmt.Errorf("ask for the file system of %s: %w", path, err)
	}
	if name != "" {
		return fmt.Errorf("%s lies on a network file system (%s), where locks and syncs can't be relied on; keep the ledger on a local disk", path, name)
	}
	return nil
}

// networkName names the network file system with this magic number, or returns "" for a local
// one. mount returns the type of the mount, which tells FUSE file systems apart.
func networkName(magic uint32, mount func() (string, error)) (string, error) {
	if magic != fuseMagic {
		return networkMagic[magic], nil
	}
	kind, err := mount()
	if err != nil || localFUSE[kind] {
		return "", err
	}
	return kind, nil
}

// mountType finds the type of the mount that holds path, by its device number.
func mountType(path, mountinfo string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", err
	}
	f, err := os.Open(mountinfo)
	if err != nil {
		return "", err
	}
	defer f.Close()
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// proc_pid_mountinfo(5): the third field is the device; the type follows a lone hyphen.
		mount, super, ok := strings.Cut(lines.Text(), " - ")
		fields, types := strings.Fields(mount), strings.Fields(super)
		if ok && len(fields) > 2 && len(types) > 0 && fields[2] == device {
			return types[0], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "FUSE of an unknown kind", nil
}
