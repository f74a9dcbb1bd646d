package taskport

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
)

// Stream is an exec stream as package ssh wants it. One goroutine may read while others
// write.
type Stream struct {
	// Recv waits for the next thing that the task's side says.
	Recv func() (*structs.ExecDown, error)
	// Send passes bytes to it, at most SendMax at once.
	Send func([]byte) error
	// SendMax bounds a message; 0: Send takes any.
	SendMax int
	// End ends the stream.
	End func() error

	rest  []byte
	write sync.Mutex

	mu   sync.Mutex
	said error
}

// Ending is why the stream ended, if the task's side or a server said so; nil otherwise.
func (s *Stream) Ending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

// Read implements net.Conn.
func (s *Stream) Read(data []byte) (int, error) {
	for len(s.rest) == 0 {
		down, err := s.Recv()
		if down != nil && down.Exit != nil {
			err = io.EOF
			if down.Exit.Err != nil {
				err = down.Exit.Err
			}
		}
		if err != nil {
			if told, ok := errors.AsType[*structs.Error](err); ok {
				s.mu.Lock()
				s.said = told
				s.mu.Unlock()
			}
			return 0, err
		}
		s.rest = down.Stdout
	}
	n := copy(data, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Write implements net.Conn.
func (s *Stream) Write(data []byte) (int, error) {
	s.write.Lock()
	defer s.write.Unlock()
	most := s.SendMax
	if most == 0 {
		most = max(1, len(data))
	}
	for rest := data; len(rest) > 0; {
		n := min(len(rest), most)
		if err := s.Send(rest[:n]); err != nil {
			return len(data) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(data), nil
}

// Close implements net.Conn.
func (s *Stream) Close() error { return s.End() }

type address struct{}

func (address) Network() string { return "nomadlike" }
func (address) String() string  { return "nomadlike" }

// LocalAddr implements net.Conn.
func (*Stream) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements net.Conn.
func (*Stream) RemoteAddr() net.Addr { return address{} }

// SetDeadline implements net.Conn; a stream has none.
func (*Stream) SetDeadline(time.Time) error { return errors.ErrUnsupported }

// SetReadDeadline implements net.Conn; a stream has none.
func (*Stream) SetReadDeadline(time.Time) error { return errors.ErrUnsupported }

// SetWriteDeadline implements net.Conn; a stream has none.
func (*Stream) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }
