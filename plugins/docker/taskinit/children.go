package taskinit

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Bounds of killing.
const (
	killPause    = 5 * time.Millisecond
	killPatience = 10 * time.Second
)

// childOOMScore is how much sooner than the init the kernel kills the task's
// processes for memory: the init is the one to tell about it.
const childOOMScore = 100

// children makes and collects processes. As process 1 of its namespace, the
// init gets every orphan, so "no child" means that nothing is left.
type children struct {
	oom *os.File // this process's oom_score_adj, nil: can not be set

	mu struct {
		sync.Mutex
		waiting map[int]chan syscall.WaitStatus
		none    bool
		closed  bool // the task ends: no more children
	}
	changed chan struct{} // gets a token when children were collected
}

func newChildren() *children {
	c := &children{changed: make(chan struct{}, 1)}
	c.mu.waiting = make(map[int]chan syscall.WaitStatus)
	c.mu.none = true
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
func (c *children) start(p command) (int, <-chan syscall.WaitStatus, *Failure) {
	if info, err := os.Stat(p.dir); err != nil || !info.IsDir() {
		cause := error(syscall.ENOTDIR)
		if err != nil {
			cause = errnoOf(err)
		}
		return 0, nil, refuse(codeNotExecutable, "dir_missing", "dir", p.dir, "cause", cause.Error())
	}
	path, failure := findProgram(p.words[0], p.dir, p.env)
	if failure != nil {
		return 0, nil, failure
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if p.tty {
		sys.Setctty, sys.Ctty = true, 0
	}
	attributes := &syscall.ProcAttr{Dir: p.dir, Env: p.env, Files: p.files[:], Sys: sys}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return 0, nil, &Failure{Kind: FailEnded}
	}
	restore := c.raiseOOMScore()
	pid, err := syscall.ForkExec(path, p.words, attributes)
	restore()
	if err != nil {
		return 0, nil, explain(p.words[0], path, p.dir, err)
	}
	exit := make(chan syscall.WaitStatus, 1)
	c.mu.waiting[pid] = exit
	c.mu.none = false
	return pid, exit, nil
}

// raiseOOMScore lets the next child inherit a higher score, and gives what
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

// collect takes all exits that are there. Called after every SIGCHLD.
func (c *children) collect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	collected := false
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err == syscall.ECHILD {
			collected = collected || !c.mu.none
			c.mu.none = true
			break
		}
		if err != nil || pid <= 0 {
			c.mu.none = false
			break
		}
		collected = true
		if exit, ok := c.mu.waiting[pid]; ok {
			delete(c.mu.waiting, pid)
			exit <- status
		}
	}
	if collected {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

// signalGroup sends a signal to the process group of a child that has not
// been collected: as long as that is so, nobody else has its id.
func (c *children) signalGroup(pid int, signal syscall.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ours := c.mu.waiting[pid]
	return ours && syscall.Kill(-pid, signal) == nil
}

// signalAll sends a signal to every process of the container but this one.
func (c *children) signalAll(signal syscall.Signal) {
	_ = syscall.Kill(-1, signal) // nobody there is fine
}

func (c *children) empty() bool {
	c.collect()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.none
}

// killAll kills everything in the container and gives the ids of what does
// not die.
func (c *children) killAll() []int {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	for deadline := time.Now().Add(killPatience); ; {
		if c.empty() {
			return nil
		}
		c.signalAll(syscall.SIGKILL)
		if time.Now().After(deadline) {
			return others()
		}
		select {
		case <-c.changed:
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
