package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"nomadlike/plugins/driver/taskproc"
	"nomadlike/plugins/driver/taskside"
)

// Argument is the hidden first argument with which the main program becomes
// a supervisor.
const Argument = "task-supervisor"

// ConnectionFD is where a supervisor finds its first control connection.
const ConnectionFD = 3

const prSubreaper = 36 // PR_SET_CHILD_SUBREAPER

// trimAfter is when a supervisor returns memory that only its start
// needed. Short tasks are over before that and save the work.
const trimAfter = 2 * time.Second

// Environ is the environment that a supervisor is started with: how the Go
// runtime behaves in a process that idles for days. Setting it from inside
// would cost start time, and so would looking for processor quotas. A build with
// the race detector, which tests run, hands on how that behaves.
func Environ() []string {
	env := []string{"GOMAXPROCS=1", "GOGC=20", "GOMEMLIMIT=64MiB", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}
	if race := os.Getenv(raceEnv); race != "" {
		env = append(env, raceEnv+"="+race)
	}
	return env
}

// raceEnv configures Go's race detector, and means nothing to other builds.
const raceEnv = "GORACE"

// Main runs a supervisor for the tasks that it is told on descriptor 3, one
// after the other, and returns the process's exit code when that connection
// has ended and no task is left. It takes the whole process: its signals, its
// children, its working directory. main must call it before anything else, on
// the first goroutine.
func Main(args []string) int {
	if len(args) == 1 && args[0] == initArgument {
		return runInit()
	}
	if len(args) > 0 && args[0] == limitsArgument {
		return runLimited(args[1:])
	}
	if len(args) > 0 && args[0] == taskside.Argument {
		return taskside.Main(args[1:])
	}
	if len(args) != 0 {
		fmt.Fprintln(os.Stderr, "task-supervisor: started by the agent only, takes no arguments")
		return 2
	}
	// Threads of tasks end with them, which the first thread of a process can
	// not: it waits here.
	runtime.LockOSThread()
	code := make(chan int)
	go func() { code <- run() }()
	return <-code
}

func run() int {
	syscall.Umask(0o022)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSubreaper, 1, 0); errno != 0 {
		fmt.Fprintln(os.Stderr, "become subreaper:", errno)
		return 1
	}
	agent, err := newConn(ConnectionFD)
	if err != nil {
		fmt.Fprintln(os.Stderr, "task-supervisor:", err)
		return 2
	}
	p := &process{agent: agent, reaper: taskproc.NewReaper()}
	// Before the first child, so that no SIGCHLD is missed.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM)
	go p.watch(signals)
	for p.next() {
	}
	return 0
}

// process is this supervisor between and during its tasks.
type process struct {
	agent  *conn
	reaper *taskproc.Reaper

	mu struct {
		sync.Mutex
		task *task // nil between tasks
	}
}

// watch turns signals into work, for the life of the process.
func (p *process) watch(signals <-chan os.Signal) {
	for received := range signals {
		if received == syscall.SIGCHLD {
			p.reaper.Collect()
			continue
		}
		p.mu.Lock()
		t := p.mu.task
		p.mu.Unlock()
		if t == nil {
			os.Exit(0)
		}
		// The machine shuts down.
		t.stop(syscall.SIGTERM, time.Duration(t.spec.GraceMS)*time.Millisecond)
	}
}

func (p *process) set(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.task = t
}

// next waits for a spec and sees its task from start to end. It reports whether
// this process may have another one.
func (p *process) next() bool {
	trim := time.AfterFunc(trimAfter, debug.FreeOSMemory)
	defer trim.Stop()
	body, descriptors, err := p.agent.Read(SpecBytesMax)
	taskproc.CloseAll(descriptors)
	if err != nil {
		return false // the agent is gone; what it has not told completely is not started
	}
	request, err := DecodeRequest(body)
	if err == nil && request.Op == OpProbe {
		p.probe(request.Spec)
		return false
	}
	if err == nil && request.Op != OpStart {
		err = fmt.Errorf("request %q without a task", request.Op)
	}
	if err != nil {
		_ = p.agent.write(&Reply{Failure: taskproc.BadRequest(err.Error())})
		return false
	}
	return p.supervise(request.Spec)
}

// probe tries an isolation out in a thread of its own, and reports how it went.
func (p *process) probe(spec *Spec) {
	answer := make(chan *Reply)
	go func() {
		runtime.LockOSThread() // and never unlock: it cannot be used for anything else
		result, failure := probe(spec)
		answer <- &Reply{Probe: result, Failure: failure}
	}()
	_ = p.agent.write(<-answer)
}

// supervise runs a task. After a start that failed, or with processes that
// would not die, this process is not fit for another, nor with limits that the
// agent may have raised for the task.
func (p *process) supervise(spec *Spec) bool {
	p.reaper.Reopen()
	record, err := createRecord(".", spec.TaskID)
	if err != nil {
		failure := failed(err)
		if errors.Is(err, os.ErrExist) || errors.Is(err, ErrLocked) {
			failure.Kind = taskproc.FailExists
		}
		_ = p.agent.write(&Reply{Failure: failure})
		return false
	}
	t := newTask(spec, p.reaper, record, p.agent.Open)
	server, err := listen(t)
	if err != nil {
		t.discard()
		_ = p.agent.write(&Reply{Failure: failed(err)})
		return false
	}
	p.set(t)
	defer p.set(nil)
	started := make(chan *taskproc.Failure)
	var thread sync.WaitGroup
	thread.Go(func() {
		// This thread makes all processes of the task and outlives them. It
		// is never unlocked, so it ends here, and with it the namespaces.
		runtime.LockOSThread()
		var failure *taskproc.Failure
		if err := dropNice(); err != nil {
			failure = failed(err)
		} else {
			failure = t.start()
		}
		started <- failure
		if failure == nil {
			t.spawner.run(t.ended)
		}
	})
	if failure := <-started; failure != nil {
		server.unlink()
		t.discard()
		_ = p.agent.write(&Reply{Failure: failure})
		return false
	}
	// Whether the agent still listens does not matter any more.
	_ = p.agent.write(&Reply{Started: &t.state})
	server.await(p.agent)
	var work sync.WaitGroup
	work.Go(server.accept)
	trim := time.AfterFunc(trimAfter, debug.FreeOSMemory)
	defer trim.Stop()
	if t.spec.Lease != "" {
		work.Go(t.enforceLease)
	}
	t.run()
	thread.Wait()
	server.unlink()
	server.tell()
	server.close()
	work.Wait()
	return len(t.exit.Unkillable) == 0 && len(spec.Limits) == 0
}
