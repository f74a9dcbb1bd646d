package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"nomadlike/plugins/exec/proctree"
)

// Bounds of working through the process tree.
const (
	killPollFirst = time.Millisecond
	killPollSlow  = 50 * time.Millisecond
	// killPatience is how long SIGKILL may take. What is left then sits in
	// the kernel (for instance on a dead network disk) and is reported.
	killPatience = 10 * time.Second
	// pausePatience is how long it may take until no process runs. On a busy
	// machine a stopped one needs its turn before it stops.
	pausePatience = 5 * time.Second
)

// tree is everything that has descended from this supervisor, the task's
// processes. Its cgroup, when it has one, does in one step what signals do
// in several.
type tree struct {
	reaper *reaper
	cgroup string // directory, "" for none
}

// killAll kills everything and returns the ids of what would not die.
func (t *tree) killAll() (unkillable []int) {
	deadline := time.Now().Add(killPatience)
	for pause := killPollFirst; ; pause = min(pause*2, killPollSlow) {
		if t.reaper.empty() {
			return nil
		}
		t.write("cgroup.freeze", "0")
		t.write("cgroup.kill", "1")
		left := t.signalAll(syscall.SIGKILL)
		if time.Now().After(deadline) {
			return left
		}
		timer := time.NewTimer(pause)
		select {
		case <-t.reaper.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// signalAll sends a signal to all processes that are alive and gives their
// ids.
func (t *tree) signalAll(signal syscall.Signal) []int {
	processes, err := proctree.Descendants(os.Getpid())
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

// pause stops all processes: by the cgroup's freezer when there is one, else
// by SIGSTOP until a pass finds none that is not stopped.
func (t *tree) pause() bool {
	deadline := time.Now().Add(pausePatience)
	if t.write("cgroup.freeze", "1") {
		return t.frozen(deadline)
	}
	sent := make(map[int]bool)
	for time.Now().Before(deadline) {
		processes, err := proctree.Descendants(os.Getpid())
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

// frozen waits until the freezer has stopped every process.
func (t *tree) frozen(deadline time.Time) bool {
	for time.Now().Before(deadline) {
		events, err := os.ReadFile(filepath.Join(t.cgroup, "cgroup.events"))
		if err != nil || bytes.Contains(events, []byte("frozen 1")) {
			return err == nil
		}
		time.Sleep(killPollFirst)
	}
	return false
}

// resume undoes pause.
func (t *tree) resume() {
	if t.write("cgroup.freeze", "0") {
		return
	}
	t.signalAll(syscall.SIGCONT)
}

// measure adds up the tree. Processor time of children that are gone is
// known once their parent, in the end this process, has collected them.
func (t *tree) measure() *Stats {
	var sum Stats
	page := int64(os.Getpagesize())
	processes, _ := proctree.Descendants(os.Getpid())
	for _, p := range processes {
		sum.CPUTicks += p.UserTicks + p.SysTicks + p.ChildUserTicks + p.ChildSysTicks
		if !p.Dead() {
			sum.Processes++
			sum.Threads += p.Threads
			sum.RSSBytes += p.ResidentPages * page
		}
	}
	var gone syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &gone) == nil {
		micros := (gone.Utime.Sec+gone.Stime.Sec)*1_000_000 + int64(gone.Utime.Usec+gone.Stime.Usec)
		sum.CPUTicks += uint64(micros) / (1_000_000 / proctree.TicksPerSecond)
	}
	return &sum
}

// makeCgroup makes the task's cgroup (version 2) and opens it. nil means to
// do without: the path is not one, or may not be made. It must be a new one:
// the kernel kills at once what is started into a cgroup that was killed.
func makeCgroup(path string) *os.File {
	if path == "" {
		return nil
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(path, "cgroup.kill")); err != nil {
		_ = os.Remove(path)
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		_ = os.Remove(path)
		return nil
	}
	return dir
}

// write puts a value into a file of the cgroup and tells whether it could.
func (t *tree) write(name, value string) bool {
	if t.cgroup == "" {
		return false
	}
	file, err := os.OpenFile(filepath.Join(t.cgroup, name), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	_, err = file.WriteString(value)
	return err == nil
}
