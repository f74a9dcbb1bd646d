package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

const (
	execCopyBytes = 32 << 10
	// outputPatience is how long the output of a command that has exited may
	// be silent before it counts as complete; only its daemons hold it open.
	outputPatience = 300 * time.Millisecond
)

// Exec runs a command inside a task.
func (d *Driver) Exec(ctx context.Context, id driver.TaskID, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	if err := spec.Validate(); err != nil {
		return driver.ExitResult{}, err
	}
	t, err := d.find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	select {
	case <-t.ended:
		return driver.ExitResult{}, fmt.Errorf("task %s: %w", id, driver.ErrTaskEnded)
	default:
	}
	var s *session
	if spec.TTY {
		s, err = t.terminalSession(spec.Size)
	} else {
		s, err = pipeSession(streams)
	}
	if err != nil {
		return driver.ExitResult{}, fmt.Errorf("exec in task %s: %w", id, err)
	}
	defer s.close()
	connection, err := t.dial()
	if err != nil {
		return driver.ExitResult{}, t.unreachable(ctx, err)
	}
	defer connection.Close() // the supervisor takes it for the caller's going away
	release := context.AfterFunc(ctx, func() { connection.SetDeadline(past()) })
	defer release()

	exit, err := s.run(connection, spec, streams)
	switch {
	case err == nil:
		return exitResult(exit), nil
	case ctx.Err() != nil:
		return driver.ExitResult{}, fmt.Errorf("exec in task %s: %w", id, ctx.Err())
	}
	var failure *supervisor.Failure
	if errors.As(err, &failure) {
		return driver.ExitResult{}, startError(failure)
	}
	return driver.ExitResult{}, t.unreachable(ctx, err)
}

// session is the agent's side of one executed command.
type session struct {
	theirs []int      // descriptors for the command, closed once sent
	input  *os.File   // write end of stdin; nil: no input
	output []*os.File // read ends of stdout and stderr; with a terminal its own end is input and output
	tty    bool

	copying sync.WaitGroup // output
	exited  atomic.Bool
}

// pipeSession makes pipes for the streams that the caller has.
func pipeSession(streams driver.Streams) (*session, error) {
	s := &session{output: make([]*os.File, 2)}
	for i, wanted := range []bool{streams.Stdin != nil, streams.Stdout != nil, streams.Stderr != nil} {
		if !wanted {
			fd, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
			if err != nil {
				s.close()
				return nil, fmt.Errorf("open /dev/null: %w", err)
			}
			s.theirs = append(s.theirs, fd)
			continue
		}
		// os.Pipe would make the command's end non-blocking too.
		var ends [2]int
		if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
			s.close()
			return nil, fmt.Errorf("make pipe: %w", err)
		}
		ours, theirs := ends[0], ends[1]
		if i == 0 {
			ours, theirs = ends[1], ends[0]
		}
		s.theirs = append(s.theirs, theirs)
		_ = syscall.SetNonblock(ours, true) // a pipe can always be
		file := os.NewFile(uintptr(ours), "exec stream")
		if i == 0 {
			s.input = file
		} else {
			s.output[i-1] = file
		}
	}
	return s, nil
}

// terminalSession makes a pseudo terminal.
func (t *task) terminalSession(size driver.WindowSize) (*session, error) {
	master, terminal, err := t.openTerminal()
	if err != nil {
		return nil, err
	}
	s := &session{theirs: []int{terminal}, input: master, output: []*os.File{master, nil}, tty: true}
	if size.Rows > 0 && size.Cols > 0 {
		if err := resize(master, size); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *session) closeTheirs() {
	for _, fd := range s.theirs {
		syscall.Close(fd)
	}
	s.theirs = nil
}

func (s *session) close() {
	s.closeTheirs()
	for _, file := range []*os.File{s.input, s.output[0], s.output[1]} {
		if file != nil {
			file.Close() // a terminal twice, which is harmless
		}
	}
}

// run executes the command and carries its streams until it has exited.
func (s *session) run(connection *net.UnixConn, spec driver.ExecSpec, streams driver.Streams) (*supervisor.Exit, error) {
	request := &supervisor.Request{Op: supervisor.OpExec, Exec: &supervisor.ExecSpec{
		Command: spec.Command, Env: spec.Env, Dir: spec.Dir, TTY: spec.TTY, Survive: spec.Survive,
	}}
	err := writeRequest(connection, request, s.theirs...)
	s.closeTheirs()
	if err != nil {
		return nil, err
	}
	if reply, err := readReply(connection); err != nil || reply.Failure != nil {
		if err == nil {
			err = reply.Failure
		}
		return nil, err
	}
	done := make(chan struct{})
	var helpers sync.WaitGroup
	helpers.Go(func() { s.relay(connection, streams, done) })
	if streams.Stdin != nil {
		go s.copyInput(streams.Stdin) // may outlive the call, see driver.Streams
	}
	for i, writer := range []io.Writer{streams.Stdout, streams.Stderr} {
		if s.output[i] != nil {
			s.copying.Go(func() { s.copyOutput(writer, s.output[i]) })
		}
	}
	reply, err := readReply(connection)
	if err != nil {
		// Nobody waits for this command any more: its supervisor ends it when
		// the connection closes, and what it still writes goes nowhere.
		connection.Close()
		s.close()
	}
	s.exited.Store(true)
	for _, file := range s.output {
		if file != nil {
			_ = file.SetReadDeadline(time.Now().Add(outputPatience)) // refused only when closed
		}
	}
	s.copying.Wait()
	close(done)
	helpers.Wait()
	if err != nil {
		return nil, err
	}
	if reply.Exit == nil {
		return nil, errors.New("supervisor sent no exit")
	}
	return reply.Exit, nil
}

// relay passes window sizes and signals on until done.
func (s *session) relay(connection *net.UnixConn, streams driver.Streams, done <-chan struct{}) {
	resizes, signals := streams.Resize, streams.Signals
	for {
		select {
		case <-done:
			return
		case size, open := <-resizes:
			if !open {
				resizes = nil
			} else if s.tty {
				_ = resize(s.input, size) // the terminal is gone when its command is
			}
		case name, open := <-signals:
			if !open {
				signals = nil
				continue
			}
			if number, err := driver.ParseSignal(name); err == nil {
				_ = writeRequest(connection, &supervisor.Request{Op: supervisor.OpSignal, Signal: int(number)})
			}
		}
	}
}

// copyInput fills the command's stdin. At the end of the input a pipe is
// closed; a terminal has no such end, its user types one.
func (s *session) copyInput(from io.Reader) {
	buffer := make([]byte, execCopyBytes)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := s.input.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !s.tty {
				s.input.Close()
			} else if errors.Is(err, io.EOF) {
				_, _ = s.input.Write([]byte{4}) // end of transmission: what a terminal's user would type
			}
			return
		}
	}
}

// copyOutput empties one output of the command until its end; after the
// command's exit, until it is silent.
func (s *session) copyOutput(to io.Writer, from *os.File) {
	if to == nil {
		to = io.Discard
	}
	buffer := make([]byte, execCopyBytes)
	for {
		if s.exited.Load() {
			_ = from.SetReadDeadline(time.Now().Add(outputPatience))
		}
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				to = io.Discard // the command must not block on a reader that left
			}
		}
		if err != nil {
			return // the end, a terminal without a user (EIO), or silence after the exit
		}
	}
}
