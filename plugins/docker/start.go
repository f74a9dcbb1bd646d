package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
)

const (
	// startPatience bounds the time from the engine's start of a container to
	// the init's word about the command.
	startPatience = time.Minute
	// cleanPatience bounds what is done about a start that went wrong.
	cleanPatience = 30 * time.Second
	recordFile    = "task.json"
)

// record is what a task's directory keeps for the next agent. There is
// nothing of the job's environment in it.
type record struct {
	Version     int             `json:"version"`
	TaskID      driver.TaskID   `json:"task_id"`
	ContainerID string          `json:"container_id"`
	Image       driver.Prepared `json:"image"`
	Ways        []string        `json:"ways,omitempty"` // how devices came into the container
	LogDir      string          `json:"log_dir"`
	LogFiles    int             `json:"log_files"`
	LogBytes    int64           `json:"log_bytes"`
	StartedNS   int64           `json:"started_ns,omitempty"`
	InitPID     int             `json:"init_pid,omitempty"`
	InitTicks   int64           `json:"init_ticks,omitempty"`
	Lease       string          `json:"lease,omitempty"` // file of the node's lease, for a task that ends with it
}

const recordVersion = 1

var _ driver.Leaser = (*Driver)(nil) // the client asks; a strict job must not run without

// Start runs a task in a container of its own.
func (d *Driver) Start(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
	return d.StartLeased(ctx, spec, "")
}

// StartLeased implements driver.Leaser: keeper and init look at the lease; ""
// is none.
func (d *Driver) StartLeased(ctx context.Context, spec driver.TaskSpec, lease string) (driver.Handle, error) {
	if err := d.startable(&spec); err != nil {
		return driver.Handle{}, err
	}
	t := newTask(d, spec.ID)
	if err := d.add(t); err != nil {
		return driver.Handle{}, err
	}
	if err := os.Mkdir(t.dir(), 0o700); err != nil {
		d.forget(t.id)
		if errors.Is(err, os.ErrExist) { // left by an earlier agent: to be recovered and destroyed first
			err = driver.ErrTaskExists
		}
		return driver.Handle{}, fmt.Errorf("start task %s: %w", t.id, err)
	}
	if err := t.launch(ctx, &spec, lease); err != nil {
		t.discard()
		d.forget(t.id)
		return driver.Handle{}, err
	}
	if !d.spawnWork(t.watch) {
		t.releaseKeeper() // the driver was closed meanwhile: the task runs and can be recovered
	}
	return t.handle(), nil
}

// startable checks what can be checked without the engine.
func (d *Driver) startable(spec *driver.TaskSpec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	if spec.Container == nil {
		return structs.NewError(structs.CodeInvalid, "driver.bad_spec", "field", "container", "problem", "the docker driver needs an image")
	}
	if d.program == "" {
		return structs.NewError(structs.CodeInternal, "docker.no_program")
	}
	return nil
}

// launch takes a task from its spec to a running command.
func (t *task) launch(ctx context.Context, spec *driver.TaskSpec, lease string) error {
	d := t.driver
	if err := d.learn(ctx); err != nil {
		return engineError(err)
	}
	image, prepared, err := d.prepare(ctx, spec.Container, func(driver.Progress) {})
	if err != nil {
		return err
	}
	d.mu.Lock()
	facts, limits, mounter, info := d.mu.facts, d.mu.limits, d.mu.mounter, d.mu.info
	d.mu.Unlock()
	if concern := runtimeConcern(info.Runc); concern != "" && d.config.Policy.SafeRuntimeOnly {
		return structs.NewError(structs.CodeUnavailable, "docker.runtime_unsafe", "concern", concern)
	}
	mounts, release, err := mounter.stage(t.id, spec.TaskDir, spec.Mounts)
	defer release()
	if err != nil {
		return err
	}
	in := inputs{
		Config: &d.config, Spec: spec, Image: &image, Facts: facts, Limits: limits, Mounts: mounts,
		Name: containerName(spec.ID), Door: filepath.Join(t.dir(), taskinit.DoorDir),
	}
	if in.Hosts, err = t.writeHosts(spec, d.config.Network); err != nil {
		return err
	}
	out, err := settings(in)
	if err != nil {
		return err
	}
	rotation := spec.LogRotation.WithDefaults()
	t.record = record{
		Version: recordVersion, TaskID: t.id, Image: prepared, Ways: out.Ways,
		LogDir: spec.LogDir, LogFiles: rotation.MaxFiles, LogBytes: rotation.MaxBytes,
		Lease: lease,
	}
	if err := t.startKeeper(&out.Task); err != nil {
		return fmt.Errorf("start keeper of task %s: %w", t.id, err)
	}
	news, err := t.listen()
	if err != nil {
		return fmt.Errorf("reach keeper of task %s: %w", t.id, err)
	}
	if err := t.makeContainer(ctx, spec, &out.Container); err != nil {
		news.Close()
		return err
	}
	if err := t.awaitStart(ctx, news); err != nil {
		news.Close()
		return err
	}
	t.news = news
	return nil
}

// containerName is made of the task's id, for people, and some letters that
// no other container has.
func containerName(id driver.TaskID) string {
	return "nomadlike-" + string(id) + "-" + strings.ToLower(rand.Text()[:8])
}

// hostsOfNodeMax bounds how much of the node's own hosts file a task gets.
const hostsOfNodeMax = 1 << 20

// loopbackHosts is what every hosts file begins with when the node's is not
// the task's.
const loopbackHosts = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"

// writeHosts makes the task's /etc/hosts, unless a network of the engine's
// resolves the names. The names of the ranks come first: nothing that the
// node calls the same may hide them. On the node's own network the node's
// names follow, as the engine would give them.
func (t *task) writeHosts(spec *driver.TaskSpec, network string) (string, error) {
	network = orText(spec.Container.Network, network)
	if len(spec.Hosts) == 0 || network == driver.NetworkPrivate {
		return "", nil
	}
	text := strings.Join(spec.Hosts, "\n") + "\n"
	others := []byte(loopbackHosts)
	if network == driver.NetworkHost {
		if file, err := os.Open("/etc/hosts"); err == nil {
			others, err = io.ReadAll(io.LimitReader(file, hostsOfNodeMax))
			file.Close()
			if err != nil || len(others) == 0 {
				others = []byte(loopbackHosts)
			}
		}
	}
	path := filepath.Join(t.dir(), "hosts")
	if err := os.WriteFile(path, append([]byte(text), others...), 0o644); err != nil {
		return "", fmt.Errorf("write hosts of task %s: %w", t.id, err)
	}
	return path, nil
}

// startKeeper makes the sockets and starts the process that serves them. spec
// is nil for a container that runs already.
func (t *task) startKeeper(spec *taskinit.Spec) error {
	door := filepath.Join(t.dir(), taskinit.DoorDir)
	if err := os.Mkdir(door, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.Chmod(door, 0o755); err != nil { // whatever the umask was
		return err
	}
	if err := placeProgram(t.driver.program, door); err != nil {
		return err
	}
	forInit, err := taskinit.Listen(door, taskinit.InitSocket, 0o666)
	if err != nil {
		return err
	}
	defer forInit.Close()
	forAgent, err := taskinit.Listen(t.dir(), taskinit.ControlSocket, 0o600)
	if err != nil {
		return err
	}
	defer forAgent.Close()
	config, err := json.Marshal(taskinit.KeepConfig{
		Dir: t.dir(), LogDir: t.record.LogDir, LogFiles: t.record.LogFiles, LogBytes: t.record.LogBytes, Spec: spec,
		Lease: t.record.Lease,
	})
	if err != nil {
		return err
	}
	process := &osexec.Cmd{
		Path: t.driver.program, Args: []string{"task-keeper", taskinit.KeepArgument}, Dir: "/",
		Env: taskinit.Environ(), Stdin: bytes.NewReader(config), Stderr: t.driver.keeperLog,
		ExtraFiles: []*os.File{forInit, forAgent},
		// A session of its own: no signal meant for the agent reaches it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := process.Start(); err != nil {
		return err
	}
	t.keeper = process
	return nil
}

// makeContainer makes and starts the container, and records it before the
// start.
func (t *task) makeContainer(ctx context.Context, spec *driver.TaskSpec, c *container) error {
	d := t.driver
	if c.Network == d.config.PrivateNetwork {
		d.network.Lock()
		err := d.engine.ensureNetwork(ctx, c.Network)
		d.network.Unlock()
		if err != nil {
			return engineError(err)
		}
	}
	if err := d.engine.starts.enter(ctx); err != nil {
		return fmt.Errorf("start task %s: %w", t.id, err)
	}
	defer d.engine.starts.leave()
	id, err := d.engine.create(ctx, c)
	if err != nil {
		return startRefusal(err, c)
	}
	t.record.ContainerID = id
	if err := t.writeRecord(); err != nil {
		return err
	}
	if err := t.giveTaskDir(ctx, spec, c.User); err != nil {
		return err
	}
	if err := d.engine.start(ctx, id); err != nil {
		return startRefusal(err, c)
	}
	return nil
}

// awaitStart waits for the init's word.
func (t *task) awaitStart(ctx context.Context, news *taskinit.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	release := context.AfterFunc(ctx, func() { news.SetDeadline(time.Unix(1, 0)) })
	defer release()
	ended := make(chan struct{})
	defer close(ended)
	go t.unblock(ctx, news, ended)
	for {
		var told taskinit.News
		if _, err := news.Receive(&told); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("start task %s: %w", t.id, ctx.Err())
			}
			cause := t.driver.engine.complaints(ctx, t.record.ContainerID)
			return structs.NewError(structs.CodeInternal, "docker.init_failed", "cause", orText(cause, err.Error()))
		}
		switch {
		case told.Refused != nil:
			return failureError(told.Refused)
		case told.Started != nil:
			t.record.StartedNS, t.record.InitPID, t.record.InitTicks = told.Started.StartedNS, told.Started.InitPID, told.Started.InitTicks
			return t.writeRecord()
		}
	}
}

