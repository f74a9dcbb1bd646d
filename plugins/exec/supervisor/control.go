package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"nomadlike/plugins/driver/taskproc"
)

// Bounds of the control socket.
const (
	connectionsMax = 128
	backlog        = 16
	// hangupPatience is how long a command whose caller went away may take
	// to heed SIGHUP.
	hangupPatience = time.Second
)

// control serves the requests of the agent.
type control struct {
	task     *task
	listener *os.File
	raw      syscall.RawConn

	mu struct {
		sync.Mutex
		connections int
		open        map[*conn]bool
		waiters     map[*conn]bool
		told        bool // the waiters have their answer
	}
	serving sync.WaitGroup // one per connection
}

// listen makes the control socket in the working directory, which is the
// state directory: a long path to it cannot overflow the address. The task's
// record must have been made: with it, a socket of that name is nobody's.
func listen(t *task) (*control, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make control socket: %w", err)
	}
	name := t.spec.TaskID + SocketSuffix
	_ = syscall.Unlink(name)
	if err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}); err == nil {
		err = syscall.Chmod(name, 0o600)
	}
	if err == nil {
		err = syscall.Listen(fd, backlog)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("listen on control socket: %w", err)
	}
	listener := os.NewFile(uintptr(fd), name)
	raw, err := listener.SyscallConn()
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("listen on control socket: %w", err)
	}
	c := &control{task: t, listener: listener, raw: raw}
	c.mu.open = make(map[*conn]bool)
	c.mu.waiters = make(map[*conn]bool)
	return c, nil
}

// accept serves connections until the listener is closed.
func (c *control) accept() {
	for {
		fd := -1
		var err error
		waitErr := c.raw.Read(func(listener uintptr) bool {
			fd, _, err = syscall.Accept4(int(listener), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
			return err != syscall.EAGAIN
		})
		if waitErr != nil {
			return
		}
		if err != nil {
			if err == syscall.EMFILE || err == syscall.ENFILE {
				time.Sleep(killPollSlow)
			}
			continue
		}
		if !trusted(fd) || !c.enter() {
			syscall.Close(fd)
			continue
		}
		connection, err := newConn(fd)
		if err != nil {
			syscall.Close(fd)
			c.leave()
			continue
		}
		c.remember(connection)
		c.serving.Go(func() {
			defer c.leave()
			c.serve(connection)
		})
	}
}

// trusted reports whether the peer is the agent's user or root.
func trusted(fd int) bool {
	peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	return err == nil && (peer.Uid == 0 || int(peer.Uid) == os.Geteuid())
}

func (c *control) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.connections >= connectionsMax {
		return false
	}
	c.mu.connections++
	return true
}

func (c *control) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.connections--
}

// serve answers the requests of one connection until it is closed.
func (c *control) serve(connection *conn) {
	defer connection.Close()
	defer c.forget(connection)
	for {
		body, descriptors, err := connection.Read(MessageBytesMax)
		if err != nil {
			return
		}
		request, err := DecodeRequest(body)
		if err != nil || request.Op == OpStart {
			taskproc.CloseAll(descriptors)
			cause := "start comes once"
			if err != nil {
				cause = err.Error()
			}
			_ = connection.write(&Reply{Failure: taskproc.BadRequest(cause)})
			return
		}
		if request.Op == OpExec {
			c.exec(connection, request.Exec, descriptors)
			return
		}
		taskproc.CloseAll(descriptors)
		if request.Op == OpWait {
			c.await(connection)
			continue
		}
		if connection.write(c.answer(request)) != nil {
			return
		}
	}
}

// answer executes a request that is answered at once.
func (c *control) answer(request *Request) *Reply {
	t := c.task
	if request.Op == OpStop {
		t.stop(syscall.Signal(request.Signal), time.Duration(request.GraceMS)*time.Millisecond)
		return &Reply{}
	}
	select {
	case <-t.ended:
		return &Reply{Failure: &taskproc.Failure{Kind: taskproc.FailEnded}}
	default:
	}
	switch request.Op {
	case OpSignal:
		t.signal(syscall.Signal(request.Signal))
	case OpPause:
		if !t.tree.freezer.pause() {
			return &Reply{Failure: &taskproc.Failure{Kind: taskproc.FailBusy}}
		}
	case OpContinue:
		t.tree.freezer.resume()
	case OpThrottle:
		t.tree.freezer.throttle(time.Duration(request.BusyMS)*time.Millisecond, time.Duration(request.IdleMS)*time.Millisecond)
	case OpStats:
		return &Reply{Stats: t.tree.measure()}
	}
	return &Reply{}
}

// await remembers a connection that wants to know the exit.
func (c *control) await(connection *conn) {
	c.mu.Lock()
	told := c.mu.told
	if !told {
		c.mu.waiters[connection] = true
	}
	c.mu.Unlock()
	if told {
		_ = connection.write(&Reply{Exit: c.task.exit}) // a peer that is gone reads the record
	}
}

