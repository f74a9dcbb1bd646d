package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Times of streams.
const (
	eventsBeat   = 3 * time.Second  // an empty line tells that the stream lives
	writeTimeout = 30 * time.Second // for a reader that does not take what it asked for
	execPing     = 20 * time.Second
)

// streamEvents writes what happens, one JSON value a line, filtered to what
// the caller may see.
func (s *handlers) streamEvents(r *front.Request) error {
	if err := s.refresh(r); err != nil {
		return err
	}
	q := front.Query{R: r}
	after, job, project := place(&q), q.Text("job"), q.Text("project")
	topics := splitList(q.Text("topic"))
	for _, topic := range topics {
		if !slices.Contains([]string{"job", "attempt", "alloc", "node", "pool", "project", "token", "cluster"}, topic) {
			q.Refuse("topic", topic)
		}
	}
	if q.Err != nil {
		return q.Err
	}
	store := s.store
	snapshot := store.Snapshot()
	if after.IsZero() {
		after = structs.CursorAfter(snapshot.Index())
	}
	if _, _, err := snapshot.EventsAfter(after); errors.Is(err, state.ErrEventsDropped) {
		return structs.NewError(structs.CodeConflict, "agent.events_dropped", "cursor", after.String())
	}
	wanted := func(now *state.Snapshot, e *structs.Event) bool {
		return (len(topics) == 0 || slices.Contains(topics, e.Topic)) && (job == "" || e.JobID == job) &&
			(project == "" || e.Project == project) && mayHear(r, now, e)
	}
	ctx, end := s.whileValid(r)
	defer end()
	r.Writer.Header().Set("Content-Type", "application/x-ndjson")
	r.SetIndex(max(after.Index-1, 1))
	lines := newLineWriter(r.Writer)
	// Without an event: up to where all is known, after the last line.
	known := func() error { return lines.write(api.EventLine{Index: after.Index - 1, Cursor: after.String()}) }
	if known() != nil {
		return nil
	}
	follower := store.Follow(after)
	for {
		beat, cancel := context.WithTimeout(ctx, eventsBeat)
		events, now, err := follower.Next(beat)
		cancel()
		switch {
		case ctx.Err() != nil:
			lines.fail(r, context.Cause(ctx))
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			if known() != nil {
				return nil
			}
			continue
		case err != nil:
			lines.fail(r, structs.NewError(structs.CodeConflict, "agent.events_dropped", "cursor", after.String()))
			return nil
		}
		after = structs.CursorAfter(now)
		current := store.Snapshot()
		for _, event := range events {
			if wanted(current, event) && lines.write(api.EventLine{Event: event, Index: event.Index, Cursor: event.Cursor().String()}) != nil {
				return nil
			}
		}
	}
}

// place is where a stream of events begins; zero: at what is new. Whoever has
// only an index may have seen some of its events: they come again.
func place(q *front.Query) structs.Cursor {
	if text := q.Text("cursor"); text != "" {
		cursor, ok := structs.ParseCursor(text)
		if !ok {
			q.Refuse("cursor", text)
		}
		return cursor
	}
	return structs.Cursor{Index: q.Uint("index")}
}

func splitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// mayHear reports whether the caller may see what an event is about. Events of
// deleted jobs are left to those who may read everything in the project.
func mayHear(r *front.Request, now *state.Snapshot, e *structs.Event) bool {
	object, verb := auth.Object{Kind: auth.ObjectCluster}, auth.VerbOperatorRead
	switch {
	case e.JobID != "":
		object, verb = auth.Object{Kind: auth.ObjectJob, ID: e.JobID, Project: e.Project}, auth.VerbRead
		if view, ok := now.Job(e.JobID); ok {
			object = jobObject(view.Job)
		}
	case e.Topic == "node":
		object, verb = auth.Object{Kind: auth.ObjectNode, ID: e.NodeID}, auth.VerbRead
	case e.Topic == "pool":
		object, verb = auth.Object{Kind: auth.ObjectPool}, auth.VerbRead
	case e.Topic == "project":
		object, verb = auth.Object{Kind: auth.ObjectProject, ID: e.Project, Project: e.Project}, auth.VerbRead
	}
	return auth.Allowed(r.Caller.Principal, verb, object).Allow
}

