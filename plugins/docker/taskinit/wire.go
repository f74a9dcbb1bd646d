package taskinit

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/driver/taskproc"
)

// Protocol numbers what init, keeper and agent say to each other.
//
//	1  2026-11-21  first
const Protocol = 1

// MessageBytesMax bounds a message: a spec with its environment is the
// longest, and both have limits in package driver.
const MessageBytesMax = 4 << 20

// sendPatience is how long a peer has for taking a message.
const sendPatience = 5 * time.Second

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

// Report is what the init tells its keeper: first a Hello with whatever is
// known already, then each of the others once.
type Report struct {
	Hello   bool              `json:"hello,omitempty"`
	Started *Started          `json:"started,omitempty"` // two descriptors come with it: the read ends of stdout and stderr
	Refused *taskproc.Failure `json:"refused,omitempty"`
	Exit    *Exit             `json:"exit,omitempty"`
}

// order is what the keeper tells the init.
type order struct {
	Spec   *Spec  `json:"spec,omitempty"`
	Caller bool   `json:"caller,omitempty"` // a descriptor comes with it: an agent's connection
	Ack    bool   `json:"ack,omitempty"`    // the exit is known: go
	Lease  *Lease `json:"lease,omitempty"`  // the newest
}

// Ask is the first message of an agent on the control socket. After
// OpWatch the keeper sends News; after OpRelay the agent talks to the init; after
// OpMask the keeper ends the connection.
type Ask struct {
	Op string `json:"op"`
	// Mask and Withhold come with OpMask: the texts that the logs do not hold, or that
	// nobody knows them any more.
	Mask     []tasklog.Masked `json:"mask,omitempty"`
	Withhold bool             `json:"withhold,omitempty"`
}

// What an agent asks of a keeper.
const (
	OpWatch = "watch"
	OpRelay = "relay"
	OpMask  = "mask"
)

// News is what a keeper tells watchers.
type News struct {
	Started *Started          `json:"started,omitempty"`
	Refused *taskproc.Failure `json:"refused,omitempty"`
	Exit    *Exit             `json:"exit,omitempty"` // the logs are complete
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
	Side    bool     `json:"side,omitempty"` // this program in the role of package taskside that Command names
}

// Reply answers a Request: nothing in it means done.
type Reply struct {
	Failure *taskproc.Failure `json:"failure,omitempty"`
	Running bool              `json:"running,omitempty"` // an exec has begun; with a terminal its descriptor comes along
	Exit    *Exit             `json:"exit,omitempty"`
}

// Conn is a connection between init, keeper and agent. One goroutine
// receives; one at a time sends.
type Conn struct{ *taskproc.Conn }

// NewConn takes over a connected Unix socket.
func NewConn(fd int) (*Conn, error) {
	inner, err := taskproc.NewConn(fd, sendPatience)
	if err != nil {
		return nil, err
	}
	return &Conn{inner}, nil
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
	data, err := taskproc.EncodeMessage(message, MessageBytesMax)
	if err != nil {
		return err
	}
	return c.Write(data, descriptors...)
}

// Receive reads the next message and returns the descriptors that came with it,
// which the caller owns. It reads not one byte more than the message.
func (c *Conn) Receive(into any) ([]int, error) {
	body, descriptors, err := c.Read(MessageBytesMax)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, into); err != nil {
		taskproc.CloseAll(descriptors)
		return nil, err
	}
	return descriptors, nil
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
