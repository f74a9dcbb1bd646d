package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/opencontainers/cgroups"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/taskproc"
	"nomadlike/plugins/exec/supervisor"
)

const (
	// startPatience bounds the time from starting a supervisor to its answer.
	startPatience = 30 * time.Second
)

// Start runs a task under a supervisor of its own.
func (d *Driver) Start(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
	return d.StartLeased(ctx, spec, "")
}

// StartLeased implements driver.Leaser: the supervisor looks at the lease; ""
// for a task that does not end with it.
func (d *Driver) StartLeased(ctx context.Context, spec driver.TaskSpec, lease string) (driver.Handle, error) {
	if err := spec.Validate(); err != nil {
		return driver.Handle{}, err
	}
	l, err := d.isolator.level(ctx)
	if err != nil {
		return driver.Handle{}, fmt.Errorf("start task %s: %w", spec.ID, err)
	}
	wire, err := d.translate.wire(&spec, l)
	if err != nil {
		return driver.Handle{}, err
	}
	wire.Lease = lease
	t := newTask(d, spec.ID)
	if err := d.known.Add(t.id, t); err != nil {
		return driver.Handle{}, err
	}
	if _, err := os.Lstat(t.path(supervisor.RecordSuffix)); err == nil {
		d.known.Forget(t.id) // left by an earlier agent: to be recovered and destroyed first
		return driver.Handle{}, fmt.Errorf("start task %s: %w", t.id, driver.ErrTaskExists)
	}
	bounds, err := d.translate.bounds(&spec, l)
	if err != nil {
		d.known.Forget(t.id)
		return driver.Handle{}, fmt.Errorf("start task %s: %w", t.id, err)
	}
	if err := t.launch(ctx, wire, bounds); err != nil {
		d.home.cgroups.remove(wire.Marker)
		d.known.Forget(t.id)
		return driver.Handle{}, err
	}
	for _, note := range t.state.Notes {
		d.log.Warn("task runs with less than asked for", logkey.TaskID, t.id, logkey.Reason, note)
	}
	return newHandle(t.id, &t.state), nil
}

// launch has a supervisor start the task. On an error nothing of this start
// is left but its logs. What another start of the same id has made stays.
func (t *task) launch(ctx context.Context, spec *supervisor.Spec, bounds *cgroups.Resources) error {
	t.state.Marker, t.state.BootID = spec.Marker, t.home.bootID
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	request := &supervisor.Request{Op: supervisor.OpStart, Protocol: supervisor.Protocol, Spec: spec}
	for {
		// New ones for each supervisor: the kernel kills at once what is started
		// into a cgroup that was killed.
		if err := t.home.cgroups.make(spec, bounds); err != nil {
			return fmt.Errorf("start task %s: %w", t.id, err)
		}
		ready, spare, err := t.ready.take(spec.Limits)
		if err != nil {
			return fmt.Errorf("start supervisor of task %s: %w", t.id, err)
		}
		t.limited = len(spec.Limits) > 0
		t.process, t.first = ready.process, ready.connection
		release := context.AfterFunc(ctx, func() { ready.connection.SetDeadline(past()) })
		reply, err := exchange(ready.connection, request)
		if !release() && err == nil {
			err = ctx.Err()
		}
		if err == nil && reply.Failure == nil && reply.Started == nil {
			err = errors.New("supervisor did not say how it went")
		}
		switch {
		case err == nil && reply.Started != nil:
			t.state = *reply.Started
			if !t.known.Go(func() { t.watch(ready.connection) }) {
				ready.connection.Close() // the driver was closed meanwhile: the task runs and can be recovered
			}
			t.ready.refill()
			return nil
		case err == nil:
			ready.connection.Close()
			t.collect()
			return startError(reply.Failure)
		}
		ready.connection.Close()
		t.abandon()
		if ctx.Err() != nil {
			return fmt.Errorf("start task %s: %w", t.id, ctx.Err())
		}
		if !spare {
			return fmt.Errorf("start task %s: %w", t.id, err)
		}
		// One that was kept ready may have been killed since: try a new one.
	}
}

// abandon ends a supervisor that did not answer, and removes whatever it
// started and made. One that answers does so itself.
func (t *task) abandon() {
	_ = t.process.Process.Kill() // it may have ended by itself
	t.collect()
	t.sweep()
	if err := supervisor.Discard(t.home.dir, string(t.id), t.state.Marker); err != nil {
		t.home.log.Warn("files of an abandoned start stay", logkey.TaskID, t.id, logkey.Error, err)
	}
}

// collect waits for the supervisor process, which is about to end.
func (t *task) collect() {
	if t.process == nil {
		return
	}
	timer := time.AfterFunc(startPatience, func() { t.process.Process.Kill() })
	defer timer.Stop()
	_ = t.process.Wait() // how it ended is told by its record
}

// startError turns a supervisor's refusal into the error that the client
// expects: the command's fault or the node's.
func startError(failure *taskproc.Failure) error {
	switch failure.Kind {
	case taskproc.FailEnded:
		return driver.ErrTaskEnded
	case taskproc.FailExists:
		return fmt.Errorf("%w: %w", driver.ErrTaskExists, failure)
	case taskproc.FailBadRequest, taskproc.FailBusy:
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
