package client

import (
	"context"
	"errors"
	"os"

	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
)

// tailLinesMax bounds how many lines a tail may ask for.
const tailLinesMax = 1 << 20

// Logs answers Alloc.Logs: it sends the asked part of a task's stdout or
// stderr in chunks, as long as the allocation's directory is kept, and with
// Follow what is still to come. The last chunk has EOF set when the task has
// ended and all was sent. Only servers may call; they have authorised the
// user. ctx is the stream's. Errors are *structs.Error, or send's own.
func (c *Client) Logs(ctx context.Context, caller Caller, request *structs.LogRequest, send func(*structs.LogChunk) error) error {
	if caller.Role != RoleServer {
		return structs.NewError(structs.CodeForbidden, "client.log_unknown", "alloc", request.AllocID)
	}
	if !driver.ValidTaskID(alloc.TaskID(request.AllocID)) {
		return structs.NewError(structs.CodeNotFound, "client.log_unknown", "alloc", request.AllocID)
	}
	dir, stream := c.files.logs(request.AllocID), request.Stream
	if stream == structs.StreamHooks {
		dir, stream = c.files.hookLogs(request.AllocID), tasklog.Stdout
	}
	if stream != tasklog.Stdout && stream != tasklog.Stderr {
		return structs.NewError(structs.CodeInvalid, "client.log_stream", "stream", request.Stream)
	}
	ended, err := c.endOf(ctx, request.AllocID)
	if err != nil {
		return err
	}
	if request.Follow {
		if err := c.begun(ctx, request.AllocID); err != nil {
			return err
		}
	}
	read := tasklog.Request{
		Top:       c.files.root,
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

// endOf gives a channel that is closed when the allocation has ended: now,
// when it is not at work here.
func (c *Client) endOf(ctx context.Context, id string) (<-chan struct{}, error) {
	var ended <-chan struct{}
	err := c.ask(ctx, func() {
		if state, ok := c.loop.table.State(id); ok && state.Phase != alloc.PhaseEnded {
			ended = c.runner(id).ended
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
func (c *Client) begun(ctx context.Context, id string) error {
	for {
		var later chan struct{}
		err := c.ask(ctx, func() {
			state, ok := c.loop.table.State(id)
			if ok && state.Phase != alloc.PhaseRunning && state.Phase != alloc.PhaseEnded {
				later = make(chan struct{})
				c.loop.waiters[id] = append(c.loop.waiters[id], later)
			}
		})
		if err != nil || later == nil {
			return err
		}
		select {
		case <-later:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.stopped:
			return errStopped()
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
