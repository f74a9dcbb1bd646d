package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/driver/taskproc"
)

// Bounds of a task's end.
const (
	// drainPatience is how long the logs wait for the end of the pipes once
	// no process of the task is left; only a descriptor passed to a stranger
	// keeps one open.
	drainPatience  = 2 * time.Second
	persistRetry   = time.Second
	persistRetries = 60
	stopsQueued    = 8
	lookPause      = 20 * time.Millisecond
	copyBytes      = 16 << 10
)

// stopRequest asks for the end of the task.
type stopRequest struct {
	signal syscall.Signal
	grace  time.Duration
}

// task is the one task of this process.
//
//	starting ──► running ──► stopping ──► killing ──► ended
//	    │           │      stop request      ▲          exit is recorded
//	    │           └────────────────────────┘
//	    ▼            command has exited
//	 refused (an answer, and nothing is left)
//
// stopping ends when nothing of the tree is left, or the grace is over: a
// shell that dies at once does not cost the program below it its grace.
// Without a stop request, what a command leaves behind is killed at once.
type task struct {
	spec    *Spec
	reaper  *taskproc.Reaper
	spawner *spawner
	tree    *tree
	record  *recordFile
	wanted  func() bool // false once the agent that asked for the start is gone
	state   State

	logs    []*tasklog.Writer
	logDir  *os.File
	pipes   []*os.File     // our ends
	copying sync.WaitGroup // the goroutines that fill logs from pipes

	command <-chan syscall.WaitStatus // nil for a held task
	stops   chan stopRequest
	exit    *Exit         // set before ended is closed
	ended   chan struct{} // closed once the exit is durable
}

func newTask(spec *Spec, r *taskproc.Reaper, record *recordFile, wanted func() bool) *task {
	tree := newTree(r)
	return &task{
		spec: spec, reaper: r, spawner: newSpawner(tree), tree: tree, record: record, wanted: wanted,
		stops: make(chan stopRequest, stopsQueued),
		ended: make(chan struct{}),
	}
}

// start takes the task from its spec to a running command. It runs in the
// spawner's thread, before anything else does, and records the state.
func (t *task) start() *taskproc.Failure {
	if failure := t.prepare(); failure != nil {
		return failure
	}
	// Only now, with the record made: an agent that comes after this one has
	// died sees the record, or the command is not executed.
	if !t.wanted() {
		return failed(errors.New("the agent is gone"))
	}
	if t.spec.Hold {
		t.state.StartedNS = time.Now().UnixNano()
	} else if failure := t.execute(); failure != nil {
		return failure
	}
	if err := t.record.writeState(&t.state); err != nil {
		t.tree.killAll()
		return failed(err)
	}
	t.record.release()
	return nil
}

// discard removes what a start has made that went wrong.
func (t *task) discard() {
	t.leaveCgroups()
	t.record.remove()
}

// prepare makes all that the command needs.
func (t *task) prepare() *taskproc.Failure {
	self, err := proctree.Read(os.Getpid())
	if err != nil {
		return failed(err)
	}
	boot, err := proctree.BootID()
	if err != nil {
		return failed(err)
	}
	t.state = State{
		Version: RecordVersion, TaskID: t.spec.TaskID, Marker: t.spec.Marker, BootID: boot,
		Supervisor: Identity{PID: self.PID, StartTicks: self.StartTicks},
	}
	if err := t.openLogs(); err != nil {
		return failed(err)
	}
	cgroups, err := openCgroups(t.spec)
	if err != nil {
		return failed(err)
	}
	t.tree.cgroups = cgroups
	t.state.Cgroup = t.spec.Cgroup
	if t.spec.Cgroup != "" {
		if t.spawner.cgroup, err = os.Open(t.spec.Cgroup); err != nil {
			return failed(fmt.Errorf("open cgroup: %w", err))
		}
	}
	if t.spawner.limits = t.spec.Limits; len(t.spec.Limits) > 0 {
		if err := ownLimits(); err != nil {
			return failed(err)
		}
	}
	if t.spec.Isolation == nil {
		t.state.Notes = enterNamespaces(t.spec)
		return nil
	}
	if failure := t.spawner.isolate(t.spec); failure != nil {
		return failure
	}
	t.state.Init = t.identify(t.spawner.init.pid)
	return nil
}

// leaveCgroups removes the task's cgroups; one that something unkillable is in
// stays.
func (t *task) leaveCgroups() {
	t.spawner.close()
	t.tree.cgroups.remove()
}

func (t *task) openLogs() error {
	dir, fresh, err := tasklog.PrepareDir(t.spec.LogDir)
	if err != nil {
		return err
	}
	t.logDir = dir
	for _, stream := range []string{tasklog.Stdout, tasklog.Stderr} {
		writer, err := tasklog.NewWriter(dir, fresh, stream, t.spec.LogFiles, t.spec.LogBytes)
		if err != nil {
			return err
		}
		t.logs = append(t.logs, writer)
	}
	return nil
}

