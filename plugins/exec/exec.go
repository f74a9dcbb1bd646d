package exec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/execstream"
	"nomadlike/plugins/driver/taskproc"
	"nomadlike/plugins/exec/supervisor"
)

// Exec runs a command inside a task.
func (d *Driver) Exec(ctx context.Context, id driver.TaskID, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	if err := spec.Validate(); err != nil {
		return driver.ExitResult{}, err
	}
	t, err := d.known.Find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	select {
	case <-t.ended:
		return driver.ExitResult{}, fmt.Errorf("task %s: %w", id, driver.ErrTaskEnded)
	default:
	}
	var s *execstream.Session
	if spec.TTY {
		s, err = t.terminalSession(spec.Size)
	} else {
		s, err = execstream.Pipes(streams)
	}
	if err != nil {
		return driver.ExitResult{}, fmt.Errorf("exec in task %s: %w", id, err)
	}
	defer s.Close()
	connection, err := t.dial()
	if err != nil {
		return driver.ExitResult{}, t.unreachable(ctx, err)
	}
	defer connection.Close() // the supervisor takes it for the caller's going away
	release := context.AfterFunc(ctx, func() { connection.SetDeadline(past()) })
	defer release()

	exit, err := execute(connection, s, spec, streams)
	switch {
	case err == nil:
		return exitResult(exit), nil
	case ctx.Err() != nil:
		return driver.ExitResult{}, fmt.Errorf("exec in task %s: %w", id, ctx.Err())
	}
	var failure *taskproc.Failure
	if errors.As(err, &failure) {
		return driver.ExitResult{}, startError(failure)
	}
	return driver.ExitResult{}, t.unreachable(ctx, err)
}

// terminalSession makes a session on a pseudo terminal.
func (t *task) terminalSession(size driver.WindowSize) (*execstream.Session, error) {
	master, terminal, err := t.openTerminal()
	if err != nil {
		return nil, err
	}
	s, err := execstream.Terminal(master, terminal)
	if err == nil && size.Rows > 0 && size.Cols > 0 {
		if err = s.Resize(size); err != nil {
			s.Close()
		}
	}
	return s, err
}

// execute asks the supervisor for a command and carries its streams until it
// has exited.
func execute(connection *net.UnixConn, s *execstream.Session, spec driver.ExecSpec, streams driver.Streams) (*supervisor.Exit, error) {
	request := &supervisor.Request{Op: supervisor.OpExec, Exec: &supervisor.ExecSpec{
		Command: spec.Command, Env: spec.Env, Dir: spec.Dir, TTY: spec.TTY, Survive: spec.Survive, Side: spec.Side,
	}}
	err := writeRequest(connection, request, s.Theirs()...)
	s.Sent()
	if err != nil {
		return nil, err
	}
	if reply, err := readReply(connection); err != nil || reply.Failure != nil {
		if err == nil {
			err = reply.Failure
		}
		return nil, err
	}
	signal := func(number syscall.Signal) {
		_ = writeRequest(connection, &supervisor.Request{Op: supervisor.OpSignal, Signal: int(number)}) // the exit reports a supervisor that is gone
	}
	var reply *supervisor.Reply
	err = s.Relay(streams, signal, func() (err error) {
		if reply, err = readReply(connection); err != nil {
			connection.Close() // nobody waits for this command any more: its supervisor ends it
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if reply.Exit == nil {
		return nil, errors.New("supervisor sent no exit")
	}
	return reply.Exit, nil
}
