package service

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/rankshell"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// ExecOpener opens an Alloc.Exec stream to the agent of another node. The
// stream ends when ctx is cancelled.
type ExecOpener func(ctx context.Context, nodeID, rpcAddr string) (ExecPeer, error)

// ExecPeer is the calling end of an Alloc.Exec stream.
type ExecPeer interface {
	Send(*structs.ExecUp) error
	Recv() (*structs.ExecDown, error)
	CloseSend() error
}

// Caller is the agent that calls a service of this one, as its certificate
// names it.
type Caller struct {
	Role string // RoleServer or RoleClient
	ID   string // server or node id
}

// The roles of callers.
const (
	RoleServer = "server"
	RoleClient = "client"
)

// ExecStream is the answering end of an Alloc.Exec stream. Recv returns io.EOF
// after the caller's last word and another error when the caller is gone.
type ExecStream interface {
	Send(*structs.ExecDown) error
	Recv() (*structs.ExecUp, error)
}

// Bounds of one Alloc.Exec stream.
const (
	execChunkBytes = 32 << 10
	execInputMax   = 64 // pieces of stdin that the command has not read
	execSignalsMax = 16
)

// Exec answers Alloc.Exec: it runs a command in a task of this node and
// carries its streams. A server has authorised the user already; a client
// speaks for one of its own ranks and reaches ranks of the same attempt only.
// ctx is the stream's. Errors are *structs.Error; how the command ended, also
// when it could not be run, is told by the last message.
func (s *Service) Exec(ctx context.Context, caller Caller, stream ExecStream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	up, err := stream.Recv()
	if err != nil {
		return err
	}
	if up.Start == nil {
		return structs.NewError(structs.CodeInvalid, "client.exec_failed", "alloc", "", "cause", "the first message starts nothing")
	}
	t, err := s.execTarget(ctx, caller, up.Start)
	if err != nil {
		return err
	}
	s.Log.Info("exec in task", logkey.AllocID, up.Start.AllocID, logkey.User, up.Start.User, logkey.PeerID, caller.ID, "command", up.Start.Command, "ssh", up.Start.SSH != nil)

	input := make(chan []byte, execInputMax)
	resize := make(chan driver.WindowSize, 1)
	signals := make(chan string, execSignalsMax)
	// The receiver ends when the stream's own context does, which is after
	// this call has returned; it touches nothing but its channels then.
	go receiveExec(ctx, cancel, stream, input, resize, signals)

	out := &execOutput{stream: stream}
	if up.Start.SSH != nil {
		return out.send(&structs.ExecDown{Exit: s.connectSSH(ctx, t, up.Start.SSH, input, out.writer(false))})
	}
	exit := t.run(ctx, up.Start, driver.Streams{
		Stdin: chunkReader(ctx, input), Stdout: out.writer(false), Stderr: out.writer(true), Resize: resize, Signals: signals,
	})
	return out.send(&structs.ExecDown{Exit: exit})
}

// receiveExec takes the caller's words. What comes faster than the command
// takes it is kept back (stdin) or dropped (signals, all but the last size).
func receiveExec(ctx context.Context, gone context.CancelFunc, stream ExecStream, input chan<- []byte, resize chan driver.WindowSize, signals chan<- string) {
	open := true
	end := func() {
		if open {
			open = false
			close(input)
		}
	}
	for {
		up, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			end() // half closed: the caller still listens
			return
		}
		if err != nil {
			gone()
			return
		}
		switch {
		case len(up.Stdin) > 0 && open:
			select {
			case input <- up.Stdin:
			case <-ctx.Done():
				return
			}
		case up.CloseStdin:
			end()
		case up.Resize != nil:
			select {
			case <-resize:
			default:
			}
			select {
			case resize <- driver.WindowSize{Rows: up.Resize.Rows, Cols: up.Resize.Cols}:
			default:
			}
		case up.Signal != "":
			select {
			case signals <- up.Signal:
			default:
			}
		}
	}
}

// startPatience is how long a rank's command waits for the task of its peer
// to start: the barrier opens for all ranks, not at the same moment for each. It
// is also how long whoever enters a task that a new agent has taken over waits for
// the servers' word on it.
const startPatience = 30 * time.Second

// execTarget finds the task that a command is for and checks who asks.
func (s *Service) execTarget(ctx context.Context, caller Caller, start *structs.ExecStart) (*execTarget, error) {
	t := &execTarget{allocID: start.AllocID, task: alloc.TaskID(start.AllocID)}
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	for {
		refusal, later, err := s.lookUp(ctx, t, start)
		if err != nil {
			return nil, err
		}
		if later == nil {
			if refusal != nil {
				return nil, refusal
			}
			break
		}
		select {
		case <-later:
		case <-patience.C:
			return nil, structs.NewError(structs.CodeTimeout, "client.alloc_not_running", "alloc", start.AllocID)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if t.driver == nil || t.assignment == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "client.alloc_not_running", "alloc", start.AllocID)
	}
	if caller.Role != RoleServer && !speaksFor(t.assignment.Members, caller.ID, start.From) {
		return nil, structs.NewError(structs.CodeForbidden, "client.exec_denied", "from", start.From, "node", caller.ID, "alloc", start.AllocID)
	}
	return t, nil
}

