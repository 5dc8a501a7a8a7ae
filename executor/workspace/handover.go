package workspace

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// HandOver gives the workspace, not the evidence, to the user the agent runs as (req N3). As root it
// changes the owner of every entry through handles, links themselves and not what they name, the
// workspace's own directory last. Anybody else must be that user already, or it is refused.
func (w *Workspace) HandOver(uid, gid int) error {
	if uid <= 0 || gid <= 0 {
		return refuse(CodeOwner, "", "the agent's user %d and group %d must be greater than 0", uid, gid)
	}
	if os.Geteuid() != 0 {
		if uid != os.Geteuid() || gid != os.Getegid() {
			return refuse(CodeOwner, "", "the agent is to run as %d:%d but this is %d:%d: set required_uid and required_gid to these, or run as root", uid, gid, os.Geteuid(), os.Getegid())
		}
		return nil
	}
	root, err := os.OpenRoot(procPath(w.tree))
	if err != nil {
		return fmt.Errorf("hand the workspace over: %w", err)
	}
	defer root.Close() //nolint:errcheck // a read-only handle
	byDir := map[string][]string{}
	for _, e := range w.Baseline.Manifest.Entries {
		dir, name := evidence.SplitPath(e.Path)
		byDir[dir] = append(byDir[dir], name)
	}
	for dir, names := range byDir {
		if err := chownIn(root, dir, names, uid, gid); err != nil {
			return err
		}
	}
	if err := w.tree.Chown(uid, gid); err != nil {
		return fmt.Errorf("hand the workspace over: %w", err)
	}
	return nil
}

func chownIn(root *os.Root, dir string, names []string, uid, gid int) error {
	f, err := openUnder(root, dir)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // a read-only handle
	for _, name := range names {
		if err := unix.Fchownat(int(f.Fd()), name, uid, gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("hand %q of the workspace over: %w", evidence.JoinPath(dir, name), err)
		}
	}
	return nil
}

// Owner is the user and group the workspace belongs to now.
func (w *Workspace) Owner() (uid, gid uint32, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(w.tree.Fd()), &st); err != nil {
		return 0, 0, fmt.Errorf("look at the workspace: %w", err)
	}
	return st.Uid, st.Gid, nil
}
