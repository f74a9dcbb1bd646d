package supervisor

import (
	"time"

	"nomadlike/plugins/driver/taskproc"
)

const (
	// MessageBytesMax bounds every message but a start request.
	MessageBytesMax = 1 << 20
	replyTimeout    = 2 * time.Second
)

// EncodeRequest returns the bytes of a request for a supervisor.
func EncodeRequest(request *Request) ([]byte, error) {
	return taskproc.EncodeMessage(request, SpecBytesMax)
}

// conn is one control connection. One goroutine reads; any may write.
type conn struct{ *taskproc.Conn }

// newConn takes over a connected Unix socket.
func newConn(fd int) (*conn, error) {
	inner, err := taskproc.NewConn(fd, replyTimeout)
	if err != nil {
		return nil, err
	}
	return &conn{inner}, nil
}

// write sends a message; a peer that does not take it in time loses it.
func (c *conn) write(reply *Reply) error {
	data, err := taskproc.EncodeMessage(reply, MessageBytesMax)
	if err != nil {
		return err
	}
	return c.Write(data)
}
