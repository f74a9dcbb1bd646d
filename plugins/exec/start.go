package exec

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

const (
	// startPatience bounds the time from starting a supervisor to its answer.
	startPatience = 30 * time.Second
	// A program that is still open for writing somewhere can not be executed.
	busyRetries = 20
	busyPause   = 5 * time.Millisecond
	// pathDefault is what a task without a PATH gets.
	pathDefault = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Start runs a task under a supervisor of its own.
func (d *Driver) Start(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
	if err := spec.Validate(); err != nil {
		return driver.Handle{}, err
	}
	wire, err := d.supervisorSpec(&spec)
	if err != nil {
		return driver.Handle{}, err
	}
	t := newTask(d, spec.ID)
	if err := d.add(t); err != nil {
		return driver.Handle{}, err
	}
	if err := os.Mkdir(t.dir, 0o700); err != nil {
		d.forget(t.id)
		if errors.Is(err, os.ErrExist) {
			err = driver.ErrTaskExists
		}
		return driver.Handle{}, fmt.Errorf("start task %s: %w", t.id, err)
	}
	if err := t.launch(ctx, wire); err != nil {
		_ = os.RemoveAll(t.dir) // the error of the start is the one to tell
		d.forget(t.id)
		return driver.Handle{}, err
	}
	for _, note := range t.state.Notes {
		d.log.Warn("task runs with less than asked for", logkey.TaskID, t.id, logkey.Reason, note)
	}
	return newHandle(t.id, t.dir, &t.state), nil
}

// supervisorSpec says to a supervisor what the client said to the driver.
func (d *Driver) supervisorSpec(spec *driver.TaskSpec) (*supervisor.Spec, error) {
	credential, err := resolveUser(spec.User, d.root)
	if err != nil {
		return nil, err
	}
	rotation := spec.LogRotation.WithDefaults()
	wire := &supervisor.Spec{
		TaskID:     string(spec.ID),
		Marker:     string(spec.ID) + ":" + rand.Text(),
		Command:    spec.Command,
		Env:        make([]string, 0, len(spec.Env)+2),
		Dir:        spec.Dir,
		Credential: credential,
		Hold:       spec.Hold,
		Hostname:   spec.Hostname,
		LogDir:     spec.LogDir,
		LogFiles:   rotation.MaxFiles,
		LogBytes:   rotation.MaxBytes,
		GraceMS:    spec.KillGrace.Milliseconds(),
	}
	if wire.Dir == "" {
		wire.Dir = spec.TaskDir
	}
	if len(spec.Hosts) > 0 {
		wire.Hosts = strings.Join(spec.Hosts, "\n") + "\n"
	}
	hasPath := false
	for _, entry := range spec.Env {
		hasPath = hasPath || strings.HasPrefix(entry, "PATH=")
		if !strings.HasPrefix(entry, supervisor.MarkerEnv+"=") {
			wire.Env = append(wire.Env, entry)
		}
	}
	if !hasPath {
		wire.Env = append(wire.Env, "PATH="+pathDefault)
	}
	wire.Env = append(wire.Env, supervisor.MarkerEnv+"="+wire.Marker)
	if d.cgroup != "" {
		wire.Cgroup = filepath.Join(d.cgroup, string(spec.ID))
	}
	return wire, nil
}

// launch starts the supervisor and has it start the task. On an error
// nothing is left but the state directory.
func (t *task) launch(ctx context.Context, spec *supervisor.Spec) error {
	t.state.Marker, t.state.Cgroup, t.state.BootID = spec.Marker, spec.Cgroup, t.driver.bootID
	connection, err := t.spawn()
	if err != nil {
		return fmt.Errorf("start supervisor of task %s: %w", t.id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	release := context.AfterFunc(ctx, func() { connection.SetDeadline(past()) })
	reply, err := exchange(connection, &supervisor.Request{Op: supervisor.OpStart, Spec: spec})
	if !release() && err == nil {
		err = ctx.Err()
	}
	switch {
	case err != nil:
		connection.Close()
		t.abandon()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("start task %s: %w%s", t.id, err, t.lastWords())
	case reply.Failure != nil:
		connection.Close()
		t.collect()
		return startError(reply.Failure)
	case reply.Started == nil:
		connection.Close()
		t.abandon()
		return fmt.Errorf("start task %s: supervisor did not say how it went", t.id)
	}
	t.state = *reply.Started
	if !t.driver.spawnWork(func() { t.watch(connection) }) {
		connection.Close() // the driver was closed meanwhile: the task runs and can be recovered
	}
	return nil
}

// spawn starts the supervisor process, with one end of a socket pair.
func (t *task) spawn() (*net.UnixConn, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "supervisor"), os.NewFile(uintptr(pair[1]), "agent")
	defer ours.Close() // net.FileConn makes a copy
	defer theirs.Close()
	log, err := os.OpenFile(filepath.Join(t.dir, supervisor.LogFileName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	connection, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		t.process = t.driver.supervisorProcess(t.dir, log, theirs)
		err := t.process.Start()
		if err == nil {
			return connection.(*net.UnixConn), nil
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

// supervisorProcess is a supervisor ready to be started.
func (d *Driver) supervisorProcess(dir string, log, connection *os.File) *osexec.Cmd {
	return &osexec.Cmd{
		Path: d.supervisor[0], Args: d.supervisor, Dir: dir,
		Env:        []string{"GOMAXPROCS=1"},
		Stdout:     log,
		Stderr:     log,
		ExtraFiles: []*os.File{connection}, // supervisor.ConnectionFD
		// A session of its own: no signal meant for the agent reaches it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
}

// abandon ends a supervisor that did not answer, and whatever it started.
func (t *task) abandon() {
	_ = t.process.Process.Kill() // it may have ended by itself
	t.collect()
	t.sweep()
}

// collect waits for the supervisor process, which is about to end.
func (t *task) collect() {
	if t.process == nil {
		return
	}
	timer := time.AfterFunc(startPatience, func() { t.process.Process.Kill() })
	defer timer.Stop()
	_ = t.process.Wait() // how it ended is told by its records
}

// lastWords gives the end of what a supervisor has written to its own log.
func (t *task) lastWords() string {
	const lastBytes = 512
	text, err := os.ReadFile(filepath.Join(t.dir, supervisor.LogFileName))
	if err != nil || len(text) == 0 {
		return ""
	}
	return ": " + strings.TrimSpace(string(text[max(len(text)-lastBytes, 0):]))
}

// startError turns a supervisor's refusal into the error that the client
// expects: the command's fault or the node's.
func startError(failure *supervisor.Failure) error {
	switch failure.Kind {
	case supervisor.FailEnded:
		return driver.ErrTaskEnded
	case supervisor.FailBadRequest, supervisor.FailBusy:
		return fmt.Errorf("ask supervisor: %w", failure)
	}
	code := structs.CodeInternal
	if failure.ExitCode != 0 {
		code = structs.CodeInvalid
	}
	told := &structs.Error{Code: code, ID: "driver." + failure.Kind, Params: failure.Params}
	if failure.ExitCode == 0 {
		return told
	}
	return &driver.StartError{ExitCode: failure.ExitCode, Err: told}
}