func (c *control) remember(connection *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.open[connection] = true
}

func (c *control) forget(connection *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.open, connection)
	delete(c.mu.waiters, connection)
}

// unlink removes the socket, so that nobody comes any more.
func (c *control) unlink() {
	_ = syscall.Unlink(c.task.spec.TaskID + SocketSuffix)
}

// close ends all connections but the agent's own, and waits for those who
// serve them. Called once, after tell.
func (c *control) close() {
	c.listener.Close()
	c.mu.Lock()
	for connection := range c.mu.open {
		connection.Close()
	}
	c.mu.Unlock()
	c.serving.Wait()
}

// tell answers all who wait. Called once, after the task has ended.
func (c *control) tell() {
	c.mu.Lock()
	waiters := c.mu.waiters
	c.mu.waiters = make(map[*conn]bool)
	c.mu.told = true
	c.mu.Unlock()
	for connection := range waiters {
		_ = connection.write(&Reply{Exit: c.task.exit})
	}
}

// exec runs a command inside the task and stays with it until it has exited
// or its caller is gone.
func (c *control) exec(connection *conn, spec *ExecSpec, descriptors []int) {
	want := taskproc.DescriptorsMax
	if spec.TTY {
		want = 1
	}
	if len(descriptors) != want {
		taskproc.CloseAll(descriptors)
		_ = connection.write(&Reply{Failure: taskproc.BadRequest("wrong number of descriptors")})
		return
	}
	started := time.Now()
	pid, exit, failure := c.spawn(spec, descriptors)
	taskproc.CloseAll(descriptors)
	if failure != nil {
		_ = connection.write(&Reply{Failure: failure})
		return
	}
	_ = connection.write(&Reply{Started: &State{Version: RecordVersion, TaskID: c.task.spec.TaskID, Command: Identity{PID: pid}}})
	gone := make(chan struct{})
	c.serving.Go(func() { // ends when the connection is closed, by the peer or by serve
		defer close(gone)
		c.relaySignals(connection, pid)
	})
	status, ok := c.awaitExec(spec, pid, exit, gone)
	if !ok {
		return
	}
	result := &Exit{Version: RecordVersion, StartedNS: started.UnixNano(), FinishedNS: time.Now().UnixNano()}
	result.set(status)
	_ = connection.write(&Reply{Exit: result})
}

// spawn starts an exec's command in the spawner's thread.
func (c *control) spawn(spec *ExecSpec, descriptors []int) (pid int, exit <-chan syscall.WaitStatus, failure *taskproc.Failure) {
	t := c.task
	p := program{
		command: spec.Command, env: taskproc.Overlay(t.spec.Env, spec.Env), dir: spec.Dir,
		credential: t.spec.Credential, terminal: spec.TTY,
	}
	if p.dir == "" {
		p.dir = t.spec.Dir
	}
	if spec.Side {
		p.command, p.self = sideCommand(spec.Command), true
	}
	if c := t.spec.Credential; spec.TTY && c != nil {
		_ = syscall.Fchown(descriptors[0], int(c.UID), -1) // without it only opening the terminal by name fails
	}
	for range taskproc.DescriptorsMax {
		p.files = append(p.files, uintptr(descriptors[min(len(p.files), len(descriptors)-1)]))
	}
	done := make(chan struct{})
	request := func() {
		defer close(done)
		pid, exit, failure = t.spawner.start(p)
	}
	select {
	case t.spawner.requests <- request:
		<-done
	case <-t.ended:
		failure = &taskproc.Failure{Kind: taskproc.FailEnded}
	}
	return pid, exit, failure
}

// relaySignals passes signal requests on until the connection ends.
func (c *control) relaySignals(connection *conn, pid int) {
	for {
		body, descriptors, err := connection.Read(MessageBytesMax)
		taskproc.CloseAll(descriptors)
		if err != nil {
			return
		}
		var request Request
		if json.Unmarshal(body, &request) != nil || request.Op != OpSignal || request.Signal < 1 || request.Signal > 64 {
			return
		}
		c.task.reaper.SignalGroup(pid, syscall.Signal(request.Signal))
	}
}

// awaitExec waits for a command's exit. When its caller goes away first, the
// command is hung up on and then killed, unless it survives.
func (c *control) awaitExec(spec *ExecSpec, pid int, exit <-chan syscall.WaitStatus, gone <-chan struct{}) (syscall.WaitStatus, bool) {
	select {
	case status := <-exit:
		return status, true
	case <-gone:
	}
	if spec.Survive {
		return 0, false
	}
	c.task.reaper.SignalGroup(pid, syscall.SIGHUP)
	timer := time.NewTimer(hangupPatience)
	defer timer.Stop()
	select {
	case <-exit:
	case <-timer.C:
		c.task.reaper.SignalGroup(pid, syscall.SIGKILL)
	}
	return 0, false
}
