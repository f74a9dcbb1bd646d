package taskinit

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"nomadlike/plugins/driver/taskproc"
)

const (
	// dialPatience bounds how long a new init looks for its keeper.
	dialPatience = 5 * time.Second
	redialPause  = 50 * time.Millisecond
	// ackPatience is how long an init that has ended waits to be heard; then
	// its exit code has to do.
	ackPatience = 30 * time.Second
	// execPatience is how long such an init waits for the callers of commands
	// that ended with or before the task.
	execPatience = time.Second
	stopsQueued  = 8
	codeUnknown  = 255
	// codeBroken is the exit code of an init that could not do its work, as
	// the engine's own client uses it.
	codeBroken = 125
	// pipeBytes is how much output may wait for a keeper.
	pipeBytes = 1 << 20

	prSetDumpable = 4
	fSetPipeSize  = 1031
)

type stopRequest struct {
	signal  syscall.Signal
	grace   time.Duration
	outside bool // asked by a signal to the init, without an end of its own
}

// process is the init: one task from its spec to its end.
//
//	waiting ──► running ──► stopping ──► killing ──► ended
//	   │ spec       │   stop or signal       ▲      heard by the keeper: exit
//	   │            └────────────────────────┘
//	   ▼             the command has exited
//	refused
type process struct {
	children *children
	spec     *Spec
	pid      int // of the command
	command  <-chan syscall.WaitStatus
	stops    chan stopRequest
	acked    chan struct{}
	specs    chan *Spec
	serving  sync.WaitGroup
	execs    sync.WaitGroup // commands beside the task's own, until their callers know how they ended

	mu struct {
		sync.Mutex
		link    *Conn // to the keeper, nil while there is none
		started *Started
		refused *taskproc.Failure
		exit    *Exit
		lease   Lease  // of the node, for a strict task
		pipes   [2]int // read ends of stdout and stderr, kept for the next keeper
		ended   bool   // and all that ran beside it: execs counts no more
	}
}

func runInit() int {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "task-init: started by the engine as process 1 of a container only")
		return codeBroken
	}
	p := &process{
		children: newChildren(), stops: make(chan stopRequest, stopsQueued),
		acked: make(chan struct{}, 1), specs: make(chan *Spec, 1),
	}
	// Nobody in the container may look into this process: its descriptors
	// lead to the node.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0); errno != 0 {
		fmt.Fprintln(os.Stderr, "task-init: close the process to others:", errno)
		return codeBroken
	}
	syscall.Umask(0o022)
	// All of them: the task may send any, and one that is not caught could
	// end this process, and the container with it.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	go p.watchSignals(signals)
	link, err := p.connect(time.Now().Add(dialPatience))
	if err != nil {
		fmt.Fprintln(os.Stderr, "task-init:", err)
		return codeBroken
	}
	go p.listen(link)
	select {
	case p.spec = <-p.specs:
	case <-time.After(dialPatience):
		fmt.Fprintln(os.Stderr, "task-init: the keeper did not say what to run")
		return codeBroken
	}
	if p.spec.Lease != nil {
		p.mu.Lock()
		p.mu.lease = *p.spec.Lease
		p.mu.Unlock()
		go p.enforceLease()
	}
	if failure := p.launch(); failure != nil {
		p.tell(func() { p.mu.refused = failure }, Report{Refused: failure})
		p.awaitAck()
		if failure.ExitCode != 0 {
			return failure.ExitCode
		}
		return codeBroken
	}
	exit := p.live()
	exit.Unkillable = p.children.killAll()
	if p.command != nil {
		select {
		case status := <-p.command:
			exit.set(status)
		default: // unkillable
			exit.Code = codeUnknown
		}
	}
	exit.FinishedNS = time.Now().UnixNano()
	p.awaitExecs()
	p.tell(func() { p.mu.exit = exit }, Report{Exit: exit})
	p.awaitAck()
	return exit.Code
}

// watchSignals serves the whole life of the process.
func (p *process) watchSignals(signals <-chan os.Signal) {
	for received := range signals {
		switch received {
		case syscall.SIGCHLD:
			p.children.Collect()
		case syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP:
			p.stop(stopRequest{signal: received.(syscall.Signal), outside: true})
		}
	}
}

// connect reaches the keeper and says Hello with all that is known. The lock
// keeps what happens meanwhile from getting lost between two keepers.
func (p *process) connect(deadline time.Time) (*Conn, error) {
	for {
		link, err := Dial(MountPoint, InitSocket)
		if err == nil {
			p.mu.Lock()
			hello := Report{Hello: true, Started: p.mu.started, Refused: p.mu.refused, Exit: p.mu.exit}
			var pipes []int
			if p.mu.started != nil && p.mu.pipes[0] > 0 {
				pipes = p.mu.pipes[:]
			}
			if err = link.Send(hello, pipes...); err == nil {
				p.mu.link = link
			}
			p.mu.Unlock()
			if err == nil {
				return link, nil
			}
			link.Close()
		}
		if !deadline.IsZero() && time.Now().After(deadline) {
			return nil, fmt.Errorf("reach the keeper: %w", err)
		}
		time.Sleep(redialPause)
	}
}

