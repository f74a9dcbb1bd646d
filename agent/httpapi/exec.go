package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// exec connects a websocket with a command inside a task.
func (h *allocationHandlers) exec(r *front.Request, alloc *structs.Allocation) error {
	if !alloc.Enterable() {
		return structs.NewError(structs.CodeConflict, "agent.alloc_ended", "id", alloc.ID)
	}
	conn, err := h.calls.ofAllocation(alloc)
	if err != nil {
		return err
	}
	ws, err := websocket.Accept(r.Writer, r.Request, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }() // after an orderly Close it does nothing
	ws.SetReadLimit(2 * api.ExecMessageMax)
	ctx, end := h.whileValid(r)
	defer end()
	h.execOver(ctx, r, ws, conn, alloc)
	return nil
}

// terminal is a websocket, and how much went through it.
type terminal struct {
	*websocket.Conn
	sent, received atomic.Int64 // bytes, to the caller and from it
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
func (h *allocationHandlers) execOver(valid context.Context, r *front.Request, ws *websocket.Conn, conn *rpc.Conn, alloc *structs.Allocation) {
	ctx, cancel := context.WithCancel(valid)
	var pumps sync.WaitGroup
	defer pumps.Wait()
	defer cancel()
	term := &terminal{Conn: ws}
	err := h.execUntilEnd(ctx, cancel, &pumps, r, term, conn, alloc)
	if valid.Err() != nil {
		err = context.Cause(valid)
	}
	r.EndTerminal(term.sent.Load(), term.received.Load(), err)
	// Before cancel: a read that is cancelled breaks the connection, and the
	// caller would miss the orderly end.
	if err != nil {
		_ = ws.Close(websocket.StatusPolicyViolation, closeReason(r, err))
		return
	}
	_ = ws.Close(websocket.StatusNormalClosure, "")
}

func (h *allocationHandlers) execUntilEnd(ctx context.Context, cancel func(), pumps *sync.WaitGroup, r *front.Request, ws *terminal, conn *rpc.Conn, alloc *structs.Allocation) error {
	start, err := readStart(ctx, ws.Conn, alloc)
	if err != nil {
		return err
	}
	start.User = r.Caller.Principal.ID
	if start.SSH != nil {
		if err := hostOf(h.core, h.keys, alloc, start); err != nil {
			return err
		}
	}
	h.log.Info("exec", logkey.User, r.Caller.Principal.ID, logkey.TokenID, r.Caller.Token.ID, logkey.AllocID, alloc.ID, "tty", start.TTY, "ssh", start.SSH != nil)
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
	pumps.Go(func() { keepAlive(ctx, ws.Conn) })
	err = pumpDown(ctx, ws, stream)
	if start.SSH != nil && ctx.Err() != nil {
		return nil // ssh ends its proxy when it has what it wanted
	}
	return err
}

// hostOf makes the key with which the allocation's node answers a connection of ssh:
// for the names of this allocation, whatever the caller sent.
func hostOf(h *core, keys Authority, alloc *structs.Allocation, start *structs.ExecStart) (err error) {
	node := h.store.Snapshot().Node(alloc.NodeID)
	if node == nil || node.Speaks() < wire.ProtocolSSH {
		return structs.NewError(structs.CodeUnavailable, "ssh.node_old", "node", alloc.NodeName)
	}
	start.Env, start.TTY, start.Size = nil, false, nil
	start.SSH, err = keys.SSHHost(alloc.SSHHosts(), h.now())
	return err
}

// sshAuthority answers ssh.authority: by what clients know hosts of this cluster.
func (h *allocationHandlers) sshAuthority(_ *front.Request, _ *structs.Token) (*api.SSHAuthority, error) {
	key, err := h.keys.SSHAuthority()
	return &api.SSHAuthority{Key: key}, err
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
	if kind != websocket.MessageText || front.CheckJSON(data) != nil || front.StrictJSON(data, up) != nil || up.Start == nil || (len(up.Start.Command) == 0) != (up.Start.SSH != nil) {
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
func pumpUp(ctx context.Context, ws *terminal, stream *rpc.ClientStream[structs.ExecUp, structs.ExecDown]) {
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
		ws.received.Add(int64(len(up.Stdin)))
		if stream.Send(up) != nil {
			// The command's end is on its way; the caller may go on talking
			// until it hears of it.
			<-ctx.Done()
			return
		}
	}
}

// pumpDown carries what the command writes to the caller, and its end.
func pumpDown(ctx context.Context, ws *terminal, stream *rpc.ClientStream[structs.ExecUp, structs.ExecDown]) error {
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
			ws.sent.Add(int64(len(down.Stdout)))
			err = write(websocket.MessageBinary, append([]byte{api.ExecStdout}, down.Stdout...))
		case len(down.Stderr) > 0:
			ws.sent.Add(int64(len(down.Stderr)))
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
