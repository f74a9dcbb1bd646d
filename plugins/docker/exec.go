package docker

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/execstream"
	"nomadlike/plugins/driver/taskproc"
)

// Exec runs a command inside a task, as a child of its init.
func (d *Driver) Exec(ctx context.Context, id driver.TaskID, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	if err := spec.Validate(); err != nil {
		return driver.ExitResult{}, err
	}
	t, err := d.known.Find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	if t.over() {
		return driver.ExitResult{}, fmt.Errorf("task %s: %w", id, driver.ErrTaskEnded)
	}
	s := execstream.Unopened()
	if !spec.TTY {
		if s, err = execstream.Pipes(streams); err != nil {
			return driver.ExitResult{}, fmt.Errorf("exec in task %s: %w", id, err)
		}
	}
	defer s.Close()
	connection, err := t.keeper.dial()
	if err != nil {
		return driver.ExitResult{}, t.unreachable(ctx, err)
	}
	defer connection.Close() // the init takes it for the caller's going away
	release := context.AfterFunc(ctx, func() { connection.SetDeadline(time.Unix(1, 0)) })
	defer release()
	exit, err := execute(connection, s, spec, streams)
	var failure *taskproc.Failure
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

// unreachable reports why an init does not answer: as a rule because the task
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

// execute asks the init for a command and carries its streams until it has
// exited.
func execute(connection *taskinit.Conn, s *execstream.Session, spec driver.ExecSpec, streams driver.Streams) (*taskinit.Exit, error) {
	request := &taskinit.Request{Op: taskinit.OpExec, Exec: &taskinit.Exec{
		Command: spec.Command, Env: spec.Env, Dir: spec.Dir, TTY: spec.TTY, Survive: spec.Survive, Side: spec.Side,
		Rows: spec.Size.Rows, Cols: spec.Size.Cols,
	}}
	err := connection.Send(request, s.Theirs()...)
	s.Sent()
	if err != nil {
		return nil, err
	}
	if err := begin(connection, s, spec); err != nil {
		return nil, err
	}
	signal := func(number syscall.Signal) {
		_ = connection.Send(&taskinit.Request{Op: taskinit.OpSignal, Signal: int(number)}) // the exit reports an init that is gone
	}
	var reply taskinit.Reply
	err = s.Relay(streams, signal, func() error {
		_, err := connection.Receive(&reply)
		if err != nil {
			connection.Close() // nobody waits for this command any more: its init ends it
		}
		return err
	})
	if err == nil && reply.Exit == nil {
		err = errors.New("init sent no exit")
	}
	return reply.Exit, err
}

// begin waits until the command has been executed, and takes its terminal.
func begin(connection *taskinit.Conn, s *execstream.Session, spec driver.ExecSpec) error {
	var reply taskinit.Reply
	descriptors, err := connection.Receive(&reply)
	if err != nil {
		return err
	}
	if reply.Failure == nil && spec.TTY && len(descriptors) == 1 {
		return s.SetTerminal(descriptors[0])
	}
	taskproc.CloseAll(descriptors)
	if reply.Failure != nil {
		return reply.Failure
	}
	if spec.TTY {
		return errors.New("init sent no terminal")
	}
	return nil
}
