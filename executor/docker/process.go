package docker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// process reads one process's files under /proc through a handle on its directory. The kernel
// binds the handle to the process itself: once it is gone every read fails, even when its number
// has been given to another.
type process struct {
	dir *os.Root
}

func openProcess(host string, pid int) (*process, error) {
	dir, err := os.OpenRoot(filepath.Join(host, "proc", strconv.Itoa(pid)))
	if err != nil {
		return nil, err
	}
	return &process{dir}, nil
}

func (p *process) close() { p.dir.Close() }

func (p *process) read(name string) (string, error) {
	f, err := p.dir.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readBounded(f)
}

// space reads a namespace link, such as pid:[4026531836].
func (p *process) space(name string) (string, error) { return p.dir.Readlink("ns/" + name) }

// alive reports whether the process still runs; a zombie doesn't.
func (p *process) alive() bool {
	text, err := p.read("stat")
	if err != nil {
		return false
	}
	// proc_pid_stat(5): the command in parentheses may hold anything, so the state follows the last one.
	_, rest, ok := strings.Cut(text[strings.LastIndexByte(text, ')')+1:], " ")
	return ok && rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

// why names the reason for which a file of the process could not be read.
func (p *process) why(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return reasonMissing
	case isGone(err):
		if p.alive() {
			return reasonMissing
		}
		return reasonGone
	}
	return reasonMalformed
}

// isGone reports whether an error is how the kernel says that a process or its cgroup ended.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENODEV)
}

func readBounded(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxProcFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxProcFile {
		return "", fmt.Errorf("%w of %d bytes", errTooLarge, maxProcFile)
	}
	return string(b), nil
}

// status reads /proc/<pid>/status: one `Name:<tab>value` a line (proc_pid_status(5)).
func (p *process) status() (map[string]string, error) {
	text, err := p.read("status")
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			if _, again := m[k]; again {
				return nil, fmt.Errorf("status names %s twice", k)
			}
			m[k] = strings.Join(strings.Fields(v), " ")
		}
	}
	return m, nil
}

// limitOf reads the soft and hard value of one line of /proc/<pid>/limits.
func limitOf(text, name string) (soft, hard string, ok bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, name); found {
			if f := strings.Fields(rest); len(f) >= 2 {
				return f[0], f[1], true
			}
		}
	}
	return "", "", false
}
