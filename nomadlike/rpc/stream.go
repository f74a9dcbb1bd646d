package rpc

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
)

// ErrStreamEnded is returned by Send when the stream has ended at the other
// side. Recv reports why.
var ErrStreamEnded = errors.New("stream has ended")

// ServerStream is the answering end of a stream. One goroutine may send
// while another receives.
type ServerStream[Up, Down any] struct {
	raw grpc.ServerStream
}

// Send passes one message to the caller. It blocks while the caller reads
// too slowly, until the stream's context ends. The message may be reused
// when it returns.
func (s *ServerStream[Up, Down]) Send(message *Down) error {
	return endedIfEOF(s.raw.SendMsg(message))
}

// Recv waits for the caller's next message; io.EOF says that there will be
// no more.
func (s *ServerStream[Up, Down]) Recv() (*Up, error) {
	var received frame
	if err := s.raw.RecvMsg(&received); err != nil {
		return nil, err
	}
	message := new(Up)
	if err := received.into(message); err != nil {
		return nil, err
	}
	return message, nil
}

// ClientStream is the calling end of a stream. One goroutine may send while
// another receives. It must be closed.
type ClientStream[Up, Down any] struct {
	raw    grpc.ClientStream
	cancel context.CancelFunc
	conn   *Conn
	method string
	closed atomic.Bool
}

// Send passes one message to the other agent. It blocks while that agent
// reads too slowly. ErrStreamEnded says that it ended the stream; Recv tells
// why. The message may be reused when Send returns.
func (s *ClientStream[Up, Down]) Send(message *Up) error {
	err := s.raw.SendMsg(message)
	if err == nil || errors.Is(err, io.EOF) {
		return endedIfEOF(err)
	}
	return incomingError(err, nil, s.method, s.conn.target.Addr, true)
}

// CloseSend tells the other agent that no more messages will come.
func (s *ClientStream[Up, Down]) CloseSend() error { return s.raw.CloseSend() }

// Recv waits for the next message. io.EOF says that the other agent ended
// the stream orderly; a *structs.Error says how it failed.
func (s *ClientStream[Up, Down]) Recv() (*Down, error) {
	message := new(Down)
	if err := s.RecvInto(message); err != nil {
		return nil, err
	}
	return message, nil
}

// RecvInto is Recv into a message of the caller's, which is empty; the data of
// a chunk of a log is read into the memory of message's, where that has room.
func (s *ClientStream[Up, Down]) RecvInto(message *Down) error {
	if err := s.raw.RecvMsg(message); err != nil {
		return incomingError(err, s.raw.Trailer(), s.method, s.conn.target.Addr, true)
	}
	return nil
}

// Close ends the stream at once, in both directions. It may be called more
// than once and from any goroutine.
func (s *ClientStream[Up, Down]) Close() {
	if s.closed.CompareAndSwap(false, true) {
		s.cancel()
		s.conn.streams.Add(-1)
	}
}

func endedIfEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrStreamEnded
	}
	return err
}
