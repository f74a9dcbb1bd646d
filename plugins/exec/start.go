package exec

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
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
	l, err := d.level(ctx)
	if err != nil {
		return driver.Handle{}, fmt.Errorf("start task %s: %w", spec.ID, err)
	}
	wire, err := d.supervisorSpec(&spec, l)
	if err != nil {
		return driver.Handle{}, err
	}
	wire.Lease = lease
	t := newTask(d, spec.ID)
	if err := d.add(t); err != nil {
		return driver.Handle{}, err
	}
	if _, err := os.Lstat(t.path(supervisor.RecordSuffix)); err == nil {
		d.forget(t.id) // left by an earlier agent: to be recovered and destroyed first
		return driver.Handle{}, fmt.Errorf("start task %s: %w", t.id, driver.ErrTaskExists)
	}
	bounds := d.cgroups.bounds(spec.Resources, d.config.PIDsMax)
	if l.isolated {
		if err := d.boundDevices(bounds, &spec); err != nil {
			d.forget(t.id)
			return driver.Handle{}, fmt.Errorf("start task %s: %w", t.id, err)
		}
	}
	if err := t.launch(ctx, wire, bounds); err != nil {
		d.cgroups.remove(wire.Marker)
		d.forget(t.id)
		return driver.Handle{}, err
	}
	for _, note := range t.state.Notes {
		d.log.Warn("task runs with less than asked for", logkey.TaskID, t.id, logkey.Reason, note)
	}
	return newHandle(t.id, &t.state), nil
}

// supervisorSpec says to a supervisor what the client said to the driver.
func (d *Driver) supervisorSpec(spec *driver.TaskSpec, l level) (*supervisor.Spec, error) {
	credential, err := resolveUser(spec.User, d.root)
	if err != nil {
		return nil, err
	}
	if credential != nil {
		credential.Groups = append(credential.Groups, deviceGroups(spec)...)
	}
	if !l.isolated && d.config.Isolation == IsolationRequired {
		return nil, fmt.Errorf("isolate task %s: %s: %w", spec.ID, l.reason, driver.ErrUnsupported)
	}
	limits, err := d.ulimits(spec)
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
		Limits:     limits,
	}
	if wire.Dir == "" {
		wire.Dir = spec.TaskDir
	}
	if len(spec.Hosts) > 0 {
		wire.Hosts = strings.Join(spec.Hosts, "\n") + "\n" + othersOfNode()
	}
	if l.isolated {
		wire.Isolation = d.isolation(spec, l)
		if credential != nil && allotted(spec.User) {
			wire.Passwd = withUser(d.config.Root, credential, spec)
		}
	}
	for _, entry := range spec.WithSearchPath(deviceEnv(spec)) {
		if !strings.HasPrefix(entry, supervisor.MarkerEnv+"=") {
			wire.Env = append(wire.Env, entry)
		}
	}
	wire.Env = append(wire.Env, supervisor.MarkerEnv+"="+wire.Marker)
	return wire, nil
}

// deviceEnv is the task's environment with what its devices need, which wins.
func deviceEnv(spec *driver.TaskSpec) []string {
	devices := make(map[string]string)
	for _, reservation := range spec.Reservations {
		maps.Copy(devices, reservation.Env)
	}
	env := slices.DeleteFunc(slices.Clone(spec.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, taken := devices[name]
		return taken
	})
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		env = append(env, name+"="+devices[name])
	}
	return env
}

// launch has a supervisor start the task. On an error nothing of this start
// is left but its logs. What another start of the same id has made stays.
func (t *task) launch(ctx context.Context, spec *supervisor.Spec, bounds *cgroups.Resources) error {
	t.state.Marker, t.state.BootID = spec.Marker, t.driver.bootID
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	request := &supervisor.Request{Op: supervisor.OpStart, Protocol: supervisor.Protocol, Spec: spec}
	for {
		// New ones for each supervisor: the kernel kills at once what is started
		// into a cgroup that was killed.
		if err := t.driver.cgroups.make(spec, bounds); err != nil {
			return fmt.Errorf("start task %s: %w", t.id, err)
		}
		ready, spare, err := t.driver.takeSupervisor(spec.Limits)
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
			if !t.driver.spawnWork(func() { t.watch(ready.connection) }) {
				ready.connection.Close() // the driver was closed meanwhile: the task runs and can be recovered
			}
			t.driver.refill()
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
	if err := supervisor.Discard(t.driver.config.tasksDir(), string(t.id), t.state.Marker); err != nil {
		t.driver.log.Warn("files of an abandoned start stay", logkey.TaskID, t.id, logkey.Error, err)
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

// hostsOfNodeMax bounds how much of the node's own hosts file a task gets.
const hostsOfNodeMax = 256 << 10

// othersOfNode is what the hosts file of a task holds behind the names of its
// ranks: the node's own, so that localhost and the machines that only this file
// knows are found in the task too.
func othersOfNode() string {
	const loopback = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	file, err := os.Open("/etc/hosts")
	if err != nil {
		return loopback
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, hostsOfNodeMax+1))
	if err != nil || len(text) == 0 || len(text) > hostsOfNodeMax {
		return loopback
	}
	return string(text)
}
