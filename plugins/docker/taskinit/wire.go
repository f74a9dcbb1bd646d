package taskinit

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Protocol numbers what init, keeper and agent say to each other.
//
//	1  2026-11-21  first
const Protocol = 1

// MessageBytesMax bounds a message: a spec with its environment is the
// longest, and both have limits in package driver.
const MessageBytesMax = 4 << 20

const (
	headerBytes    = 4
	descriptorsMax = 3
	sendPatience   = 5 * time.Second
)

// Names inside a task's directory on the node.
const (
	ControlSocket = "control.sock" // the keeper's, for the agent
	DoorDir       = "door"         // appears in the container as MountPoint, read-only
	InitSocket    = "init.sock"    // in DoorDir: the keeper's, for the init
	Program       = "init"         // in DoorDir: this program
	ExitFile      = "exit.json"    // the keeper's record of the end
)

// MountPoint is where a container finds DoorDir.
const MountPoint = "/.nomadlike"

// Spec is what the init runs.
type Spec struct {
	Command []string `json:"command,omitempty"`
	Env     []string `json:"env,omitempty"`
	Dir     string   `json:"dir"`
	Hold    bool     `json:"hold,omitempty"`
	Lease   *Lease   `json:"lease,omitempty"` // of the node, for a task that ends with it
}

// Started says that the task runs.
type Started struct {
	Protocol  int   `json:"protocol"`
	StartedNS int64 `json:"started_ns"`
	// InitPID is the init's id on the node, InitTicks its start time; filled
	// by the keeper.
	InitPID   int   `json:"init_pid,omitempty"`
	InitTicks int64 `json:"init_ticks,omitempty"`
}

// Exit is how the task, or a command executed in it, has ended.
type Exit struct {
	Code       int   `json:"code"`
	Signal     int   `json:"signal,omitempty"`
	StartedNS  int64 `json:"started_ns"`
	FinishedNS int64 `json:"finished_ns"`
	// OOMKills counts processes of the container that the kernel killed for
	// memory; filled by the keeper.
	OOMKills int64 `json:"oom_kills,omitempty"`
	// Outside says that the init was told to end by somebody else than the
	// agent: docker stop, or the engine's own end.
	Outside bool `json:"outside,omitempty"`
	// Stopped says that the agent asked for the end.
	Stopped bool `json:"stopped,omitempty"`
	// Vanished says that the init was gone without a word.
	Vanished bool `json:"vanished,omitempty"`
	// Unkillable lists processes, by their ids in the container, that did not
	// die of SIGKILL.
	Unkillable []int `json:"unkillable,omitempty"`
}

// Failure says why a command was not started, or a request not carried out.
type Failure struct {
	Kind     string            `json:"kind"` // a text of the catalogue is "driver."+Kind
	Params   map[string]string `json:"params,omitempty"`
	ExitCode int               `json:"exit_code,omitempty"` // 0: not the command's fault
}

// Error gives the kind and the parameters.
func (f *Failure) Error() string { return fmt.Sprint(f.Kind, f.Params) }

// Kinds of failures that are no texts of the catalogue.
const (
	FailEnded      = "ended"
	FailBadRequest = "bad_request"
)

// Report is what the init tells its keeper: first a Hello with whatever is
// known already, then each of the others once.
type Report struct {
	Hello   bool     `json:"hello,omitempty"`
	Started *Started `json:"started,omitempty"` // two descriptors come with it: the read ends of stdout and stderr
	Refused *Failure `json:"refused,omitempty"`
	Exit    *Exit    `json:"exit,omitempty"`
}

// order is what the keeper tells the init.
type order struct {
	Spec   *Spec  `json:"spec,omitempty"`
	Caller bool   `json:"caller,omitempty"` // a descriptor comes with it: an agent's connection
	Ack    bool   `json:"ack,omitempty"`    // the exit is known: go
	Lease  *Lease `json:"lease,omitempty"`  // the newest
}

// Ask is the first message of an agent on the control socket. After
// OpWatch the keeper sends News; after OpRelay the agent talks to the init.
type Ask struct {
	Op string `json:"op"`
}

// What an agent asks of a keeper.
const (
	OpWatch = "watch"
	OpRelay = "relay"
)

// News is what a keeper tells watchers.
type News struct {
	Started *Started `json:"started,omitempty"`
	Refused *Failure `json:"refused,omitempty"`
	Exit    *Exit    `json:"exit,omitempty"` // the logs are complete
}

// Request is what an agent asks of the init.
type Request struct {
	Op      string `json:"op"`
	Signal  int    `json:"signal,omitempty"`
	GraceMS int64  `json:"grace_ms,omitempty"`
	Exec    *Exec  `json:"exec,omitempty"` // three descriptors come with it, none with a terminal
}

// What an agent asks of an init.
const (
	OpExec   = "exec"
	OpSignal = "signal"
	OpStop   = "stop"
)