// execute starts the command with its output going to the logs.
func (t *task) execute() *taskproc.Failure {
	null, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return failed(fmt.Errorf("open /dev/null: %w", err))
	}
	theirs := []int{null}
	defer func() { taskproc.CloseAll(theirs) }()
	for _, log := range t.logs {
		var ends [2]int
		if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
			return failed(fmt.Errorf("make output pipe: %w", err))
		}
		theirs = append(theirs, ends[1])
		if err := syscall.SetNonblock(ends[0], true); err != nil { // ours only: it waits in the poller
			return failed(fmt.Errorf("make output pipe: %w", err))
		}
		pipe := os.NewFile(uintptr(ends[0]), "output")
		t.pipes = append(t.pipes, pipe)
		t.copying.Go(func() { copyOutput(log, t.spec.Mask, pipe) })
	}
	pid, exit, failure := t.spawner.start(program{
		command: t.spec.Command, env: t.spec.Env, dir: t.spec.Dir, credential: t.spec.Credential,
		files: []uintptr{uintptr(theirs[0]), uintptr(theirs[1]), uintptr(theirs[2])},
	})
	if failure != nil {
		return failure
	}
	t.state.StartedNS = time.Now().UnixNano()
	t.command = exit
	t.state.Command = t.identify(pid)
	return nil
}

// identify returns the identity of a child. It may have ended already, but as a
// rule is not collected yet, so this is still its own entry.
func (t *task) identify(pid int) Identity {
	identity := Identity{PID: pid}
	// Not in the spawner's thread, which may see another /proc.
	done := make(chan struct{})
	go func() {
		defer close(done)
		if process, err := proctree.Read(pid); err == nil {
			identity.StartTicks = process.StartTicks
		}
	}()
	<-done
	return identity
}

// copyOutput fills a log until the pipe ends or is closed.
func copyOutput(log *tasklog.Writer, mask []tasklog.Masked, pipe *os.File) {
	var to io.Writer = log
	if masker := tasklog.NewMasker(log, mask); masker != nil {
		defer masker.Close()
		to = masker
	}
	buffer := make([]byte, copyBytes)
	for {
		n, err := pipe.Read(buffer)
		if n > 0 {
			_, _ = to.Write(buffer[:n]) // never fails: see tasklog.Writer
		}
		if err != nil {
			return
		}
	}
}

// stop hands in a stop request. When many are waiting, more change nothing.
func (t *task) stop(signal syscall.Signal, grace time.Duration) {
	select {
	case t.stops <- stopRequest{signal, grace}:
	default:
	}
}

// run sees the task to its end.
func (t *task) run() {
	exit := &Exit{Version: RecordVersion, TaskID: t.spec.TaskID, StartedNS: t.state.StartedNS}
	t.live(exit)
	t.reaper.Close()
	exit.Unkillable = t.tree.killAll()
	if t.command != nil {
		select {
		case status := <-t.command:
			exit.set(status)
		default: // unkillable
			exit.Code, exit.Lost = codeUnknown, true
		}
	}
	exit.OOMKills = t.tree.cgroups.oomKills()
	t.leaveCgroups()
	t.finishLogs()
	exit.FinishedNS = time.Now().UnixNano()
	t.exit = exit
	t.persist()
	t.record.close()
	close(t.ended)
}

// live waits until it is time to kill what is left.
func (t *task) live(exit *Exit) {
	var deadline time.Time
	var expired <-chan time.Time
	stopping := false
	// In a process namespace orphans end without a word to this process.
	var look <-chan time.Time
	for {
		if stopping && t.tree.empty() {
			return
		}
		select {
		case status := <-t.command:
			exit.set(status)
			t.command = nil
			if !stopping {
				return
			}
		case <-t.reaper.Changed():
		case <-look:
		case <-expired:
			return
		case request := <-t.stops:
			end := time.Now().Add(request.grace)
			if !stopping || end.Before(deadline) {
				deadline = end
				timer := time.NewTimer(request.grace)
				defer timer.Stop()
				expired = timer.C
			}
			if !stopping && t.tree.init.Load() != 0 {
				ticker := time.NewTicker(lookPause)
				defer ticker.Stop()
				look = ticker.C
			}
			stopping = true
			if request.grace <= 0 {
				return
			}
			t.tree.freezer.release()
			t.signal(request.signal)
		}
	}
}

// signal sends to the command's process group. A held task's processes are
// in groups that only they know, and a command that is gone has left its
// group's id to anybody: then all processes get it.
func (t *task) signal(signal syscall.Signal) {
	if t.spec.Hold || !t.reaper.SignalGroup(t.state.Command.PID, signal) {
		t.tree.signalAll(signal)
	}
}

// finishLogs closes the logs when the pipes are empty, or after a while.
func (t *task) finishLogs() {
	done := make(chan struct{})
	go func() {
		t.copying.Wait()
		close(done)
	}()
	timer := time.NewTimer(drainPatience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		for _, pipe := range t.pipes {
			pipe.Close() // ends the reads
		}
		<-done
	}
	for _, pipe := range t.pipes {
		pipe.Close()
	}
	for _, log := range t.logs {
		log.Close()
	}
	t.logDir.Close()
}

// persist records the exit, trying again for a while when the disk refuses.
func (t *task) persist() {
	for range persistRetries {
		err := t.record.writeExit(t.exit)
		if err == nil {
			return
		}
		fmt.Fprintln(os.Stderr, "task", t.spec.TaskID, err)
		time.Sleep(persistRetry)
	}
}

// codeUnknown stands for an exit that nobody saw.
const codeUnknown = 255

// set takes over how a process ended.
func (e *Exit) set(status syscall.WaitStatus) {
	if status.Signaled() {
		e.Signal = int(status.Signal())
		e.Code = 128 + e.Signal
		return
	}
	e.Code = status.ExitStatus()
}

// failed is a failure that is the node's fault.
func failed(err error) *taskproc.Failure {
	return &taskproc.Failure{Kind: "supervisor_failed", Params: map[string]string{"cause": err.Error()}}
}
