package service

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
)

// tailLinesMax bounds how many lines a tail may ask for.
const tailLinesMax = 1 << 20

// Service answers what other agents ask about the allocations of this node, and
// opens the remote shells of ranks. Any goroutine may use it.
type Service struct{ Config }

// Config is what answering needs.
type Config struct {
	NodeID   string
	Layout   layout.Layout
	Drivers  map[string]driver.Driver
	Storages []workspace.Storage
	Owners   *account.Owners
	Holds    HeldTasks
	Inbox    *loop.Inbox
	OpenExec ExecOpener // nil: ranks reach no ranks of other nodes
	Log      *slog.Logger
}

// HeldTasks lets commands into the tasks of debug holds. The loop calls it.
type HeldTasks interface {
	Has(id string) bool
	Enter(id string) (task driver.TaskID, d driver.Driver, a *structs.Assignment, refusal *structs.Error)
}

// New makes a service.
func New(config Config) *Service { return &Service{config} }

// Logs answers Alloc.Logs: it sends the asked part of a task's stdout or
// stderr in chunks, as long as the allocation's directory is kept, and with
// Follow what is still to come. The last chunk has EOF set when the task has
// ended and all was sent. Only servers may call; they have authorised the
// user. ctx is the stream's. Errors are *structs.Error, or send's own.
func (s *Service) Logs(ctx context.Context, caller Caller, request *structs.LogRequest, send func(*structs.LogChunk) error) error {
	if caller.Role != RoleServer {
		return structs.NewError(structs.CodeForbidden, "client.log_unknown", "alloc", request.AllocID)
	}
	if !driver.ValidTaskID(alloc.TaskID(request.AllocID)) {
		return structs.NewError(structs.CodeNotFound, "client.log_unknown", "alloc", request.AllocID)
	}
	dir, stream := s.Layout.Logs(request.AllocID), request.Stream
	if stream == structs.StreamHooks {
		dir, stream = s.Layout.HookLogs(request.AllocID), tasklog.Stdout
	}
	if stream != tasklog.Stdout && stream != tasklog.Stderr {
		return structs.NewError(structs.CodeInvalid, "client.log_stream", "stream", request.Stream)
	}
	ended, err := s.endOf(ctx, request.AllocID)
	if err != nil {
		return err
	}
	if request.Follow {
		if err := s.begun(ctx, request.AllocID); err != nil {
			return err
		}
	}
	read := tasklog.Request{
		Top:       s.Layout.Root,
		Dir:       dir,
		Stream:    stream,
		Offset:    max(request.Offset, 0),
		TailBytes: max(-request.Offset, 0),
		TailLines: min(max(request.TailLines, 0), tailLinesMax),
		Follow:    request.Follow,
		Ended:     ended,
		Times:     request.Times,
	}
	var stamper tasklog.Stamper
	next := read.Offset
	var sendErr error
	err = tasklog.Read(ctx, read, func(chunk tasklog.Chunk) error {
		next = chunk.Offset + int64(len(chunk.Data))
		if !request.Times {
			sendErr = send(&structs.LogChunk{Offset: chunk.Offset, Data: chunk.Data})
			return sendErr
		}
		for data := stamper.Stamp(chunk); len(data) > 0 && sendErr == nil; { // with times it may be longer than one chunk
			part := data[:min(len(data), tasklog.ChunkBytesMax)]
			sendErr = send(&structs.LogChunk{Offset: chunk.Offset, Data: part})
			data = data[len(part):]
		}
		return sendErr
	})
	switch {
	case sendErr != nil:
		return sendErr
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrNotExist): // not started yet, never started, or swept since
		return structs.NewError(structs.CodeNotFound, "client.log_unknown", "alloc", request.AllocID)
	case err != nil:
		return structs.NewError(structs.CodeUnavailable, "client.log_read", "alloc", request.AllocID, "cause", err).Because(err)
	case closed(ended):
		return send(&structs.LogChunk{Offset: next, EOF: true})
	}
	return nil
}

// endOf returns a channel that is closed when the allocation has ended: now,
// when it is not at work here.
func (s *Service) endOf(ctx context.Context, id string) (<-chan struct{}, error) {
	var ended <-chan struct{}
	err := s.Inbox.Ask(ctx, func(l *loop.Loop) {
		if state, ok := l.State(id); ok && state.Phase != alloc.PhaseEnded {
			ended = l.Task(id).Ended
		}
	})
	if ended == nil {
		over := make(chan struct{})
		close(over)
		ended = over
	}
	return ended, err
}

// begun waits until the allocation runs, has ended, or is not known here.
func (s *Service) begun(ctx context.Context, id string) error {
	for {
		var later <-chan struct{}
		err := s.Inbox.Ask(ctx, func(l *loop.Loop) {
			state, ok := l.State(id)
			if ok && state.Phase != alloc.PhaseRunning && state.Phase != alloc.PhaseEnded {
				later = l.Wait(id)
			}
		})
		if err != nil || later == nil {
			return err
		}
		if err := s.Inbox.Await(ctx, later); err != nil {
			return err
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
