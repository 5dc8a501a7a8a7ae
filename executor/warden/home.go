package warden

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Home is the directory an attempt is run from.
type Home struct {
	Dir string          // absolute, 0700, this user's
	ID  evidence.HomeID // random, given by init
}

// What lies in a home.
const (
	locksName     = "locks"
	executionName = "execution"
)

// Identity tells this home on this machine in this boot from every other, copies included.
func (h Home) Identity() (evidence.HomeIdentity, error) {
	id := evidence.HomeIdentity{Home: h.ID}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id, fmt.Errorf("read this machine's boot ID: %w", err)
	}
	if id.Boot, err = evidence.ParseBootID(boot); err != nil {
		return id, err
	}
	// A machine without an ID is a reduction of its own (req C8), which the daemon's probe reports.
	if id.Machine, err = machineID("/etc/machine-id"); err != nil {
		return id, err
	}
	var st unix.Stat_t
	if err := unix.Stat(h.Dir, &st); err != nil {
		return id, fmt.Errorf("look at the home: %w", err)
	}
	id.Inode = st.Ino
	return id, nil
}

// machineID reads a machine's ID; nil where the machine has none: no file, or one that holds something else
// ("uninitialized", nothing). A file that is there and can't be read says nothing about the machine.
func machineID(path string) (*evidence.MachineID, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read this machine's ID: %w", err)
	}
	if m, err := evidence.ParseMachineID(text); err == nil {
		return &m, nil
	}
	return nil, nil
}

// bootTime is CLOCK_BOOTTIME in ns: it runs on while the machine sleeps.
func bootTime() (uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read the boot clock: %w", err)
	}
	return uint64(ts.Nano()), nil
}

// execution makes the private directory that one generation's snapshots lie in.
func (h Home) execution(id evidence.AttemptID, generation uint64) (string, error) {
	dir := filepath.Join(h.Dir, executionName, string(id), fmt.Sprint(generation))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the execution directory: %w", err)
	}
	return dir, nil
}

// tidy removes the attempt's empty execution directories. One that isn't empty stays, and so does
// its parent.
func (h Home) tidy(id evidence.AttemptID, generation uint64) {
	attempt := filepath.Join(h.Dir, executionName, string(id))
	for _, dir := range []string{filepath.Join(attempt, fmt.Sprint(generation)), attempt} {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// NoSpaceError says that the ledger's disk is nearly full.
type NoSpaceError struct {
	Dir  string
	Free uint64 // bytes
}

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("only %d MiB are free where the ledger lies (%s); a run needs %d MiB, so that its end can be recorded: free some space",
		e.Free>>20, e.Dir, minFree>>20)
}

// freeBytes is what this user may still write on the disk of a directory.
func freeBytes(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}
