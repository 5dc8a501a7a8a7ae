package executor

import (
	"sync"
	"time"
)

// kernelWatch reads the host's files of the container's process: everything once, directly after
// the start, then the count of memory kills while the container lives. The files are gone with
// the container, so nothing can be read afterwards.
type kernelWatch struct {
	first chan []Finding // the first look, once
	stop  chan struct{}
	done  chan struct{}

	mu    sync.Mutex
	kills uint64
	err   error // of a look that panicked
}

func (r *run) watchKernel() *kernelWatch {
	k := &kernelWatch{first: make(chan []Finding, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(k.done)
		defer close(k.first)
		_, err := guarded(func() (struct{}, error) { k.run(r); return struct{}{}, nil })
		k.mu.Lock()
		defer k.mu.Unlock()
		k.err = err
	}()
	return k
}

func (k *kernelWatch) run(r *run) {
	in, err := r.Driver.Inspect(r.life, r.custody.id)
	pid := 0
	if err == nil && in.Running {
		pid = in.PID
	}
	// Without a process the driver finds every control unavailable; that is the evidence then.
	findings := k.look(r, pid).Findings
	if err != nil { // nobody knows whether the process is gone
		for i := range findings {
			findings[i].Reason, findings[i].Found = "missing", "the container could not be inspected"
		}
	}
	k.first <- findings
	if pid == 0 {
		return
	}
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-k.stop:
			return
		case <-r.life.Done():
			return
		case <-tick.C:
		case <-r.watch.oom:
		}
		k.look(r, pid)
	}
}

func (k *kernelWatch) look(r *run, pid int) KernelSight {
	s := r.Driver.Kernel(r.plan, r.custody.id, pid)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.OOMKnown {
		k.kills = max(k.kills, s.OOMKills)
	}
	return s
}

// end stops the looks and returns the largest count seen.
func (k *kernelWatch) end() (uint64, error) {
	close(k.stop)
	<-k.done
	return k.kills, k.err
}
