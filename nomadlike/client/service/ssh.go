package service

import (
	"context"
	"errors"
	"io"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client/rankshell"
	"nomadlike/nomadlike/client/taskssh"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// errTaskOver ends the connections to a task that has ended.
var errTaskOver = errors.New("the task has ended")

// connectSSH speaks ssh with the caller of a stream until it leaves, the task ends
// or the stream does, and reports how it ended.
func (s *Service) connectSSH(ctx context.Context, t *execTarget, host *structs.SSHHost, input <-chan []byte, out io.Writer) *structs.ExecExit {
	key, err := auth.SSHHostSigner(host)
	if err != nil {
		return execFailed(t.allocID, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_, _ = t.driver.Wait(ctx, t.task) // whatever it says, there is nothing to enter any more
		cancel(errTaskOver)
	}()
	err = taskssh.Serve(ctx, taskssh.Config{
		HostKey: key, Logger: s.Log,
		Run: func(ctx context.Context, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
			return t.driver.Exec(ctx, t.task, spec, streams)
		},
	}, &sshStream{Reader: chunkReader(ctx, input), Writer: out, close: func() { cancel(nil) }})
	over := errors.Is(context.Cause(ctx), errTaskOver)
	cancel(nil)
	<-watched
	switch {
	case over:
		return &structs.ExecExit{Code: rankshell.CodeFailed, Err: structs.NewError(structs.CodeConflict, "ssh.task_over", "alloc", t.allocID)}
	case err != nil:
		return &structs.ExecExit{Code: rankshell.CodeFailed, Err: structs.NewError(structs.CodeInvalid, "ssh.handshake", "alloc", t.allocID, "cause", err)}
	}
	return &structs.ExecExit{}
}

// sshStream is the stream as package taskssh wants it.
type sshStream struct {
	io.Reader
	io.Writer
	close func()
}

// Close ends the connection: reads and writes end with its context.
func (s *sshStream) Close() error {
	s.close()
	return nil
}
