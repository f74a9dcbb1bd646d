package supervisor

import (
	"errors"
	"sync"
	"syscall"
)

// reaper collects every child: the command, executed commands, and orphans
// that the kernel hands to this process as their subreaper. Since all
// descendants of the task come to it in the end, "no child" means that
// nothing of the task is left.
type reaper struct {
	mu struct {
		sync.Mutex
		waiting map[int]chan syscall.WaitStatus
		none    bool // the kernel knows no child of ours
		closed  bool // the task ends: no more children
	}
	// changed gets a token, if it has none, whenever children were collected.
	changed chan struct{}
}

func newReaper() *reaper {
	r := &reaper{changed: make(chan struct{}, 1)}
	r.mu.waiting = make(map[int]chan syscall.WaitStatus)
	r.mu.none = true
	return r
}

// errClosed is returned for a child that comes too late.
var errClosed = errors.New("the task ends")

// close lets no more children be made, so that an empty process tree stays
// empty; reopen begins another task.
func (r *reaper) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = true
}

func (r *reaper) reopen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = false
}

// fork runs start, which makes a child, and gives the channel that will
// receive the child's exit. No exit is missed, however fast it comes.
func (r *reaper) fork(start func() (int, error)) (int, <-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return 0, nil, errClosed
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

// collect takes all exits that are there. Called after every SIGCHLD.
func (r *reaper) collect() {
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

// signalGroup sends a signal to the process group of a child that has not
// been collected yet, and tells whether it could: as long as the child keeps
// its id, no stranger's group has it.
func (r *reaper) signalGroup(pid int, signal syscall.Signal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ours := r.mu.waiting[pid]; !ours {
		return false
	}
	return syscall.Kill(-pid, signal) == nil
}

// signal sends a signal to a child that has not been collected yet.
func (r *reaper) signal(pid int, signal syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ours := r.mu.waiting[pid]; ours {
		_ = syscall.Kill(pid, signal) // a zombie at worst
	}
}

// empty tells whether no descendant is left, asking the kernel.
func (r *reaper) empty() bool {
	r.collect()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.none
}
