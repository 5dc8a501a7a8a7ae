package source

import (
	"errors"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
)

// fdFile is an open file without the runtime's poller, which costs more than copying a small
// file does.
type fdFile int

func (f fdFile) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (f fdFile) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Write(int(f), p[done:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

func (f fdFile) Close() error { return unix.Close(int(f)) }

// openat retries what a signal interrupted. Nothing is ever opened through a link.
func openat(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

const openDirectory = unix.O_RDONLY | unix.O_DIRECTORY

// dirStack holds the directories from a root to where work goes on, open, so that the entries of
// one manifest are reached without resolving a path twice.
type dirStack struct {
	open  func(parent int, name, path string) (int, error)
	leave func(fd int, path string) error // called before a directory is closed
	paths []string
	fds   []int
}

func newDirStack(root int) dirStack { return dirStack{paths: []string{""}, fds: []int{root}} }

// enter returns the handle of directory path, leaving and opening others on the way.
func (s *dirStack) enter(path string) (int, error) {
	for top := s.paths[len(s.paths)-1]; top != "" && top != path && !strings.HasPrefix(path, top+"/"); top = s.paths[len(s.paths)-1] {
		if err := s.pop(); err != nil {
			return -1, err
		}
	}
	for s.paths[len(s.paths)-1] != path {
		top := s.paths[len(s.paths)-1]
		rest := path
		if top != "" {
			rest = path[len(top)+1:]
		}
		name, _, _ := strings.Cut(rest, "/")
		next := evidence.JoinPath(top, name)
		fd, err := s.open(s.fds[len(s.fds)-1], name, next)
		if err != nil {
			return -1, err
		}
		s.paths = append(s.paths, next)
		s.fds = append(s.fds, fd)
	}
	return s.fds[len(s.fds)-1], nil
}

func (s *dirStack) pop() error {
	last := len(s.fds) - 1
	fd, path := s.fds[last], s.paths[last]
	s.fds, s.paths = s.fds[:last], s.paths[:last]
	err := s.leave(fd, path)
	return errors.Join(err, unix.Close(fd))
}

// finish leaves every directory, the root last.
func (s *dirStack) finish() error {
	var errs []error
	for len(s.fds) > 0 {
		errs = append(errs, s.pop())
	}
	return errors.Join(errs...)
}

// close closes what is still open without leaving it properly, after a failure.
func (s *dirStack) close() {
	for _, fd := range s.fds {
		unix.Close(fd) //nolint:errcheck // read-only handles, or a copy that is thrown away
	}
	s.fds, s.paths = nil, nil
}
