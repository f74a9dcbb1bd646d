package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	// Masked are the secrets of which the logs hold nothing; Unsure: there may be some.
	Masked []maskedSecret `json:"masked,omitempty"`
	Unsure bool           `json:"unsure,omitempty"`
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
	if err := d.known.Add(t.id, t); err != nil {
		return driver.Handle{}, err
	}
	if err := os.Mkdir(t.dir(), 0o700); err != nil {
		d.known.Forget(t.id)
		if errors.Is(err, os.ErrExist) { // left by an earlier agent: to be recovered and destroyed first
			err = driver.ErrTaskExists
		}
		return driver.Handle{}, fmt.Errorf("start task %s: %w", t.id, err)
	}
	if err := d.starter.launch(ctx, t, &spec, lease); err != nil {
		t.discard()
		d.known.Forget(t.id)
		return driver.Handle{}, err
	}
	if !d.known.Go(t.watch) {
		t.keeper.release(t.known.Life()) // the driver was closed meanwhile: the task runs and can be recovered
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
	if d.home.program == "" {
		return structs.NewError(structs.CodeInternal, "docker.no_program")
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
			cause := t.home.engine.complaints(ctx, t.record.ContainerID)
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
			state, err := t.home.engine.inspect(ctx, t.record.ContainerID)
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.known.Life()), 2*cleanPatience)
		defer cancel()
		if err := t.box().remove(ctx, cleanPatience, t.over()); err != nil {
			t.home.log.Warn("container of a failed start stays", logkey.TaskID, t.id, logkey.Error, err)
			return // List finds it, and its directory
		}
	}
	t.keeper.kill()
	if err := os.RemoveAll(t.dir()); err != nil {
		t.home.log.Warn("files of a failed start stay", logkey.TaskID, t.id, logkey.Error, err)
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
