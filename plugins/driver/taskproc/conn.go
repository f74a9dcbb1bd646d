package taskproc

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
// JSON. Descriptors travel with its first byte.
const (
	headerBytes = 4
	// DescriptorsMax is how many descriptors a message may bring.
	DescriptorsMax = 3
)

// ErrTooLong is returned for a message over its limit.
var ErrTooLong = errors.New("message too long")

// EncodeMessage returns the bytes of a message whose JSON has at most limit
// bytes.
func EncodeMessage(message any, limit int) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if len(body) > limit {
		return nil, ErrTooLong
	}
	data := make([]byte, headerBytes, headerBytes+len(body))
	binary.BigEndian.PutUint32(data, uint32(len(body)))
	return append(data, body...), nil
}

// ReadMessage reads the body of one message. It returns io.EOF when the stream
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

// Conn is a connection over a Unix socket that carries messages with
// descriptors. One goroutine receives; one at a time sends.
type Conn struct {
	file     *os.File
	raw      syscall.RawConn
	patience time.Duration
}

// NewConn takes over a connected Unix socket, unless it fails. A peer that
// does not take a message within patience loses it.
func NewConn(fd int, patience time.Duration) (*Conn, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("open connection: %w", err)
	}
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "connection")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("open connection: %w", err)
	}
	return &Conn{file: file, raw: raw, patience: patience}, nil
}

// Write sends an encoded message; descriptors travel with its first byte.
func (c *Conn) Write(data []byte, descriptors ...int) error {
	if err := c.file.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	if len(descriptors) > 0 {
		if err := c.writeRights(data[:1], syscall.UnixRights(descriptors...)); err != nil {
			return fmt.Errorf("send descriptors: %w", err)
		}
		data = data[1:]
	}
	if _, err := c.file.Write(data); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	return nil
}

func (c *Conn) writeRights(data, rights []byte) error {
	var sendErr error
	err := c.raw.Write(func(fd uintptr) bool {
		sendErr = syscall.Sendmsg(int(fd), data, rights, nil, syscall.MSG_NOSIGNAL)
		return sendErr != syscall.EAGAIN && sendErr != syscall.EINTR
	})
	if err == nil {
		err = sendErr
	}
	return err
}

// Read returns the next message, of at most limit bytes, and the descriptors
// that came with it, which the caller owns. It reads not one byte more than
// the message. The error is io.EOF when the peer has closed its end.
func (c *Conn) Read(limit int) ([]byte, []int, error) {
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
		CloseAll(descriptors)
		return nil, nil, err
	}
	return body, descriptors, nil
}

// receive reads bytes and descriptors once, without waiting in a thread.
func (c *Conn) receive(into []byte) (n int, descriptors []int, err error) {
	const closeOnExec = 0x40000000 // MSG_CMSG_CLOEXEC
	control := make([]byte, syscall.CmsgSpace(DescriptorsMax*4))
	waitErr := c.raw.Read(func(fd uintptr) bool {
		var length int
		n, length, _, _, err = syscall.Recvmsg(int(fd), into, control, closeOnExec)
		if err == syscall.EAGAIN || err == syscall.EINTR {
			return false
		}
		if err == nil && length > 0 {
			descriptors = parseRights(control[:length])
		}
		return true
	})
	if err == nil {
		err = waitErr
	}
	return n, descriptors, err
}

func parseRights(control []byte) (all []int) {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		if fds, err := syscall.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

// SetDeadline bounds what is sent and received; the zero time lifts it.
// Write sets a deadline of its own for what it sends.
func (c *Conn) SetDeadline(at time.Time) { _ = c.file.SetDeadline(at) } // refused only when closed

// Close closes the connection.
func (c *Conn) Close() { c.file.Close() }

// Open reports whether the peer still has its end of the connection.
func (c *Conn) Open() bool {
	there := false
	err := c.raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		there = n > 0 || err == syscall.EAGAIN || err == syscall.EINTR
	})
	return err == nil && there
}

// Peer returns the process at the other end, by its ids on this side.
func (c *Conn) Peer() (*syscall.Ucred, error) {
	var peer *syscall.Ucred
	err := c.Lend(func(fd int) (err error) {
		peer, err = syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		return err
	})
	return peer, err
}

// Lend lends the socket's descriptor to f, for as long as f runs.
func (c *Conn) Lend(f func(fd int) error) error {
	var err error
	if controlErr := c.raw.Control(func(fd uintptr) { err = f(int(fd)) }); controlErr != nil {
		return controlErr
	}
	return err
}

// CloseAll closes descriptors.
func CloseAll(descriptors []int) {
	for _, fd := range descriptors {
		syscall.Close(fd)
	}
}