// unblock ends the wait for a container that has ended before its init said
// anything: the image may be for another kind of processor.
func (t *task) unblock(ctx context.Context, news *taskinit.Conn, over <-chan struct{}) {
	const firstLook, nextLooks = 3 * time.Second, time.Second
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
			state, err := t.driver.engine.inspect(ctx, t.record.ContainerID)
			if err == nil && !state.Running && (!state.Created || t.doubtful) {
				news.SetDeadline(time.Unix(1, 0))
				return
			}
			timer.Reset(nextLooks)
		}
	}
}

// discard removes what a start has made that went wrong.
func (t *task) discard() {
	if t.record.ContainerID != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.driver.life), 2*cleanPatience)
		defer cancel()
		if err := t.removeContainer(ctx, cleanPatience); err != nil {
			t.driver.log.Warn("container of a failed start stays", logkey.TaskID, t.id, logkey.Error, err)
			return // List finds it, and its directory
		}
	}
	if t.keeper != nil {
		_ = t.keeper.Process.Kill() // it may have ended by itself
		_ = t.keeper.Wait()         // how it ended does not matter
	}
	if err := os.RemoveAll(t.dir()); err != nil {
		t.driver.log.Warn("files of a failed start stay", logkey.TaskID, t.id, logkey.Error, err)
	}
}

// writeRecord keeps the record in the task's directory.
func (t *task) writeRecord() error {
	body, err := json.Marshal(&t.record)
	if err != nil {
		return fmt.Errorf("record task %s: %w", t.id, err)
	}
	path := filepath.Join(t.dir(), recordFile)
	if err := os.WriteFile(path+".new", body, 0o600); err != nil {
		return fmt.Errorf("record task %s: %w", t.id, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("record task %s: %w", t.id, err)
	}
	return nil
}

// engineError says to people that the engine does not do its work.
func engineError(err error) error {
	var known *structs.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return structs.NewError(structs.CodeUnavailable, "docker.engine_failed", "cause", err).Because(err)
}

// startRefusal finds what an engine means by an error of making or starting a
// container, which it says in text only.
func startRefusal(err error, c *container) error {
	text := err.Error()
	says := func(parts ...string) bool {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				return false
			}
		}
		return true
	}
	switch {
	case says("unable to find user"), says("unable to find group"), says("no matching entries in passwd"):
		return &driver.StartError{ExitCode: driver.CodeNotExecutable, Err: structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", c.User)}
	case says("rlimit", "operation not permitted"), says("error setting rlimit"):
		return structs.NewError(structs.CodeForbidden, "docker.limit_refused", "cause", lastClause(text)).Because(err)
	case says("could not select device driver"), says("Unknown runtime specified"), says("unknown or invalid runtime"),
		says("error gathering device information"), says("unresolvable CDI devices"):
		return structs.NewError(structs.CodeForbidden, "docker.device_refused", "cause", lastClause(text)).Because(err)
	case says("bind source path does not exist"):
		return structs.NewError(structs.CodeUnavailable, "docker.mounts_unseen", "cause", lastClause(text)).Because(err)
	case says("pids.max"), says("Minimum memory limit"), says("Range of CPUs"):
		return structs.NewError(structs.CodeInvalid, "docker.limit_refused", "cause", lastClause(text)).Because(err)
	}
	if permanent(err) {
		return structs.NewError(structs.CodeForbidden, "docker.container_refused", "cause", lastClause(text)).Because(err)
	}
	return engineError(err)
}

// permanent reports whether an engine would refuse the same container again: it
// calls the request wrong, or its runtime could not make a container of it for
// no lack of anything that comes back.
func permanent(err error) bool {
	if errdefs.IsInvalidArgument(err) || errdefs.IsPermissionDenied(err) {
		return true
	}
	text := err.Error()
	if !strings.Contains(text, "OCI runtime create failed") && !strings.Contains(text, "runtime create failed") {
		return false
	}
	return !slices.ContainsFunc([]string{
		"no space left", "cannot allocate memory", "temporarily unavailable", "too many open files", "timed out", "timeout",
		"interrupted", "device or resource busy", "context canceled",
	}, func(passing string) bool { return strings.Contains(text, passing) })
}

// lastClause shortens an engine's error for people.
func lastClause(text string) string {
	const textMax = 300
	if _, rest, ok := strings.Cut(text, "Error response from daemon: "); ok {
		text = rest
	}
	text = strings.TrimSuffix(strings.TrimSpace(text), ": unknown")
	if len(text) > textMax {
		text = "…" + text[len(text)-textMax:]
	}
	return text
}
