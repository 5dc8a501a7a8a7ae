package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// req R2
func TestNetworkFileSystems(t *testing.T) {
	noMount := func() (string, error) { return "", errors.New("not asked for") }
	mounted := func(kind string) func() (string, error) { return func() (string, error) { return kind, nil } }
	for _, c := range []struct {
		magic uint32
		mount func() (string, error)
		want  string
	}{
		{unix.EXT4_SUPER_MAGIC, noMount, ""},
		{unix.BTRFS_SUPER_MAGIC, noMount, ""},
		{unix.XFS_SUPER_MAGIC, noMount, ""},
		{unix.TMPFS_MAGIC, noMount, ""},
		{unix.OVERLAYFS_SUPER_MAGIC, noMount, ""},
		{unix.NFS_SUPER_MAGIC, noMount, "NFS"},
		{unix.SMB_SUPER_MAGIC, noMount, "SMB"},
		{unix.CIFS_SUPER_MAGIC, noMount, "CIFS"},
		{unix.SMB2_SUPER_MAGIC, noMount, "SMB2"},
		{unix.V9FS_MAGIC, noMount, "9p"},
		{unix.AFS_SUPER_MAGIC, noMount, "AFS (OpenAFS)"},
		{unix.AFS_FS_MAGIC, noMount, "AFS (kAFS)"},
		{unix.CODA_SUPER_MAGIC, noMount, "Coda"},
		{unix.NCP_SUPER_MAGIC, noMount, "NCP"},
		{unix.CEPH_SUPER_MAGIC, noMount, "Ceph"},
		{unix.OCFS2_SUPER_MAGIC, noMount, "OCFS2"},
		{unix.FUSE_SUPER_MAGIC, mounted("fuseblk"), ""},
		{unix.FUSE_SUPER_MAGIC, mounted("fuse.sshfs"), "fuse.sshfs"},
		{unix.FUSE_SUPER_MAGIC, mounted("virtiofs"), "virtiofs"},
		{unix.FUSE_SUPER_MAGIC, mounted("fuse"), "fuse"},
	} {
		got, err := networkName(c.magic, c.mount)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%#x", c.magic)
	}
	_, err := networkName(unix.FUSE_SUPER_MAGIC, noMount)
	require.Error(t, err, "what can't be told is refused")
}

func TestMountType(t *testing.T) {
	dir := t.TempDir()
	var st unix.Stat_t
	require.NoError(t, unix.Stat(dir, &st))
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	mounts := filepath.Join(dir, "mountinfo")
	write := func(text string) { require.NoError(t, os.WriteFile(mounts, []byte(text), 0o600)) }

	write("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n" +
		"37 35 " + device + " / /home/u/far\\040away rw shared:7 - fuse.sshfs host:/ rw\n")
	kind, err := mountType(dir, mounts)
	require.NoError(t, err)
	require.Equal(t, "fuse.sshfs", kind)

	write("36 35 98:0 /mnt1 /mnt2 rw - ext3 /dev/root rw\n")
	kind, err = mountType(dir, mounts)
	require.NoError(t, err)
	require.NotEmpty(t, kind, "an unknown mount is no local one")
	require.False(t, localFUSE[kind])

	kind, err = mountType(dir, "/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotEmpty(t, kind)
}
