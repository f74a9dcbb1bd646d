package taskproc

import (
	"errors"
	"sync"
	"syscall"
)

// Reaper collects every child of this process: the task's command, executed
// commands, and orphans, which come to a subreaper or to the first process of
// a namespace. Since all descendants of the task come to it in the end, "no
// child" means that nothing of the task is left. All its methods may be called
// from any goroutine.
type Reaper struct {
	mu struct {
		sync.Mutex
		waiting map[int]chan syscall.WaitStatus
		none    bool // the kernel knows no child of ours
		closed  bool // the task ends: no more children
	}
	changed chan struct{}
}

// NewReaper makes a reaper that knows no child. A process has one.
func NewReaper() *Reaper {
	r := &Reaper{changed: make(chan struct{}, 1)}
	r.mu.waiting = make(map[int]chan syscall.WaitStatus)
	r.mu.none = true
	return r
}

// ErrClosed is returned for a child that comes after Close.
var ErrClosed = errors.New("the task ends")

// Changed gets a token, if it has none, whenever children were collected.
func (r *Reaper) Changed() <-chan struct{} { return r.changed }

// Close lets no more children be made, so that an empty process tree stays
// empty. Reopen begins another task.
func (r *Reaper) Close() { r.setClosed(true) }

// Reopen lets children be made again after Close.
func (r *Reaper) Reopen() { r.setClosed(false) }

func (r *Reaper) setClosed(closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = closed
}

// Fork runs start, which makes a child, and returns the channel that receives
// the child's exit once. No exit is missed, however fast it comes.
func (r *Reaper) Fork(start func() (int, error)) (int, <-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return 0, nil, ErrClosed
	}
	pid, err := start()
	if err != nil {
		return 0, nil, err
	}
	exit := make(chan syscall.WaitStatus, 1)
	r.mu.waiting[pid] = exit
	r.mu.none = false
	return pid, exit, nil
}

// Collect takes all exits that are there. To be called after every SIGCHLD.
func (r *Reaper) Collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	collected := false
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err == syscall.ECHILD {
			collected = collected || !r.mu.none
			r.mu.none = true
			break
		}
		if err != nil || pid <= 0 {
			r.mu.none = false
			break
		}
		collected = true
		if exit, ok := r.mu.waiting[pid]; ok {
			delete(r.mu.waiting, pid)
			exit <- status
		}
	}
	if collected {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
}

// SignalGroup sends a signal to the process group of a child that has not
// been collected yet, and reports whether it could: as long as the child keeps
// its id, no stranger's group has it.
func (r *Reaper) SignalGroup(pid int, signal syscall.Signal) bool {
	return r.signal(pid, -pid, signal)
}

// Signal sends a signal to a child that has not been collected yet, and tells
// whether it could.
func (r *Reaper) Signal(pid int, signal syscall.Signal) bool {
	return r.signal(pid, pid, signal)
}

func (r *Reaper) signal(pid, target int, signal syscall.Signal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ours := r.mu.waiting[pid]
	return ours && syscall.Kill(target, signal) == nil
}

// Empty reports whether no descendant is left, asking the kernel.
func (r *Reaper) Empty() bool {
	r.Collect()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.none
}