// lookUp fills t when the task runs. later is set when it does not run yet
// and its peer may wait, and when it was taken over and no server has said yet
// whose it is: it is closed when that has changed.
func (s *Service) lookUp(ctx context.Context, t *execTarget, start *structs.ExecStart) (refusal *structs.Error, later <-chan struct{}, err error) {
	id := start.AllocID
	err = s.Inbox.Ask(ctx, func(l *loop.Loop) {
		wait := func() { later = l.Wait(id) }
		state, ok := l.State(id)
		switch {
		case !ok:
			refusal = structs.NewError(structs.CodeNotFound, "client.alloc_unknown", "alloc", id)
		case state.Attempt != start.Attempt:
			refusal = structs.NewError(structs.CodeConflict, "client.attempt_old",
				"alloc", id, "attempt", state.Attempt, "wanted", start.Attempt)
		case s.Holds.Has(id) && start.From == "":
			t.task, t.driver, t.assignment, refusal = s.Holds.Enter(id)
		case state.Phase == alloc.PhaseRunning && l.Assignment(id) == nil:
			wait()
		case state.Phase == alloc.PhaseRunning:
			t.assignment = l.Assignment(id)
			t.driver = s.Drivers[l.Task(id).Driver]
		case state.Phase != alloc.PhaseEnded && start.From != "":
			wait()
		default:
			refusal = structs.NewError(structs.CodeConflict, "client.alloc_not_running", "alloc", id)
		}
	})
	return refusal, later, err
}

// speaksFor reports whether the node runs the allocation from, and from is a
// rank of the attempt.
func speaksFor(members []structs.Member, nodeID, from string) bool {
	return from != "" && slices.ContainsFunc(members, func(m structs.Member) bool {
		return m.AllocID == from && m.NodeID == nodeID
	})
}

// execTarget is a running task.
type execTarget struct {
	allocID    string
	assignment *structs.Assignment
	driver     driver.Driver
	task       driver.TaskID
}

// terminalUsual is the terminal of whoever does not say which he has; pages have
// one of this kind.
const terminalUsual = "xterm-256color"

// Run runs the command and reports how it ended. A rank's command survives the
// loss of its caller: it is part of the attempt, and ends with it.
func (t *execTarget) run(ctx context.Context, start *structs.ExecStart, streams driver.Streams) *structs.ExecExit {
	result, err := t.driver.Exec(ctx, t.task, execSpec(start), streams)
	if err != nil {
		var failed *driver.StartError
		if errors.As(err, &failed) {
			return &structs.ExecExit{Code: failed.ExitCode, Err: failed.Err}
		}
		return execFailed(t.allocID, err)
	}
	exit := &structs.ExecExit{Code: result.Code, Err: result.Err}
	if result.Signal != "" {
		if number, err := driver.ParseSignal(result.Signal); err == nil {
			exit.Signal = int(number)
		}
	}
	return exit
}

// execSpec is what a driver is asked to run.
func execSpec(start *structs.ExecStart) driver.ExecSpec {
	spec := driver.ExecSpec{Command: start.Command, TTY: start.TTY, Survive: start.From != ""}
	for _, name := range slices.Sorted(maps.Keys(start.Env)) {
		spec.Env = append(spec.Env, name+"="+start.Env[name])
	}
	if start.TTY && start.Env["TERM"] == "" {
		spec.Env = append(spec.Env, "TERM="+terminalUsual)
	}
	if start.Size != nil {
		spec.Size = driver.WindowSize{Rows: start.Size.Rows, Cols: start.Size.Cols}
	}
	return spec
}

// execFailed reports that a command was not run.
func execFailed(allocID string, err error) *structs.ExecExit {
	var told *structs.Error
	switch {
	case errors.As(err, &told):
	case errors.Is(err, driver.ErrTaskEnded), errors.Is(err, driver.ErrUnknownTask):
		told = structs.NewError(structs.CodeConflict, "client.alloc_not_running", "alloc", allocID)
	default:
		told = structs.NewError(structs.CodeUnavailable, "client.exec_failed", "alloc", allocID, "cause", err)
	}
	return &structs.ExecExit{Code: rankshell.CodeFailed, Err: told}
}

// execOutput sends a command's output; the driver writes from several
// goroutines, the stream takes one message at a time.
type execOutput struct {
	mu     sync.Mutex
	stream ExecStream
}

func (o *execOutput) send(down *structs.ExecDown) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stream.Send(down)
}

func (o *execOutput) writer(stderr bool) io.Writer {
	return writerFunc(func(data []byte) (int, error) {
		written := 0
		for len(data) > written {
			chunk := data[written:min(len(data), written+execChunkBytes)]
			down := &structs.ExecDown{Stdout: chunk}
			if stderr {
				down = &structs.ExecDown{Stderr: chunk}
			}
			if err := o.send(down); err != nil {
				return written, err
			}
			written += len(chunk)
		}
		return written, nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

// chunkReader reads what comes over a channel until it is closed or ctx ends.
func chunkReader(ctx context.Context, chunks <-chan []byte) io.Reader {
	var rest []byte
	return readerFunc(func(data []byte) (int, error) {
		if len(rest) == 0 {
			select {
			case chunk, ok := <-chunks:
				if !ok {
					return 0, io.EOF
				}
				rest = chunk
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		n := copy(data, rest)
		rest = rest[n:]
		return n, nil
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(data []byte) (int, error) { return f(data) }
