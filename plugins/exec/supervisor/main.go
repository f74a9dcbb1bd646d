package supervisor

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// Argument is the hidden first argument with which the main program becomes
// a supervisor.
const Argument = "task-supervisor"

// ConnectionFD is where a supervisor finds its first control connection.
const ConnectionFD = 3

const prSubreaper = 36 // PR_SET_CHILD_SUBREAPER

// trimAfter is when a supervisor gives memory back that only its start
// needed. Short tasks are over before that and save the work.
const trimAfter = 2 * time.Second

// Environ is the environment that a supervisor is started with: how the Go
// runtime behaves in a process that idles for days. Setting it from inside
// would cost start time, and so would looking for processor quotas.
func Environ() []string {
	return []string{"GOMAXPROCS=1", "GOGC=20", "GOMEMLIMIT=64MiB", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}
}

// Main runs a supervisor for the one task that it is told on descriptor 3,
// and returns the process's exit code when that task has ended. It takes the
// whole process: its signals, its children, its working directory. main must
// call it before anything else, on the first goroutine.
func Main(args []string) int {
	if len(args) != 0 {
		fmt.Fprintln(os.Stderr, "task-supervisor: started by the agent only, takes no arguments")
		return 2
	}
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
	body, descriptors, err := agent.read(SpecBytesMax)
	closeAll(descriptors)
	if err != nil {
		return 1 // the agent died before it had told everything: nothing was started
	}
	request, err := DecodeRequest(body)
	if err == nil && request.Op != OpStart {
		err = fmt.Errorf("first request is %q", request.Op)
	}
	if err != nil {
		_ = agent.write(&Reply{Failure: &Failure{Kind: FailBadRequest, Params: map[string]string{"cause": err.Error()}}})
		return 1
	}
	return supervise(agent, request.Spec)
}

// supervise runs the task from start to end.
func supervise(agent *conn, spec *Spec) int {
	r := newReaper()
	s := newSpawner(r)
	t := newTask(spec, r, s)
	// Before the first child, so that no SIGCHLD is missed.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM)

	server, err := listen(t)
	if err != nil {
		_ = agent.write(&Reply{Failure: failed(err)})
		return 1
	}
	// From here on this thread makes all processes of the task, and outlives
	// them. Not earlier: goroutines change places faster without it.
	runtime.LockOSThread()
	if failure := t.start(); failure != nil {
		server.close()
		_ = agent.write(&Reply{Failure: failure})
		return 1
	}
	// Whether the agent still listens does not matter any more.
	_ = agent.write(&Reply{Started: &t.state})
	server.await(agent)
	go server.serve(agent)
	go server.accept()
	go watch(signals, t)
	go t.run()
	time.AfterFunc(trimAfter, debug.FreeOSMemory)
	s.run(t.ended)
	server.close()
	server.tell()
	return 0
}

// watch turns signals into work, for the life of the process.
func watch(signals <-chan os.Signal, t *task) {
	for received := range signals {
		switch received {
		case syscall.SIGCHLD:
			t.reaper.collect()
		case syscall.SIGTERM: // the machine shuts down
			t.stop(syscall.SIGTERM, time.Duration(t.spec.GraceMS)*time.Millisecond)
		}
	}
}
