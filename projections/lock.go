package projections

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// ofdSetLock is F_OFD_SETLK of Linux: a lock of the open file, not of the process (fcntl(2)).
const ofdSetLock = 37

// Bytes of the lock file. Whoever wants the file alone closes the gate first, so that those who
// share it can't keep it from ever being free.
const (
	gateByte = 0
	fileByte = 1
)

// fileLock guards the file by a lock on another one, which is never replaced or removed.
type fileLock struct{ f *os.File }

func openLock(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return &fileLock{f}, nil
}

// share takes the lock together with others.
func (l *fileLock) share(ctx context.Context) error { return l.take(ctx, syscall.F_RDLCK, true) }

// own takes the lock alone.
func (l *fileLock) own(ctx context.Context) error { return l.take(ctx, syscall.F_WRLCK, false) }

func (l *fileLock) take(ctx context.Context, how int16, openGate bool) error {
	if err := l.wait(ctx, gateByte, how); err != nil {
		return err
	}
	if err := l.wait(ctx, fileByte, how); err != nil {
		return errors.Join(err, l.release())
	}
	if openGate {
		return l.set(gateByte, syscall.F_UNLCK)
	}
	return nil
}

func (l *fileLock) wait(ctx context.Context, at int64, how int16) error {
	for {
		err := l.set(at, how)
		if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s, while another process rebuilds the projections: %w", l.f.Name(), ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// release gives everything back.
func (l *fileLock) release() error {
	return errors.Join(l.set(gateByte, syscall.F_UNLCK), l.set(fileByte, syscall.F_UNLCK))
}

func (l *fileLock) set(at int64, how int16) error {
	err := syscall.FcntlFlock(l.f.Fd(), ofdSetLock, &syscall.Flock_t{Type: how, Whence: io.SeekStart, Start: at, Len: 1})
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.f.Name(), err)
	}
	return nil
}
