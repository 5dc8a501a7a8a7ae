package canary

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// Run does the steps of a canary, in order, and writes its report. It is the program inside the container: it
// runs nothing else and judges nothing. It fails only where the report can't be written.
func Run(c Canary, out io.Writer) error {
	r := Report{Version: 1, Canary: c.Name}
	for _, s := range c.Steps {
		value, err := do(s, out)
		r.Steps = append(r.Steps, Seen{Action: s.Action, On: s.On, Errno: nameOf(err), Value: value})
	}
	_, err := out.Write(evidence.Marshal(r))
	return err
}

// nameOf is an error by the name that the table uses.
func nameOf(err error) string {
	var e syscall.Errno
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &e):
		return "EUNKNOWN"
	}
	if name := unix.ErrnoName(e); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", int(e))
}

func do(s Step, out io.Writer) (value string, err error) {
	switch s.Action {
	case Create:
		return "", create(s.On)
	case Mkdir:
		return "", mkdir(s.On)
	case Write:
		return "", openOnly(s.On, unix.O_WRONLY)
	case Stat:
		var st unix.Stat_t
		return "", unix.Lstat(s.On, &st)
	case Read:
		return readText(s.On)
	case Fill:
		return "", fill(s.On)
	case Connect:
		return "", connect(s.On)
	case Interfaces:
		return interfaces()
	case Routes:
		return routes()
	case MountOption:
		return mountOption(s.On)
	case Mounts:
		return writableMounts()
	case Mount:
		return "", unix.Mount("tmpfs", s.On, "tmpfs", 0, "")
	case Remount:
		return "", unix.Mount("", s.On, "", unix.MS_REMOUNT|unix.MS_BIND, "")
	case Chroot:
		return "", unix.Chroot(s.On)
	case Unshare:
		return "", unshare(s.On)
	case Mknod:
		return "", mknod(s.On)
	case Hostname:
		return "", unix.Sethostname([]byte("canary"))
	case Clock:
		var now unix.Timeval
		if err := unix.Gettimeofday(&now); err != nil {
			return "", err
		}
		return "", unix.Settimeofday(&now)
	case Status:
		return status(s.On)
	case Rlimit:
		return rlimit(s.On)
	case Environ:
		env := os.Environ()
		slices.Sort(env)
		return clip(strings.Join(env, "\n")), nil
	case Process:
		return fmt.Sprint(os.Getpid()), nil
	case Processes:
		return processCount()
	case Cgroup:
		return cgroupPath()
	case Limit:
		return cgroupLimit(s.On)
	case Search:
		return search(s.On)
	case Fork:
		return "", fork()
	case Allocate:
		return "", allocate()
	case Flood:
		return "", flood(out)
	case Sleep:
		return "", sleep()
	}
	return "", fmt.Errorf("no action %s", s.Action)
}

func clip(s string) string { return s[:min(len(s), maxValue)] }

func readText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxValue))
	return strings.TrimRight(string(b), "\n"), errors.Join(err, f.Close())
}

// status is one field of the own process, of the thread that started it: the others have the same.
func status(field string) (string, error) {
	text, err := readText("/proc/self/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if name, rest, ok := strings.Cut(line, ":"); ok && name == field {
			return strings.Join(strings.Fields(rest), " "), nil
		}
	}
	return "", unix.ENODATA
}

func rlimit(which string) (string, error) {
	kinds := map[string]int{"nofile": unix.RLIMIT_NOFILE, "core": unix.RLIMIT_CORE}
	kind, ok := kinds[which]
	if !ok {
		return "", unix.EINVAL
	}
	// The Go runtime raises the soft limit of open files; what it was is the hard one's business.
	var l unix.Rlimit
	if err := unix.Prlimit(0, kind, nil, &l); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %d", l.Cur, l.Max), nil
}

func processCount() (string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "", err
	}
	n := 0
	for _, e := range entries {
		if strings.Trim(e.Name(), "0123456789") == "" {
			n++
		}
	}
	return fmt.Sprint(n), nil
}

// search looks for what must never be in a container: sockets, databases, keys, homes of ours. It looks at
// names only, leaves the kernel's own file systems out, and is bounded.
func search(root string) (string, error) {
	var found []string
	looked := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		looked++
		if looked > maxSearch || len(found) >= maxFound {
			return filepath.SkipAll
		}
		if err != nil {
			return nil // what can't be read can't be found either
		}
		if path == "/proc" || path == "/sys" {
			return filepath.SkipDir
		}
		name := strings.ToLower(d.Name())
		secret := d.Type()&os.ModeSocket != 0 || strings.HasPrefix(name, ".baildock") || strings.HasPrefix(name, "id_") || name == "docker.sock"
		for _, end := range []string{".sqlite", ".db", ".pem", ".key"} {
			secret = secret || strings.HasSuffix(name, end)
		}
		if secret {
			found = append(found, path)
		}
		return nil
	})
	slices.Sort(found)
	return clip(strings.Join(found, "\n")), err
}
