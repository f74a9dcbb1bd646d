package supervisor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// A message is four bytes of length, most significant first, and that much
// JSON. Descriptors travel with the first bytes of an exec request.
const (
	headerBytes = 4
	// MessageBytesMax bounds every message but a start request.
	MessageBytesMax = 1 << 20
	descriptorsMax  = 3
	replyTimeout    = 2 * time.Second
)

// ErrTooLong is returned for a message over its limit.
var ErrTooLong = errors.New("message too long")

// EncodeMessage gives the bytes of a message.
func EncodeMessage(message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if len(body) > SpecBytesMax {
		return nil, ErrTooLong
	}
	data := make([]byte, headerBytes, headerBytes+len(body))
	binary.BigEndian.PutUint32(data, uint32(len(body)))
	return append(data, body...), nil
}

// ReadMessage reads the body of one message. It gives io.EOF when the stream
// ends before its first byte and io.ErrUnexpectedEOF when it ends within.
func ReadMessage(from io.Reader, limit int) ([]byte, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return nil, err
	}
	return readBody(from, header, limit)
}

func readBody(from io.Reader, header [headerBytes]byte, limit int) ([]byte, error) {
	length := binary.BigEndian.Uint32(header[:])
	if int64(length) > int64(limit) {
		return nil, ErrTooLong
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(from, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return body, nil
}

// conn is one control connection. It does without package net, which would
// double the size of the program. One goroutine reads; any may write.
type conn struct {
	file *os.File
	raw  syscall.RawConn
}

// newConn takes over a connected Unix socket.
func newConn(fd int) (*conn, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("open connection: %w", err)
	}
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "control")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("open connection: %w", err)
	}
	return &conn{file: file, raw: raw}, nil
}

// read gives the next message and the descriptors that came with it, which
// the caller owns.
func (c *conn) read(limit int) ([]byte, []int, error) {
	var header [headerBytes]byte
	n, descriptors, err := c.receive(header[:])
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil && n < headerBytes {
		_, err = io.ReadFull(c.file, header[n:])
	}
	var body []byte
	if err == nil {
		body, err = readBody(c.file, header, limit)
	}
	if err != nil {
		closeAll(descriptors)
		return nil, nil, err
	}
	return body, descriptors, nil
}

// receive reads bytes and descriptors once, without waiting in a thread.
func (c *conn) receive(into []byte) (n int, descriptors []int, err error) {
	const closeOnExec = 0x40000000 // MSG_CMSG_CLOEXEC
	control := make([]byte, syscall.CmsgSpace(descriptorsMax*4))
	waitErr := c.raw.Read(func(fd uintptr) bool {
		var controlLength int
		n, controlLength, _, _, err = syscall.Recvmsg(int(fd), into, control, closeOnExec)
		if err == syscall.EAGAIN || err == syscall.EINTR {
			return false
		}
		if err == nil && controlLength > 0 {
			descriptors = parseRights(control[:controlLength])
		}
		return true
	})
	if err == nil {
		err = waitErr
	}
	return n, descriptors, err
}

func parseRights(control []byte) []int {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	var all []int
	for i := range messages {
		if fds, err := syscall.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

// write sends a message; a peer that does not take it in time loses it.
func (c *conn) write(reply *Reply) error {
	data, err := EncodeMessage(reply)
	if err != nil {
		return err
	}
	if err := c.file.SetWriteDeadline(time.Now().Add(replyTimeout)); err != nil {
		return err
	}
	_, err = c.file.Write(data)
	return err
}

// open tells whether the peer still has its end of the connection.
func (c *conn) open() bool {
	there := false
	err := c.raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		there = n > 0 || err == syscall.EAGAIN || err == syscall.EINTR
	})
	return err == nil && there
}

func (c *conn) close() { c.file.Close() }

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		syscall.Close(fd)
	}
}
