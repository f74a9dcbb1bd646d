package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// logs passes a task's log on from the client that holds it.
func (h *allocationHandlers) logs(r *front.Request, alloc *structs.Allocation) error {
	q := front.Query{R: r}
	ask := structs.LogRequest{
		AllocID: alloc.ID, Stream: q.Text("stream"), Offset: q.Int("offset", -1<<62, 1<<62),
		TailLines: int(q.Int("tail", 1, 1_000_000)), Follow: q.Bool("follow"), Times: q.Bool("times"),
	}
	if ask.Stream == "" {
		ask.Stream = "stdout"
	}
	if ask.Stream != "stdout" && ask.Stream != "stderr" && ask.Stream != structs.StreamHooks {
		q.Refuse("stream", ask.Stream)
	}
	if q.Err != nil {
		return q.Err
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, end := h.whileValid(r)
	defer end()
	conn, err := h.calls.ofAllocation(alloc)
	if err != nil {
		return err
	}
	stream, err := rpc.OpenStream[structs.LogRequest, structs.LogChunk](ctx, conn, structs.MethodAllocLogs)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := errors.Join(stream.Send(&ask), stream.CloseSend()); err != nil && !errors.Is(err, rpc.ErrStreamEnded) {
		return err
	}
	chunks, used := make(chan received, logChunksAhead), make(chan *structs.LogChunk, logChunksAhead)
	for range logChunksAhead {
		used <- new(structs.LogChunk)
	}
	reading.Go(func() { receiveLog(ctx, stream, chunks, used) })
	return h.writeLog(ctx, r, chunks, used)
}

// logChunksAhead is how many chunks of a log may be in memory at a time: one
// is written while the next ones arrive. They are used again and again.
const logChunksAhead = 3

// logChunkIdle is the memory that a chunk keeps while its log is quiet.
const logChunkIdle = 8 << 10 // bytes

// received is one chunk of a log, or why there will be no more.
type received struct {
	chunk *structs.LogChunk
	err   error
}

// firstChunkPatience is how long a log may be quiet before its reader gets
// the beginning of an answer; failures are known much sooner.
const firstChunkPatience = 250 * time.Millisecond

// receiveLog passes chunks on until the stream ends or ctx does. It takes them
// from used, to which their reader returns them.
func receiveLog(ctx context.Context, stream *rpc.ClientStream[structs.LogRequest, structs.LogChunk], chunks chan<- received, used <-chan *structs.LogChunk) {
	for {
		var chunk *structs.LogChunk
		select {
		case chunk = <-used:
		case <-ctx.Done():
			return
		}
		if len(chunk.Data) <= logChunkIdle && cap(chunk.Data) > logChunkIdle {
			chunk.Data = nil // the log has become quiet
		}
		*chunk = structs.LogChunk{Data: chunk.Data[:0]}
		err := stream.RecvInto(chunk)
		select {
		case chunks <- received{chunk, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// writeLog writes chunks as they come, and sends what is written as soon as no
// more has arrived. A failure before the first one is an answer of its own; a
// later one is told in the trailer.
func (h *allocationHandlers) writeLog(ctx context.Context, r *front.Request, chunks <-chan received, used chan<- *structs.LogChunk) error {
	patience := time.NewTimer(firstChunkPatience)
	defer patience.Stop()
	out := newLineWriter(r.Writer)
	begun := false
	begin := func() {
		if !begun {
			begun = true
			r.Writer.Header().Set("Content-Type", "text/plain; charset=utf-8")
			r.Writer.Header().Set("Trailer", api.TrailerError)
		}
	}
	for {
		var next received
		select {
		case next = <-chunks:
		case <-ctx.Done():
			next.err = context.Cause(ctx)
		case <-patience.C: // a quiet log: its reader should know that it is there
			begin()
			if out.push(nil) != nil {
				return nil
			}
			continue
		}
		if next.err != nil && !begun && !errors.Is(next.err, io.EOF) {
			return next.err
		}
		begin()
		if next.err != nil {
			h.setTrailer(r, next.err)
			return nil
		}
		write := out.push
		if len(chunks) > 0 {
			write = out.add
		}
		if write(next.chunk.Data) != nil || next.chunk.EOF {
			return nil
		}
		used <- next.chunk // there is room for all
	}
}

// setTrailer tells the reader of a broken-off answer why.
func (h *allocationHandlers) setTrailer(r *front.Request, err error) {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return
	}
	var failure *structs.Error
	if !errors.As(err, &failure) {
		failure = structs.NewError(structs.CodeUnavailable, "agent.broken_off")
	}
	data, marshalErr := json.Marshal(front.Render(failure, front.AcceptedLanguage(r.Header.Get("Accept-Language"))))
	if marshalErr != nil {
		h.log.Error("encode trailer", logkey.Error, marshalErr)
		return
	}
	r.Writer.Header().Set(api.TrailerError, asciiJSON(data))
}

// asciiJSON escapes what may not stand in a header.
func asciiJSON(data []byte) string {
	var b strings.Builder
	const hex = "0123456789abcdef"
	for _, c := range string(data) {
		switch {
		case c < 0x80:
			b.WriteRune(c)
		case c <= 0xffff:
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(hex[c>>shift&0xf])
			}
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}