// lineWriter writes JSON lines and pushes each to the reader at once.
type lineWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newLineWriter(w http.ResponseWriter) *lineWriter {
	return &lineWriter{w: w, control: http.NewResponseController(w)}
}

func (l *lineWriter) write(line api.EventLine) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return l.push(append(data, '\n'))
}

// push writes bytes within writeTimeout; a reader that stalls is dropped.
func (l *lineWriter) push(data []byte) error {
	if err := l.add(data); err != nil {
		return err
	}
	return l.control.Flush()
}

// add is push for what more will follow at once: some may be sent later.
func (l *lineWriter) add(data []byte) error {
	if err := l.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := l.w.Write(data)
	return err
}

// fail ends the stream with the reason, if the reader is still there.
func (l *lineWriter) fail(r *front.Request, cause error) {
	var failure *structs.Error
	if errors.As(cause, &failure) {
		_ = l.write(api.EventLine{Error: front.Render(failure, front.AcceptedLanguage(r.Header.Get("Accept-Language")))})
	}
}

// clientOf is the connection to the agent that runs an allocation.
func (s *handlers) clientOf(alloc *structs.Allocation) (*rpc.Conn, error) {
	node := s.store.Snapshot().Node(alloc.NodeID)
	if node == nil || node.RPCAddr == "" {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.node_away", "node", alloc.NodeName)
	}
	return s.pool.Conn(rpc.Target{Addr: node.RPCAddr, Expect: auth.Expect{ID: node.ID}})
}

// exec connects a websocket with a command inside a task.
func (s *handlers) exec(r *front.Request, alloc *structs.Allocation) error {
	if !alloc.Enterable() {
		return structs.NewError(structs.CodeConflict, "agent.alloc_ended", "id", alloc.ID)
	}
	conn, err := s.clientOf(alloc)
	if err != nil {
		return err
	}
	ws, err := websocket.Accept(r.Writer, r.Request, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }() // after an orderly Close it does nothing
	ws.SetReadLimit(2 * api.ExecMessageMax)
	ctx, end := s.whileValid(r)
	defer end()
	s.execOver(ctx, r, ws, conn, alloc)
	return nil
}

// closeReason fits an error into the close frame of a websocket.
func closeReason(r *front.Request, err error) string {
	const closeReasonMax = 120
	text := err.Error()
	var failure *structs.Error
	if errors.As(err, &failure) {
		text = front.Render(failure, front.AcceptedLanguage(r.Header.Get("Accept-Language"))).Message
	}
	text = strings.ToValidUTF8(text[:min(len(text), closeReasonMax)], "")
	return text
}

// execOver pumps both directions until the command has ended or either side
// goes away, and closes the websocket.
func (s *handlers) execOver(valid context.Context, r *front.Request, ws *websocket.Conn, conn *rpc.Conn, alloc *structs.Allocation) {
	ctx, cancel := context.WithCancel(valid)
	var pumps sync.WaitGroup
	defer pumps.Wait()
	defer cancel()
	err := s.execUntilEnd(ctx, cancel, &pumps, r, ws, conn, alloc)
	if valid.Err() != nil {
		err = context.Cause(valid)
	}
	// Before cancel: a read that is cancelled breaks the connection, and the
	// caller would miss the orderly end.
	if err != nil {
		_ = ws.Close(websocket.StatusPolicyViolation, closeReason(r, err))
		return
	}
	_ = ws.Close(websocket.StatusNormalClosure, "")
}

