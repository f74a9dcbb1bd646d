package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// pausePatience is how long it may take until no process runs. On a busy
	// machine a stopped one needs its turn before it stops.
	pausePatience = 5 * time.Second
	// throttleLeast is the shortest part of a throttle's cycle.
	throttleLeast  = 10 * time.Millisecond
	throttleMostMS = 60_000
)

// freezer keeps the task from running: because somebody has paused it, or in
// the idle part of a throttle's cycle.
type freezer struct {
	tree *tree
	// gate is full while a process is made, and while the task is frozen. A
	// child that is frozen before it has executed its program holds up its parent
	// too, with all of this process; and so does a freezer that a thread of
	// ours has gone into.
	gate chan struct{}

	mu struct {
		sync.Mutex
		paused bool // by request
		idle   bool // by the throttle
		frozen bool // what is the case
		over   bool // the task ends: nothing freezes it any more
		stop   func()
	}
}

func newFreezer(t *tree) *freezer { return &freezer{tree: t, gate: make(chan struct{}, 1)} }

// pause freezes the task until resume, and reports whether it could. A task that
// ends is not frozen any more.
func (h *freezer) pause() bool {
	ok := h.set(func() { h.mu.paused = true })
	h.mu.Lock()
	defer h.mu.Unlock()
	return ok && !h.mu.over
}

// resume undoes pause; a throttle goes on.
func (h *freezer) resume() { h.set(func() { h.mu.paused = false }) }

// release thaws the task for good.
func (h *freezer) release() {
	h.mu.Lock()
	stop := h.mu.stop
	h.mu.stop, h.mu.over = nil, true
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
	h.set(func() { h.mu.paused, h.mu.idle = false, false })
}

// set changes a reason, and what follows from the reasons.
func (h *freezer) set(change func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	want := (h.mu.paused || h.mu.idle) && !h.mu.over
	switch {
	case want && !h.mu.frozen:
		h.mu.frozen = h.freeze()
		if !h.mu.frozen {
			h.mu.paused, h.mu.idle = false, false
		}
		return h.mu.frozen
	case !want && h.mu.frozen:
		h.mu.frozen = false
		h.thaw()
	}
	return true
}

// throttle lets the task run for busy and holds it for idle, again and again;
// without idle it lets it run. The last request counts.
func (h *freezer) throttle(busy, idle time.Duration) {
	h.mu.Lock()
	stop := h.mu.stop
	h.mu.stop = nil
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
	h.set(func() { h.mu.idle = false })
	if idle <= 0 {
		return
	}
	quit, done := make(chan struct{}), make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.over {
		return
	}
	h.mu.stop = sync.OnceFunc(func() { close(quit); <-done })
	go func() {
		defer close(done)
		h.cycle(max(busy, throttleLeast), max(idle, throttleLeast), quit)
	}()
}

// cycle holds and lets go until quit.
func (h *freezer) cycle(busy, idle time.Duration, quit <-chan struct{}) {
	timer := time.NewTimer(busy)
	defer timer.Stop()
	for held := false; ; held = !held {
		select {
		case <-quit:
			return
		case <-timer.C:
		}
		if held {
			timer.Reset(busy)
		} else {
			timer.Reset(idle)
		}
		h.set(func() { h.mu.idle = !held })
	}
}

// freeze stops all processes: by a cgroup's freezer when there is one, else by
// SIGSTOP until a pass finds none that is not stopped.
func (h *freezer) freeze() bool {
	deadline := time.Now().Add(pausePatience)
	if !h.enterGate(pausePatience) {
		return false
	}
	done := h.stop(deadline)
	if !done {
		h.run()
		h.leaveGate()
	}
	return done
}

func (h *freezer) stop(deadline time.Time) bool {
	c := h.tree.cgroups
	if !c.loose && write(c.v2, "cgroup.freeze", "1") {
		return h.frozen(filepath.Join(c.v2, "cgroup.events"), "frozen 1", deadline, func() {})
	}
	if dir := c.v1["freezer"]; write(dir, "freezer.state", "FROZEN") {
		// A parent that began to wait for its child to execute after the first order is
		// reached by a later one alone.
		return h.frozen(filepath.Join(dir, "freezer.state"), "FROZEN", deadline, func() { write(dir, "freezer.state", "FROZEN") })
	}
	return h.stopAll(deadline)
}

// thaw undoes freeze.
func (h *freezer) thaw() {
	h.run()
	h.leaveGate()
}

func (h *freezer) run() {
	c := h.tree.cgroups
	if (c.loose || !write(c.v2, "cgroup.freeze", "0")) && !write(c.v1["freezer"], "freezer.state", "THAWED") {
		h.tree.signalAll(syscall.SIGCONT)
	}
}

// enterGate waits until no process is being made, and keeps others from being
// made until leaveGate. With a patience of 0 it waits as long as it takes.
func (h *freezer) enterGate(patience time.Duration) bool {
	var expired <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case h.gate <- struct{}{}:
		return true
	case <-expired:
		return false
	}
}

func (h *freezer) leaveGate() { <-h.gate }

// frozen waits until a freezer says that it has stopped every process, and
// orders it again until then.
func (h *freezer) frozen(path, word string, deadline time.Time, again func()) bool {
	for time.Now().Before(deadline) {
		state, err := os.ReadFile(path)
		if err != nil || bytes.Contains(state, []byte(word)) {
			return err == nil
		}
		time.Sleep(killPollFirst)
		again()
	}
	return false
}

// stopAll stops every process by a signal.
func (h *freezer) stopAll(deadline time.Time) bool {
	sent := make(map[int]bool)
	for time.Now().Before(deadline) {
		processes, err := h.tree.processes()
		if err != nil {
			return false
		}
		running := false
		for _, p := range processes {
			// One that sleeps in the kernel stops as soon as it comes back. It
			// may be waiting for a child that is stopped (vfork), for ever.
			asleep := p.State == 'D' && sent[p.PID]
			if p.Dead() || p.State == 'T' || p.State == 't' || asleep {
				continue
			}
			running, sent[p.PID] = true, true
			_ = syscall.Kill(p.PID, syscall.SIGSTOP)
		}
		if !running {
			return true
		}
		time.Sleep(killPollFirst) // a signalled process needs a moment to stop
	}
	return false
}
