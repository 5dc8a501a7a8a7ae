package warden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// keptTask is the turn of a custody that a file keeps.
func (w *Warden) keptTask(files *CustodyFiles, h evidence.HandleKey) task {
	object := &Object{Name: filepath.Base(files.path(h, custodySuffix))}
	return task{name: "custody " + h.String(), of: Supervised{Object: object},
		do: func(ctx context.Context, progress executor.Progress) (Supervised, bool) {
			return w.superviseKept(ctx, files, h, progress)
		}}
}

// superviseKept closes one custody whose process is dead, by the rules and with the code that close an
// attempt's (req E3, E4, E5, E8).
func (w *Warden) superviseKept(ctx context.Context, files *CustodyFiles, h evidence.HandleKey, progress executor.Progress) (s Supervised, met bool) {
	unread := &Object{Name: filepath.Base(files.path(h, custodySuffix))}
	if files.fresh(h) {
		return Supervised{}, false
	}
	lock, err := files.lock(h)
	if errors.Is(err, unix.EWOULDBLOCK) {
		k, err := files.read(h)
		if err != nil { // it is about to be written, or was closed just now
			return Supervised{}, false
		}
		return Supervised{Action: ActionRunning, Detail: "the process that made it, or another supervisor, has it in hand", Object: keptObject(k.custody())}, true
	}
	if err != nil {
		return failedOn(unread, err), true
	}
	k, err := files.read(h)
	if errors.Is(err, os.ErrNotExist) {
		// Its writer died before its first file was in place, and created nothing; or it was closed.
		if err := errors.Join(files.remove(h), lock.Delete()); err != nil {
			return failedOn(unread, err), true
		}
		return Supervised{}, false
	}
	if err != nil {
		return failedOn(unread, errors.Join(err, lock.Close())), true
	}
	rec := files.Recorder(nil)
	rec.adopt(h, lock, k)
	object := keptObject(k.custody())
	err = w.reconciler(rec, progress).Reconcile(ctx, k.custody())
	open := rec.Open()
	if err = errors.Join(err, rec.Close()); err != nil {
		return failedOn(object, err), true
	}
	if len(open) > 0 {
		return Supervised{Action: ActionUnconfirmed, Object: keptObject(open[0]),
			Detail: fmt.Sprintf("its process is gone and its cleanup is unconfirmed (%s); the next pass tries again", open[0].Unconfirmed)}, true
	}
	return Supervised{Action: ActionCleared, Object: object, Detail: "its process is gone, and so is what it made"}, true
}

func failedOn(o *Object, err error) Supervised {
	s, _ := failed(err)
	s.Object = o
	return s
}

func keptObject(c evidence.Custody) *Object {
	o := &Object{Kind: c.Kind, Name: c.Name, Labels: map[string]string{
		executor.LabelRequest: c.Request.String(), executor.LabelHandle: c.Handle.String(),
	}}
	if c.Container != nil {
		o.ID = c.Container.Hex()
	}
	return o
}
