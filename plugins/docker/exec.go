package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
)

const (
	execCopyBytes = 32 << 10
	// outputPatience is how long the output of a command that has exited may
	// be silent before it counts as complete; only its daemons hold it open.
	outputPatience = 300 * time.Millisecond
)

// Exec runs a command inside a task, as a child of its init.
func (d *Driver) Exec(ctx context.Context, id driver.TaskID, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	if err := spec.Validate(); err != nil {
		return driver.ExitResult{}, err
	}
	t, err := d.find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	if t.over() {
		return driver.ExitResult{}, fmt.Errorf("task %s: %w", id, driver.ErrTaskEnded)
	}
	s := &session{tty: spec.TTY, output: make([]*os.File, 2)}
	defer s.close()
	if !spec.TTY {
		if err := s.makePipes(streams); err != nil {
			return driver.ExitResult{}, fmt.Errorf("exec in task %s: %w", id, err)
		}
	}
	connection, err := t.dial()
	if err != nil {
		return driver.ExitResult{}, t.unreachable(ctx, err)
	}
	defer connection.Close() // the init takes it for the caller's going away
	release := context.AfterFunc(ctx, func() { connection.SetDeadline(time.Unix(1, 0)) })
	defer release()
	exit, err := s.run(connection, spec, streams)
	var failure *taskinit.Failure
	switch {
	case err == nil:
		return exitResult(exit, false), nil
	case ctx.Err() != nil:
		return driver.ExitResult{}, fmt.Errorf("exec in task %s: %w", id, ctx.Err())
	case errors.As(err, &failure):
		return driver.ExitResult{}, failureError(failure)
	}
	return driver.ExitResult{}, t.unreachable(ctx, err)
}

// unreachable tells why an init does not answer: as a rule because the task
// is just ending.
func (t *task) unreachable(ctx context.Context, cause error) error {
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	select {
	case <-t.ended:
		return fmt.Errorf("task %s: %w", t.id, driver.ErrTaskEnded)
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("reach init of task %s: %w: %w", t.id, driver.ErrUnavailable, cause)
	}
}

// session is the agent's side of one executed command.
type session struct {
	tty    bool
	theirs []int      // descriptors for the command, closed once sent
	input  *os.File   // write end of stdin; nil: no input
	output []*os.File // read ends of stdout and stderr; a terminal is input and output

	copying sync.WaitGroup
	exited  atomic.Bool
}

// makePipes makes a pipe for each stream that the caller has.
func (s *session) makePipes(streams driver.Streams) error {
	for i, wanted := range []bool{streams.Stdin != nil, streams.Stdout != nil, streams.Stderr != nil} {
		if !wanted {
			fd, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("open /dev/null: %w", err)
			}
			s.theirs = append(s.theirs, fd)
			continue
		}
		// os.Pipe would make the command's end non-blocking too.
		var ends [2]int
		if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
			return fmt.Errorf("make pipe: %w", err)
		}
		ours, theirs := ends[0], ends[1]
		if i == 0 {
			ours, theirs = ends[1], ends[0]
		}
		s.theirs = append(s.theirs, theirs)
		file, err := waitable(ours)
		if err != nil {
			return err
		}
		if i == 0 {
			s.input = file
		} else {
			s.output[i-1] = file
		}
	}
	return nil
}

// waitable makes a file of a descriptor whose reads end with a deadline.
func waitable(fd int) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return os.NewFile(uintptr(fd), "exec stream"), nil
}

func (s *session) close() {
	taskinit.CloseAll(s.theirs)
	s.theirs = nil
	for _, file := range []*os.File{s.input, s.output[0], s.output[1]} {
		if file != nil {
			file.Close() // a terminal twice, which is harmless
		}
	}
}

// run executes the command and carries its streams until it has exited.
func (s *session) run(connection *taskinit.Conn, spec driver.ExecSpec, streams driver.Streams) (*taskinit.Exit, error) {
	request := &taskinit.Request{Op: taskinit.OpExec, Exec: &taskinit.Exec{
		Command: spec.Command, Env: spec.Env, Dir: spec.Dir, TTY: spec.TTY, Survive: spec.Survive,
		Rows: spec.Size.Rows, Cols: spec.Size.Cols,
	}}
	err := connection.Send(request, s.theirs...)
	taskinit.CloseAll(s.theirs)
	s.theirs = nil
	if err != nil {
		return nil, err
	}
	if err := s.begin(connection, spec); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	var relaying sync.WaitGroup
	relaying.Go(func() { s.relay(connection, streams, done) })
	if streams.Stdin != nil {
		go s.copyInput(streams.Stdin) // may outlive the call, see driver.Streams
	}
	for i, writer := range []io.Writer{streams.Stdout, streams.Stderr} {
		if s.output[i] != nil {
			s.copying.Go(func() { s.copyOutput(writer, s.output[i]) })
		}
	}
	var reply taskinit.Reply
	_, err = connection.Receive(&reply)
	if err != nil {
		// Nobody waits for this command any more: its init ends it when the
		// connection closes, and what it still writes goes nowhere.
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
	relaying.Wait()
	if err == nil && reply.Exit == nil {
		err = errors.New("init sent no exit")
	}
	return reply.Exit, err
}

// begin waits until the command has been executed, and takes its terminal.
func (s *session) begin(connection *taskinit.Conn, spec driver.ExecSpec) error {
	var reply taskinit.Reply
	descriptors, err := connection.Receive(&reply)
	if err != nil {
		return err
	}
	if reply.Failure != nil || !spec.TTY || len(descriptors) != 1 {
		taskinit.CloseAll(descriptors)
		if reply.Failure != nil {
			return reply.Failure
		}
		if spec.TTY {
			return errors.New("init sent no terminal")
		}
		return nil
	}
	terminal, err := waitable(descriptors[0])
	if err != nil {
		return err
	}
	s.input, s.output[0] = terminal, terminal
	return nil
}

// relay passes window sizes and signals on until done.
func (s *session) relay(connection *taskinit.Conn, streams driver.Streams, done <-chan struct{}) {
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
				_ = connection.Send(&taskinit.Request{Op: taskinit.OpSignal, Signal: int(number)})
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

// resize tells a terminal its size; the kernel tells the command.
func resize(terminal *os.File, size driver.WindowSize) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	var ioctlErr error
	err = raw.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
	if err == nil {
		err = ioctlErr
	}
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}
