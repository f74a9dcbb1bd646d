package supervisor

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver/taskproc"
)

// Bounds of working through the process tree.
const (
	killPollFirst = time.Millisecond
	killPollSlow  = 50 * time.Millisecond
	// killPatience is how long SIGKILL may take. What is left then sits in
	// the kernel (for instance on a dead network disk) and is reported.
	killPatience = 10 * time.Second
)

// tree is everything that has descended from this supervisor, the task's
// processes. Its cgroups, when it has some, do in one step what signals do in
// several.
type tree struct {
	reaper  *taskproc.Reaper
	cgroups *cgroups
	freezer *freezer
	before  time.Duration // processor time of this process's earlier children
	// init is the first process of the task's process namespace, 0 for none.
	// It is not the task's, and all that is dies with it.
	init atomic.Int64
}

func newTree(r *taskproc.Reaper) *tree {
	t := &tree{reaper: r, cgroups: new(cgroups), before: collectedTime()}
	t.freezer = newFreezer(t)
	return t
}

// killAll kills everything and returns the ids of what would not die.
func (t *tree) killAll() (unkillable []int) {
	deadline := time.Now().Add(killPatience)
	t.freezer.release()
	for pause := killPollFirst; ; pause = min(pause*2, killPollSlow) {
		if t.reaper.Empty() {
			return nil
		}
		left := t.killPass(t.init.Load() != 0 && pause < killPollSlow)
		if time.Now().After(deadline) {
			return left
		}
		timer := time.NewTimer(pause)
		select {
		case <-t.reaper.Changed():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// killPass sends SIGKILL to all there are, and returns their ids. What forks
// faster than a list of it can be made is stopped meanwhile, when the kernel
// can do that. With trust the kernel is left to end the task's namespace of
// processes, in which all of them are, and nothing is listed: where it does not
// list children, a list costs a look at every process of the machine.
func (t *tree) killPass(trust bool) []int {
	if init := t.init.Load(); init != 0 {
		t.reaper.Signal(int(init), syscall.SIGKILL) // with it goes all of its namespace, at once
	}
	if trust {
		return nil
	}
	if write(t.cgroups.v2, "cgroup.kill", "1") {
		return t.signalAll(syscall.SIGKILL) // what is not in the cgroup
	}
	if freezer := t.cgroups.v1["freezer"]; freezer != "" && t.freezer.enterGate(killPollSlow) {
		write(freezer, "freezer.state", "FROZEN")
		defer t.freezer.leaveGate()
		defer write(freezer, "freezer.state", "THAWED")
	}
	for _, pid := range t.cgroups.members() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return t.signalAll(syscall.SIGKILL)
}

// empty reports whether no process of the task is left. It is asked again and again
// while a task takes its time to stop, so one that lives is looked for at a low
// price before all processes of the machine are.
func (t *tree) empty() bool {
	if t.reaper.Empty() {
		return true
	}
	if t.init.Load() == 0 {
		return false
	}
	return t.lives(proctree.Below) == nil && t.lives(proctree.Descendants) == nil
}

// lives returns an error when a process of the task is alive, or when that could
// not be found out.
func (t *tree) lives(list func(root int) ([]proctree.Process, error)) error {
	processes, err := list(os.Getpid())
	init := int(t.init.Load())
	for _, p := range processes {
		if p.PID != init && !p.Dead() {
			return errLives
		}
	}
	return err
}

var errLives = errors.New("a process of the task is alive")

// processes lists the task's processes, dead ones included.
func (t *tree) processes() ([]proctree.Process, error) {
	processes, err := proctree.Descendants(os.Getpid())
	init := int(t.init.Load())
	return slices.DeleteFunc(processes, func(p proctree.Process) bool { return p.PID == init }), err
}

// signalAll sends a signal to all processes that are alive and returns their
// ids.
func (t *tree) signalAll(signal syscall.Signal) []int {
	processes, err := t.processes()
	if err != nil {
		return nil
	}
	var reached []int
	for _, p := range processes {
		if !p.Dead() {
			_ = syscall.Kill(p.PID, signal) // gone meanwhile, or not ours to signal: the caller looks again
			reached = append(reached, p.PID)
		}
	}
	return reached
}

// measure adds up the tree. Processor time of children that are gone is known
// once their parent, in the end this process, has collected them, unless a
// cgroup counts it.
func (t *tree) measure() *Stats {
	var sum Stats
	page := int64(os.Getpagesize())
	processes, _ := proctree.Below(os.Getpid())
	for _, p := range processes {
		if p.PID == int(t.init.Load()) {
			continue
		}
		sum.CPUTicks += p.UserTicks + p.SysTicks + p.ChildUserTicks + p.ChildSysTicks
		if !p.Dead() {
			sum.Processes++
			sum.Threads += p.Threads
			sum.RSSBytes += p.ResidentPages * page
		}
	}
	if ns, counted := t.cgroups.cpuNS(); counted {
		sum.CPUTicks = ns / uint64(time.Second/proctree.TicksPerSecond)
		return &sum
	}
	gone := max(collectedTime()-t.before, 0)
	sum.CPUTicks += uint64(gone / (time.Second / proctree.TicksPerSecond))
	return &sum
}

// collectedTime is the processor time of all children that this process has
// collected.
func collectedTime() time.Duration {
	var gone syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &gone) != nil {
		return 0
	}
	return time.Duration(gone.Utime.Nano() + gone.Stime.Nano())
}
