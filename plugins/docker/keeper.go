package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"syscall"
	"time"

	"nomadlike/plugins/docker/taskinit"
)

// keeper is the process beside a task's container, and the way through it to
// the init. An earlier agent may have started it.
type keeper struct {
	home    *home
	dir     string      // of the task
	process *osexec.Cmd // nil when this driver has not started it, or let go of it
}

// start makes the sockets and starts the process that serves them. spec
// is nil for a container that runs already; mask is then nil while it is not known.
func (k *keeper) start(record *record, spec *taskinit.Spec, mask *mask) error {
	door := filepath.Join(k.dir, taskinit.DoorDir)
	if err := os.Mkdir(door, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.Chmod(door, 0o755); err != nil { // whatever the umask was
		return err
	}
	if err := placeProgram(k.home.program, door); err != nil {
		return err
	}
	forInit, err := taskinit.Listen(door, taskinit.InitSocket, 0o666)
	if err != nil {
		return err
	}
	defer forInit.Close()
	forAgent, err := taskinit.Listen(k.dir, taskinit.ControlSocket, 0o600)
	if err != nil {
		return err
	}
	defer forAgent.Close()
	config, err := json.Marshal(taskinit.KeepConfig{
		Mask: mask.texts(), MaskLater: mask == nil || mask.withhold,
		Dir: k.dir, LogDir: record.LogDir, LogFiles: record.LogFiles, LogBytes: record.LogBytes, Spec: spec,
		Lease: record.Lease,
	})
	if err != nil {
		return err
	}
	process := &osexec.Cmd{
		Path: k.home.program, Args: []string{"task-keeper", taskinit.KeepArgument}, Dir: "/",
		Env: taskinit.Environ(), Stdin: bytes.NewReader(config), Stderr: k.home.keeperLog,
		ExtraFiles: []*os.File{forInit, forAgent},
		// A session of its own: no signal meant for the agent reaches it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := process.Start(); err != nil {
		return err
	}
	k.process = process
	return nil
}

// serves reports whether somebody serves the task's control socket.
func (k *keeper) serves() bool {
	connection, err := taskinit.Dial(k.dir, taskinit.ControlSocket)
	if err == nil {
		connection.Close()
	}
	return err == nil
}

// listen asks the keeper for news.
func (k *keeper) listen() (*taskinit.Conn, error) {
	connection, err := taskinit.Dial(k.dir, taskinit.ControlSocket)
	if err != nil {
		return nil, err
	}
	if err := connection.Send(taskinit.Ask{Op: taskinit.OpWatch}); err != nil {
		connection.Close()
		return nil, err
	}
	return connection, nil
}

// dial returns a connection to the task's init, handed through by the keeper.
func (k *keeper) dial() (*taskinit.Conn, error) {
	connection, err := taskinit.Dial(k.dir, taskinit.ControlSocket)
	if err != nil {
		return nil, err
	}
	if err := connection.Send(taskinit.Ask{Op: taskinit.OpRelay}); err != nil {
		connection.Close()
		return nil, err
	}
	return connection, nil
}

// ask sends one request to the init, and waits until it is taken.
func (k *keeper) ask(ctx context.Context, request *taskinit.Request) error {
	connection, err := k.dial()
	if err != nil {
		return err
	}
	defer connection.Close()
	release := context.AfterFunc(ctx, func() { connection.SetDeadline(time.Unix(1, 0)) })
	defer release()
	if err := connection.Send(request); err != nil {
		return err
	}
	// Sending lifts the deadline.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var reply taskinit.Reply
	if _, err := connection.Receive(&reply); err != nil {
		return err
	}
	if reply.Failure != nil {
		return reply.Failure
	}
	return nil
}

// tellMask tells a keeper that took over what to mask. One that nobody had to tell,
// or that is not there, takes no notice.
func (k *keeper) tellMask(mask *mask) error {
	connection, err := taskinit.Dial(k.dir, taskinit.ControlSocket)
	if err != nil {
		return err
	}
	defer connection.Close()
	return connection.Send(taskinit.Ask{Op: taskinit.OpMask, Mask: mask.texts(), Withhold: mask.withhold})
}

// release lets go of the keeper's process. One that has ended is
// collected; one that lives is nobody's child any more when the agent ends.
func (k *keeper) release(life context.Context) {
	if k.process == nil {
		return
	}
	process := k.process
	k.process = nil
	if life.Err() != nil {
		_ = process.Process.Release()
		return
	}
	timer := time.AfterFunc(killDelay, func() { process.Process.Kill() })
	defer timer.Stop()
	_ = process.Wait() // how it ended does not matter: its record is read
}

// kill ends a keeper that this driver has started.
func (k *keeper) kill() {
	if k.process != nil {
		_ = k.process.Process.Kill() // it may have ended by itself
		_ = k.process.Wait()         // how it ended does not matter
	}
}
