package canary

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func openOnly(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func create(path string) error {
	if err := openOnly(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL); err != nil {
		return err
	}
	return unix.Unlink(path)
}

func mkdir(path string) error {
	if err := unix.Mkdir(path, 0o700); err != nil {
		return err
	}
	return unix.Rmdir(path)
}

// fill writes past the scratch bound, and no further than that.
func fill(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	var failed error
	for done := uint64(0); done < Limits().Scratch+extraBytes && failed == nil; done += uint64(len(block)) {
		_, failed = unix.Write(fd, block)
	}
	return errors.Join(failed, unix.Close(fd), unix.Unlink(path))
}

// connect opens a socket and connects it, without waiting for an answer.
func connect(to string) error {
	var kind, host string
	var port int
	if _, err := fmt.Sscan(to, &kind, &host, &port); err != nil {
		return unix.EINVAL
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return unix.EINVAL
	}
	family, sock := unix.AF_INET, unix.SOCK_STREAM
	var sa unix.Sockaddr
	if addr.Is4() {
		sa = &unix.SockaddrInet4{Port: port, Addr: addr.As4()}
	} else {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: addr.As16()}
	}
	if strings.HasPrefix(kind, "udp") {
		sock = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, sock|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Connect(fd, sa), unix.Close(fd))
}

func unshare(kind string) error {
	flags := map[string]int{
		"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "net": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID,
		"ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP,
	}
	f, ok := flags[kind]
	if !ok {
		return unix.EINVAL
	}
	return unix.Unshare(f)
}

func mknod(what string) error {
	var kind string
	var major, minor uint32
	if _, err := fmt.Sscan(what, &kind, &major, &minor); err != nil {
		return unix.EINVAL
	}
	mode := uint32(unix.S_IFCHR)
	if kind == "b" {
		mode = unix.S_IFBLK
	}
	const path = "/scratch/node"
	if err := unix.Mknod(path, mode|0o600, int(unix.Mkdev(major, minor))); err != nil {
		return err
	}
	return unix.Unlink(path)
}

// fork makes children that do nothing until one is refused, and ends them again. A child is a copy of this
// process with one thread; it makes nothing but system calls, for nothing else of the runtime is there.
func fork() error {
	var children []int
	var refused error
	for range Limits().PIDs + extraTasks {
		pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			refused = errno
			break
		}
		if pid == 0 {
			for {
				syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
		children = append(children, int(pid))
	}
	for _, pid := range children {
		refused = errors.Join(refused, unix.Kill(pid, unix.SIGKILL))
		if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
			refused = errors.Join(refused, err)
		}
	}
	return refused
}

// allocate touches every page past the memory bound, and no further than that.
func allocate() error {
	size := int(Limits().Memory + extraBytes)
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < size; i += os.Getpagesize() {
		b[i] = 1
	}
	return unix.Munmap(b)
}

// flood writes past the output bound, and no further than that.
func flood(out io.Writer) error {
	line := []byte(strings.Repeat("canary ", 146) + "\n")
	for done := uint64(0); done < Limits().Output+extraBytes; done += uint64(len(line)) {
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// sleep outlasts the wall time, and not by much.
func sleep() error {
	left := unix.NsecToTimespec(int64(Limits().Wall + 10*time.Second))
	for {
		err := unix.Nanosleep(&left, &left)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
