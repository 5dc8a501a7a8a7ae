package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// daemonName is the command name of the process that is the daemon itself. A socket that something
// else listens on (a service manager that activates the daemon, a proxy) names no daemon process:
// its listener outlives the daemon, and a request may wait in it for the next one.
const daemonName = "dockerd"

// daemonProcess tells which process the daemon is, nil where the one that listens isn't the daemon
// or can't be read.
func (d *Driver) daemonProcess(pid int32) *evidence.DaemonProcess {
	if pid <= 0 {
		return nil
	}
	p, name, err := d.readProcess(uint32(pid))
	if err != nil || name != daemonName {
		return nil
	}
	return &p
}

// DaemonEnded reports whether a process that Probe named as the daemon is gone for good. It is false
// whenever that can't be told, a zombie included. It says nothing of another boot.
func (d *Driver) DaemonEnded(p evidence.DaemonProcess) (bool, error) {
	now, err := d.namespace()
	if err != nil || now != p.Namespace || p.PID == 0 {
		return false, err
	}
	same, _, err := d.readProcess(p.PID)
	switch {
	case err == nil:
		return same.Start != p.Start, nil // the number belongs to another process by now
	case errors.Is(err, os.ErrNotExist):
		// A /proc that hides other users' processes shows none that lives either.
		return errors.Is(unix.Kill(int(p.PID), 0), unix.ESRCH), nil
	}
	return false, err
}

// readProcess reads one process's start and command name from /proc/<pid>/stat (proc_pid_stat(5)).
func (d *Driver) readProcess(pid uint32) (evidence.DaemonProcess, string, error) {
	p := evidence.DaemonProcess{PID: pid}
	b, err := os.ReadFile(filepath.Join(d.host, "proc", strconv.FormatUint(uint64(pid), 10), "stat"))
	if err != nil {
		return p, "", err
	}
	// The name stands in parentheses and may hold any character, parentheses included.
	open, end := strings.IndexByte(string(b), '('), strings.LastIndexByte(string(b), ')')
	if open < 0 || end < open {
		return p, "", fmt.Errorf("the state of process %d can't be read", pid)
	}
	rest := strings.Fields(string(b[end+1:])) // from field 3 on
	const start = 22 - 3
	if len(rest) <= start {
		return p, "", fmt.Errorf("the state of process %d is short", pid)
	}
	if p.Start, err = strconv.ParseUint(rest[start], 10, 64); err != nil {
		return p, "", fmt.Errorf("the start of process %d: %w", pid, err)
	}
	p.Namespace, err = d.namespace()
	return p, string(b[open+1 : end]), err
}

// namespace is the inode of this process's own PID namespace.
func (d *Driver) namespace() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(d.host, "proc/self/ns/pid"), &st); err != nil {
		return 0, fmt.Errorf("look at the PID namespace: %w", err)
	}
	return st.Ino, nil
}
