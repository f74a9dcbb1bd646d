package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coder/websocket"

	"nomadlike/nomadlike/structs"
)

// The exec websocket. Text messages are JSON: structs.ExecUp upwards (Start
// first; never Stdin), structs.ExecDown downwards (Exit, last). Binary
// messages are bytes: upwards standard input; downwards one of the channel
// bytes below followed by what the command wrote.
const (
	ExecStdout byte = 1
	ExecStderr byte = 2

	// ExecMessageMax bounds one websocket message.
	ExecMessageMax = 64 << 10 // bytes
	execReadMax    = 2 * ExecMessageMax
)

// ExecConn is a command that runs inside a task. One goroutine may call Recv
// while others call the senders.
type ExecConn struct {
	ws *websocket.Conn
}

// Exec starts a command inside the task of an allocation. start.AllocID is
// filled from allocID. The command lives as long as ctx and the connection.
func (c *Client) Exec(ctx context.Context, allocID string, start structs.ExecStart) (*ExecConn, error) {
	header := http.Header{}
	c.sign(header)
	base := c.base()
	target := *base
	target.Path = unescaped(AllocationsExec.path(allocID))
	target.RawPath = AllocationsExec.path(allocID)
	ws, response, err := websocket.Dial(ctx, target.String(), &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header})
	if err != nil {
		if response != nil && response.StatusCode >= 300 {
			_, err := decodeError(response)
			return nil, err
		}
		return nil, c.unreached(ctx, base, err)
	}
	ws.SetReadLimit(execReadMax)
	conn := &ExecConn{ws: ws}
	start.AllocID = allocID
	if err := conn.control(ctx, &structs.ExecUp{Start: &start}); err != nil {
		_ = ws.CloseNow() // the first error says what happened
		return nil, err
	}
	return conn, nil
}

func (e *ExecConn) control(ctx context.Context, up *structs.ExecUp) error {
	data, err := json.Marshal(up)
	if err != nil {
		return fmt.Errorf("encode exec message: %w", err)
	}
	if err := e.ws.Write(ctx, websocket.MessageText, data); err != nil {
		return fmt.Errorf("send exec message: %w", err)
	}
	return nil
}

// SendStdin sends input to the command.
func (e *ExecConn) SendStdin(ctx context.Context, data []byte) error {
	for len(data) > 0 {
		n := min(len(data), ExecMessageMax)
		if err := e.ws.Write(ctx, websocket.MessageBinary, data[:n]); err != nil {
			return fmt.Errorf("send input: %w", err)
		}
		data = data[n:]
	}
	return nil
}

// CloseStdin tells the command that its input has ended.
func (e *ExecConn) CloseStdin(ctx context.Context) error {
	return e.control(ctx, &structs.ExecUp{CloseStdin: true})
}

// Resize tells the command's terminal its new size.
func (e *ExecConn) Resize(ctx context.Context, size structs.TTYSize) error {
	return e.control(ctx, &structs.ExecUp{Resize: &size})
}

// Signal sends the command a signal by name, "SIGINT".
func (e *ExecConn) Signal(ctx context.Context, name string) error {
	return e.control(ctx, &structs.ExecUp{Signal: name})
}

// Recv waits for the next thing that the command's side says. After Exit it
// returns io.EOF.
func (e *ExecConn) Recv(ctx context.Context) (*structs.ExecDown, error) {
	kind, data, err := e.ws.Read(ctx)
	if err != nil {
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			return nil, io.EOF
		}
		var closed websocket.CloseError
		if errors.As(err, &closed) && closed.Reason != "" {
			return nil, structs.NewError(structs.CodeUnavailable, "api.exec_closed", "reason", closed.Reason).Because(err)
		}
		return nil, fmt.Errorf("read exec message: %w", err)
	}
	if kind == websocket.MessageText {
		down := new(structs.ExecDown)
		if err := json.Unmarshal(data, down); err != nil {
			return nil, fmt.Errorf("read exec message: %w", err)
		}
		return down, nil
	}
	if len(data) == 0 {
		return &structs.ExecDown{}, nil
	}
	switch data[0] {
	case ExecStdout:
		return &structs.ExecDown{Stdout: data[1:]}, nil
	case ExecStderr:
		return &structs.ExecDown{Stderr: data[1:]}, nil
	}
	return nil, fmt.Errorf("read exec message: channel %d is unknown", data[0])
}

// Close ends the connection; a command that still runs is stopped.
func (e *ExecConn) Close() error { return e.ws.Close(websocket.StatusNormalClosure, "") }
