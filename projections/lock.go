package projections

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// fileLock is an flock on a file of its own, which is never replaced or removed.
type fileLock struct{ f *os.File }

func openLock(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return &fileLock{f}, nil
}

// take takes the lock, shared (syscall.LOCK_SH) or alone (syscall.LOCK_EX), or changes to it. A
// change may let others in between.
func (l *fileLock) take(ctx context.Context, how int) error {
	for {
		err := syscall.Flock(int(l.f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock %s: %w", l.f.Name(), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock %s: another process rebuilds the projections: %w", l.f.Name(), ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

func (l *fileLock) release() error {
	if err := syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN); err != nil {
		return fmt.Errorf("unlock %s: %w", l.f.Name(), err)
	}
	return nil
}
