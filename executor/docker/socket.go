package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketPath reads what a user may name as the daemon: an absolute path, or unix:// and one. A
// path where nothing lies yet is taken; the first call then says that the daemon is missing.
func socketPath(s string) (string, error) {
	p := s
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		if scheme != "unix" {
			return "", fmt.Errorf("docker socket %q: only a local Unix socket is used, never %s; name its path, such as /var/run/docker.sock", s, scheme)
		}
		p = rest
	}
	if !filepath.IsAbs(p) || strings.ContainsRune(p, 0) {
		return "", fmt.Errorf("docker socket %q is not an absolute path, such as /var/run/docker.sock", s)
	}
	p = filepath.Clean(p)
	switch fi, err := os.Stat(p); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", fmt.Errorf("docker socket: %w", err)
	case fi.Mode().Type() != fs.ModeSocket:
		return "", fmt.Errorf("docker socket %s is a %s, not a Unix socket", p, kindOf(fi.Mode()))
	}
	return p, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m.IsRegular():
		return "regular file"
	}
	return "special file"
}

// socketFacts tell one listening socket from another at the same path.
type socketFacts struct {
	dev, ino uint64
	peer     uint32 // UID of the process that listens
	pid      int32  // its PID; 0 = none that is visible here
}

// lookAtSocket opens a connection of its own to read the peer's credentials.
func (d *Driver) lookAtSocket(ctx context.Context) (socketFacts, error) {
	before, err := statSocket(d.path)
	if err != nil {
		return socketFacts{}, err
	}
	conn, err := d.dial(ctx)
	if err != nil {
		return socketFacts{}, err
	}
	defer conn.Close()
	peer, err := peerOf(conn)
	if err != nil {
		return socketFacts{}, err
	}
	after, err := statSocket(d.path)
	if err != nil {
		return socketFacts{}, err
	}
	if before != after {
		return socketFacts{}, fmt.Errorf("docker socket %s was replaced while it was looked at", d.path)
	}
	before.peer, before.pid = peer.Uid, peer.Pid
	return before, nil
}

func statSocket(path string) (socketFacts, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return socketFacts{}, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || fi.Mode().Type() != fs.ModeSocket {
		return socketFacts{}, fmt.Errorf("docker socket %s is not a Unix socket", path)
	}
	return socketFacts{dev: uint64(st.Dev), ino: st.Ino}, nil
}

// peerOf reads SO_PEERCRED (unix(7)): the credentials in effect when the daemon, or whoever listens
// for it, began to listen.
func peerOf(conn net.Conn) (unix.Ucred, error) {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return unix.Ucred{}, fmt.Errorf("connection to the docker socket is a %T", conn)
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return unix.Ucred{}, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return unix.Ucred{}, err
	}
	if credErr != nil {
		return unix.Ucred{}, fmt.Errorf("peer of the docker socket: %w", credErr)
	}
	return *cred, nil
}