// listen takes the keeper's orders, from one keeper after the other.
func (p *process) listen(link *Conn) {
	for {
		var o order
		descriptors, err := link.Receive(&o)
		if err != nil {
			p.mu.Lock()
			p.mu.link = nil
			p.mu.Unlock()
			link.Close()
			if link, err = p.connect(time.Time{}); err != nil {
				return // impossible without a deadline
			}
			continue
		}
		switch {
		case o.Caller && len(descriptors) == 1:
			if caller, err := NewConn(descriptors[0]); err == nil {
				p.serving.Go(func() { p.serve(caller) })
				continue
			}
		case o.Lease != nil:
			p.mu.Lock()
			p.mu.lease = *o.Lease
			p.mu.Unlock()
		case o.Spec != nil:
			select {
			case p.specs <- o.Spec:
			default:
			}
		case o.Ack:
			select {
			case p.acked <- struct{}{}:
			default:
			}
		}
		taskproc.CloseAll(descriptors)
	}
}

// tell notes something and reports it. Without a keeper, the next one is told
// by Hello.
func (p *process) tell(note func(), report Report, descriptors ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note()
	if p.mu.link != nil {
		_ = p.mu.link.Send(report, descriptors...) // a broken link is seen by listen
	}
}

func (p *process) awaitAck() {
	timer := time.NewTimer(ackPatience)
	defer timer.Stop()
	select {
	case <-p.acked:
	case <-timer.C:
	}
}

// awaitExecs lets the callers of commands that have ended hear of it before
// this process ends, and with it the connection.
func (p *process) awaitExecs() {
	p.mu.Lock()
	p.mu.ended = true
	p.mu.Unlock()
	heard := make(chan struct{})
	go func() { // ends with the process when a caller does not listen
		defer close(heard)
		p.execs.Wait()
	}()
	timer := time.NewTimer(execPatience)
	defer timer.Stop()
	select {
	case <-heard:
	case <-timer.C:
	}
}

// countExec has the end wait for a command's caller, unless the task has ended
// already: nothing is started any more then.
func (p *process) countExec() (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.ended {
		return func() {}
	}
	p.execs.Add(1)
	return p.execs.Done
}

// launch starts the command with its output going to the keeper.
func (p *process) launch() *taskproc.Failure {
	started := &Started{Protocol: Protocol}
	var pipes [2]int
	if !p.spec.Hold {
		null, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return broken("open /dev/null", err)
		}
		defer syscall.Close(null)
		c := command{words: p.spec.Command, env: p.spec.Env, dir: p.spec.Dir}
		c.files[0] = uintptr(null)
		for i := range pipes {
			var ends [2]int
			if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
				return broken("make pipe", err)
			}
			defer syscall.Close(ends[1])
			// Refused when the user has many pipes already; the default is enough then.
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(ends[0]), fSetPipeSize, pipeBytes)
			pipes[i] = ends[0]
			c.files[i+1] = uintptr(ends[1])
		}
		pid, exit, failure := p.children.start(c)
		if failure != nil {
			return failure
		}
		p.pid, p.command = pid, exit
	}
	started.StartedNS = time.Now().UnixNano()
	var descriptors []int
	if !p.spec.Hold {
		descriptors = pipes[:]
	}
	p.tell(func() { p.mu.started, p.mu.pipes = started, pipes }, Report{Started: started}, descriptors...)
	return nil
}

func broken(what string, err error) *taskproc.Failure {
	return taskproc.Refuse(0, "start_refused", "command", what, "cause", err.Error())
}

func (p *process) stop(request stopRequest) {
	select {
	case p.stops <- request:
	default: // many are waiting: one more changes nothing
	}
}

// live waits until it is time to kill what is left.
func (p *process) live() *Exit {
	exit := &Exit{StartedNS: p.mu.started.StartedNS} // set by launch, in this goroutine
	var deadline time.Time
	var expired <-chan time.Time
	stopping := false
	for {
		if stopping && p.children.Empty() {
			return exit
		}
		select {
		case status := <-p.command:
			exit.set(status)
			p.command = nil
			if !stopping {
				return exit
			}
		case <-p.children.Changed():
		case <-expired:
			return exit
		case request := <-p.stops:
			stopping = true
			if request.outside {
				exit.Outside = exit.Outside || !exit.Stopped
				p.children.signalAll(request.signal)
				continue
			}
			exit.Stopped = true
			if end := time.Now().Add(request.grace); deadline.IsZero() || end.Before(deadline) {
				deadline = end
				timer := time.NewTimer(request.grace)
				defer timer.Stop()
				expired = timer.C
			}
			if request.grace <= 0 {
				return exit
			}
			p.signal(request.signal)
		}
	}
}

// signal sends to the command's process group, or to everything when there is
// no command any more, or never was.
func (p *process) signal(signal syscall.Signal) {
	if p.spec.Hold || !p.children.SignalGroup(p.pid, signal) {
		p.children.signalAll(signal)
	}
}

func (e *Exit) set(status syscall.WaitStatus) {
	switch {
	case status.Signaled():
		e.Signal = int(status.Signal())
		e.Code = 128 + e.Signal
	default:
		e.Code = status.ExitStatus()
	}
}
