package taskinit

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"nomadlike/plugins/driver/taskproc"
)

// Bounds of killing.
const (
	killPause    = 5 * time.Millisecond
	killPatience = 10 * time.Second
)

// childOOMScore is how much sooner than the init the kernel kills the task's
// processes for memory: the init is the one to tell about it.
const childOOMScore = 100

// children makes and collects the container's processes.
type children struct {
	*taskproc.Reaper
	oom *os.File // this process's oom_score_adj, nil: cannot be set
}

func newChildren() *children {
	c := &children{Reaper: taskproc.NewReaper()}
	// Opened before the process closes itself to others, itself included.
	if file, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0); err == nil {
		c.oom = file
	}
	return c
}

// command is a program to be started.
type command struct {
	words []string
	env   []string
	dir   string
	files [3]uintptr
	tty   bool // files[0] becomes the controlling terminal
}

// start executes a command in a session of its own. A nil failure means that
// it has been executed.
func (c *children) start(p command) (int, <-chan syscall.WaitStatus, *taskproc.Failure) {
	if failure := taskproc.CheckDir(p.dir); failure != nil {
		return 0, nil, failure
	}
	path, failure := taskproc.FindProgram(p.words[0], p.dir, p.env)
	if failure != nil {
		return 0, nil, failure
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if p.tty {
		sys.Setctty, sys.Ctty = true, 0
	}
	attributes := &syscall.ProcAttr{Dir: p.dir, Env: p.env, Files: p.files[:], Sys: sys}
	pid, exit, err := c.Fork(func() (int, error) {
		defer c.raiseOOMScore()()
		return syscall.ForkExec(path, p.words, attributes)
	})
	if err == taskproc.ErrClosed {
		return 0, nil, &taskproc.Failure{Kind: taskproc.FailEnded}
	}
	if err != nil {
		return 0, nil, taskproc.Explain(p.words[0], path, p.dir, err)
	}
	return pid, exit, nil
}

// raiseOOMScore lets the next child inherit a higher score, and returns what
// undoes it for this process.
func (c *children) raiseOOMScore() func() {
	var before [16]byte
	if c.oom == nil {
		return func() {}
	}
	n, _ := c.oom.ReadAt(before[:], 0)
	own := string(before[:max(n, 0)])
	for len(own) > 0 && own[len(own)-1] == '\n' {
		own = own[:len(own)-1]
	}
	score, err := strconv.Atoi(own)
	if err != nil {
		return func() {}
	}
	if _, err := c.oom.WriteAt([]byte(strconv.Itoa(min(score+childOOMScore, 1000))), 0); err != nil {
		return func() {}
	}
	return func() { _, _ = c.oom.WriteAt([]byte(own), 0) } // back to where it was is always allowed
}

// signalAll sends a signal to every process of the container but this one.
func (c *children) signalAll(signal syscall.Signal) {
	_ = syscall.Kill(-1, signal) // nobody there is fine
}

// killAll kills everything in the container and returns the ids of what does
// not die.
func (c *children) killAll() []int {
	c.Close()
	for deadline := time.Now().Add(killPatience); ; {
		if c.Empty() {
			return nil
		}
		c.signalAll(syscall.SIGKILL)
		if time.Now().After(deadline) {
			return others()
		}
		select {
		case <-c.Changed():
		case <-time.After(killPause):
		}
	}
}

// others lists the processes of the container but this one.
func others() (pids []int) {
	names, _ := filepath.Glob("/proc/[1-9]*")
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
