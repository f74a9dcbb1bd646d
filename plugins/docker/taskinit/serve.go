package taskinit

import (
	"syscall"
	"time"

	"nomadlike/plugins/driver/taskproc"
	"nomadlike/plugins/driver/taskside"
)

// hangupPatience is how long a command whose caller went away may take to
// heed SIGHUP.
const hangupPatience = time.Second

// signalMax is the highest signal there is.
const signalMax = 64

// serve answers the requests of one agent's connection.
func (p *process) serve(caller *Conn) {
	defer caller.Close()
	for {
		var request Request
		descriptors, err := caller.Receive(&request)
		if err != nil {
			return
		}
		if request.Op == OpExec && request.Exec != nil {
			p.exec(caller, request.Exec, descriptors)
			return
		}
		taskproc.CloseAll(descriptors)
		reply := Reply{}
		switch {
		case request.Signal < 0 || request.Signal > signalMax:
			reply.Failure = taskproc.BadRequest("no such signal")
		case p.over():
			reply.Failure = &taskproc.Failure{Kind: taskproc.FailEnded}
		case request.Op == OpStop:
			p.stop(stopRequest{signal: syscall.Signal(request.Signal), grace: time.Duration(request.GraceMS) * time.Millisecond})
		case request.Op == OpSignal:
			p.signal(syscall.Signal(request.Signal))
		default:
			reply.Failure = taskproc.BadRequest("unknown request")
		}
		if caller.Send(reply) != nil {
			return
		}
	}
}

// over reports whether the task has ended.
func (p *process) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.exit != nil
}

// exec runs a command and stays with it until it has exited or its caller is
// gone.
func (p *process) exec(caller *Conn, spec *Exec, descriptors []int) {
	master := -1
	c := command{words: spec.Command, env: taskproc.Overlay(p.spec.Env, spec.Env), dir: spec.Dir, tty: spec.TTY}
	if c.dir == "" {
		c.dir = p.spec.Dir
	}
	refused := func(failure *taskproc.Failure) {
		taskproc.CloseAll(descriptors)
		_ = caller.Send(Reply{Failure: failure}) // a caller that is gone needs none
	}
	if len(c.words) == 0 || c.words[0] == "" {
		refused(taskproc.BadRequest("no command"))
		return
	}
	if spec.Side {
		if !taskside.Known(spec.Command) {
			refused(taskproc.BadRequest("unknown role"))
			return
		}
		c.words = append([]string{"/proc/self/exe", taskside.Argument}, spec.Command...)
	}
	if spec.TTY {
		taskproc.CloseAll(descriptors)
		var slave int
		var err error
		if master, slave, err = openTerminal(spec.Rows, spec.Cols); err != nil {
			descriptors = nil
			refused(taskproc.Refuse(0, "start_refused", "command", spec.Command[0], "cause", err.Error()))
			return
		}
		defer syscall.Close(master)
		descriptors = []int{slave}
		c.files = [3]uintptr{uintptr(slave), uintptr(slave), uintptr(slave)}
	} else {
		if len(descriptors) != len(c.files) {
			refused(taskproc.BadRequest("want three descriptors"))
			return
		}
		for i, fd := range descriptors {
			c.files[i] = uintptr(fd)
		}
	}
	defer p.countExec()()
	started := time.Now()
	pid, exit, failure := p.children.start(c)
	if failure != nil {
		refused(failure)
		return
	}
	taskproc.CloseAll(descriptors)
	running := Reply{Running: true}
	if spec.TTY {
		_ = caller.Send(running, master)
	} else {
		_ = caller.Send(running)
	}
	gone := make(chan struct{})
	go func() { // ends when the caller's connection does: serve closes it
		defer close(gone)
		p.relaySignals(caller, pid)
	}()
	status, ok := p.awaitExec(spec, pid, exit, gone)
	if !ok {
		return
	}
	result := &Exit{StartedNS: started.UnixNano(), FinishedNS: time.Now().UnixNano()}
	result.set(status)
	_ = caller.Send(Reply{Exit: result})
}

// relaySignals passes signal requests on until the connection ends.
func (p *process) relaySignals(caller *Conn, pid int) {
	for {
		var request Request
		descriptors, err := caller.Receive(&request)
		taskproc.CloseAll(descriptors)
		if err != nil || request.Op != OpSignal || request.Signal < 1 || request.Signal > signalMax {
			return
		}
		p.children.SignalGroup(pid, syscall.Signal(request.Signal))
	}
}

// awaitExec waits for a command's exit. When its caller goes away first, the
// command is hung up on and then killed, unless it survives.
func (p *process) awaitExec(spec *Exec, pid int, exit <-chan syscall.WaitStatus, gone <-chan struct{}) (syscall.WaitStatus, bool) {
	select {
	case status := <-exit:
		return status, true
	case <-gone:
	}
	if spec.Survive {
		return 0, false
	}
	p.children.SignalGroup(pid, syscall.SIGHUP)
	timer := time.NewTimer(hangupPatience)
	defer timer.Stop()
	select {
	case <-exit:
	case <-timer.C:
		p.children.SignalGroup(pid, syscall.SIGKILL)
	}
	return 0, false
}