// Exec is a command to be executed in the task.
type Exec struct {
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"`
	Dir     string   `json:"dir,omitempty"`
	TTY     bool     `json:"tty,omitempty"`
	Rows    uint16   `json:"rows,omitempty"` // of the terminal at first; 0: its own default
	Cols    uint16   `json:"cols,omitempty"`
	Survive bool     `json:"survive,omitempty"`
}

// Reply answers a Request: nothing in it means done.
type Reply struct {
	Failure *Failure `json:"failure,omitempty"`
	Running bool     `json:"running,omitempty"` // an exec has begun; with a terminal its descriptor comes along
	Exit    *Exit    `json:"exit,omitempty"`
}

// Conn is a connection over a Unix socket that carries messages with
// descriptors. It does without package net, which would double the size of
// the program. One goroutine receives; one at a time sends.
type Conn struct {
	file *os.File
	raw  syscall.RawConn
}

// NewConn takes over a connected Unix socket.
func NewConn(fd int) (*Conn, error) {
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
	return &Conn{file: file, raw: raw}, nil
}

// Dial reaches a socket in a directory. It goes through the directory's
// descriptor, because the whole path may be longer than an address.
func Dial(dir, name string) (*Conn, error) {
	parent, err := syscall.Open(dir, syscall.O_DIRECTORY|syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer syscall.Close(parent)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	address := &syscall.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(parent) + "/" + name}
	if err := syscall.Connect(fd, address); err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	return NewConn(fd)
}

// Listen makes a listening socket with the given mode, in place of any other.
func Listen(dir, name string, mode uint32) (*os.File, error) {
	parent, err := syscall.Open(dir, syscall.O_DIRECTORY|syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer syscall.Close(parent)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	path := "/proc/self/fd/" + strconv.Itoa(parent) + "/" + name
	_ = syscall.Unlink(path)
	if err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err == nil {
		err = syscall.Chmod(path, mode)
	}
	if err == nil {
		err = syscall.Listen(fd, 64)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Send sends a message; descriptors travel with its first byte. A peer that
// does not take it within a few seconds is an error.
func (c *Conn) Send(message any, descriptors ...int) error {
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if len(body) > MessageBytesMax {
		return fmt.Errorf("send message: %d bytes are too long", len(body))
	}
	data := make([]byte, headerBytes, headerBytes+len(body))
	binary.BigEndian.PutUint32(data, uint32(len(body)))
	data = append(data, body...)
	if err := c.file.SetWriteDeadline(time.Now().Add(sendPatience)); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	if len(descriptors) > 0 {
		rights := syscall.UnixRights(descriptors...)
		var sendErr error
		err := c.raw.Write(func(fd uintptr) bool {
			sendErr = syscall.Sendmsg(int(fd), data[:1], rights, nil, syscall.MSG_NOSIGNAL)
			return sendErr != syscall.EAGAIN && sendErr != syscall.EINTR
		})
		if err == nil {
			err = sendErr
		}
		if err != nil {
			return fmt.Errorf("send descriptors: %w", err)
		}
		data = data[1:]
	}
	if _, err := c.file.Write(data); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	return nil
}

// Receive reads the next message and gives the descriptors that came with it,
// which the caller owns. It reads not one byte more than the message.
func (c *Conn) Receive(into any) ([]int, error) {
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
		body, err = readBody(c.file, header)
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		CloseAll(descriptors)
		return nil, err
	}
	return descriptors, nil
}

func readBody(from io.Reader, header [headerBytes]byte) ([]byte, error) {
	length := binary.BigEndian.Uint32(header[:])
	if length > MessageBytesMax {
		return nil, errors.New("message too long")
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

// receive reads bytes and descriptors once, without waiting in a thread.
func (c *Conn) receive(into []byte) (n int, descriptors []int, err error) {
	const closeOnExec = 0x40000000 // MSG_CMSG_CLOEXEC
	control := make([]byte, syscall.CmsgSpace(descriptorsMax*4))
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
// Sending sets a deadline of its own.
func (c *Conn) SetDeadline(at time.Time) { _ = c.file.SetDeadline(at) } // refused only when closed

// Close closes the connection.
func (c *Conn) Close() { c.file.Close() }

// peer gives the process at the other end, by its id on this side.
func (c *Conn) peer() (*syscall.Ucred, error) {
	var peer *syscall.Ucred
	var err error
	if waitErr := c.raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); waitErr != nil {
		return nil, waitErr
	}
	return peer, err
}

// descriptor lends the socket to f.
func (c *Conn) descriptor(f func(fd int) error) error {
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

// accept waits for the next connection on a listening socket.
func accept(listener *os.File) (*Conn, error) {
	raw, err := listener.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var acceptErr error
	err = raw.Read(func(l uintptr) bool {
		fd, _, acceptErr = syscall.Accept4(int(l), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		return acceptErr != syscall.EAGAIN
	})
	if err != nil {
		return nil, os.ErrClosed
	}
	if acceptErr != nil {
		return nil, acceptErr
	}
	return NewConn(fd)
}