func (s *handlers) execUntilEnd(ctx context.Context, cancel func(), pumps *sync.WaitGroup, r *front.Request, ws *websocket.Conn, conn *rpc.Conn, alloc *structs.Allocation) error {
	start, err := readStart(ctx, ws, alloc)
	if err != nil {
		return err
	}
	start.User = r.Caller.Principal.ID
	s.log.Info("exec", logkey.User, r.Caller.Principal.ID, logkey.TokenID, r.Caller.Token.ID, logkey.AllocID, alloc.ID, "tty", start.TTY)
	stream, err := rpc.OpenStream[structs.ExecUp, structs.ExecDown](ctx, conn, structs.MethodAllocExec)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := stream.Send(&structs.ExecUp{Start: start}); err != nil && !errors.Is(err, rpc.ErrStreamEnded) {
		return err
	}
	pumps.Go(func() {
		defer cancel()
		pumpUp(ctx, ws, stream)
	})
	pumps.Go(func() { keepAlive(ctx, ws) })
	return pumpDown(ctx, ws, stream)
}

// readStart takes the first message. The command's caller, its attempt and
// its allocation are the server's word, not the message's.
func readStart(ctx context.Context, ws *websocket.Conn, alloc *structs.Allocation) (*structs.ExecStart, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	kind, data, err := ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	up := new(structs.ExecUp)
	if kind != websocket.MessageText || front.CheckJSON(data) != nil || front.StrictJSON(data, up) != nil || up.Start == nil || len(up.Start.Command) == 0 {
		return nil, structs.NewError(structs.CodeInvalid, "agent.exec_start")
	}
	start := up.Start
	if start.Attempt != 0 && start.Attempt != alloc.Attempt {
		return nil, structs.NewError(structs.CodeConflict, "agent.alloc_attempt", "attempt", alloc.Attempt, "asked", start.Attempt)
	}
	start.AllocID, start.Attempt, start.From = alloc.ID, alloc.Attempt, ""
	return start, nil
}

// pumpUp carries what the caller says to the task.
func pumpUp(ctx context.Context, ws *websocket.Conn, stream *rpc.ClientStream[structs.ExecUp, structs.ExecDown]) {
	for {
		kind, data, err := ws.Read(ctx)
		if err != nil {
			return
		}
		up := &structs.ExecUp{Stdin: data}
		if kind == websocket.MessageText {
			up = new(structs.ExecUp)
			if front.CheckJSON(data) != nil || front.StrictJSON(data, up) != nil || up.Start != nil {
				return
			}
		}
		if stream.Send(up) != nil {
			// The command's end is on its way; the caller may go on talking
			// until it hears of it.
			<-ctx.Done()
			return
		}
	}
}

// pumpDown carries what the command writes to the caller, and its end.
func pumpDown(ctx context.Context, ws *websocket.Conn, stream *rpc.ClientStream[structs.ExecUp, structs.ExecDown]) error {
	write := func(kind websocket.MessageType, data []byte) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return ws.Write(ctx, kind, data)
	}
	for {
		down, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case down.Exit != nil:
			data, err := json.Marshal(structs.ExecDown{Exit: down.Exit})
			if err != nil {
				return err
			}
			return write(websocket.MessageText, data)
		case len(down.Stdout) > 0:
			err = write(websocket.MessageBinary, append([]byte{api.ExecStdout}, down.Stdout...))
		case len(down.Stderr) > 0:
			err = write(websocket.MessageBinary, append([]byte{api.ExecStderr}, down.Stderr...))
		}
		if err != nil {
			return err
		}
	}
}

// keepAlive pings the caller, so that a connection whose other end vanished
// does not keep a command running.
func keepAlive(ctx context.Context, ws *websocket.Conn) {
	ticker := time.NewTicker(execPing)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			ping, cancel := context.WithTimeout(ctx, execPing)
			err := ws.Ping(ping)
			cancel()
			if err != nil {
				_ = ws.CloseNow()
				return
			}
		}
	}
}
