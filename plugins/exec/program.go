package exec

import (
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"syscall"
	"time"

	"nomadlike/plugins/exec/supervisor"
)

// A program that is still open for writing somewhere cannot be executed.
const (
	busyRetries = 20
	busyPause   = 5 * time.Millisecond
)

// program is the supervisor's: how it is started.
type program struct {
	argv []string
	dir  string   // in which it works
	log  *os.File // for its stderr
	root bool     // this process is root
}

// start starts a supervisor process with one end of a socket pair, in
// a user namespace of its own if asked for.
func (p *program) start(users bool) (*readySupervisor, error) {
	// A session of its own: no signal meant for the agent reaches it.
	attributes := &syscall.SysProcAttr{Setsid: true}
	if users {
		if err := userNamespace(attributes, p.root); err != nil {
			return nil, err
		}
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "supervisor"), os.NewFile(uintptr(pair[1]), "agent")
	defer ours.Close() // net.FileConn makes a copy
	defer theirs.Close()
	connection, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		process := &osexec.Cmd{
			Path: p.argv[0], Args: p.argv, Dir: p.dir,
			Env:         supervisor.Environ(),
			Stderr:      p.log,
			ExtraFiles:  []*os.File{theirs}, // supervisor.ConnectionFD
			SysProcAttr: attributes,
		}
		err := process.Start()
		if err == nil {
			return &readySupervisor{process: process, connection: connection.(*net.UnixConn)}, nil
		}
		// The program was written a moment ago, and another thread's fork
		// holds the descriptor for the moment before its exec.
		if !errors.Is(err, syscall.ETXTBSY) || try == busyRetries {
			connection.Close()
			return nil, err
		}
		time.Sleep(busyPause)
	}
}
