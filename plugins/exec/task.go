package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/proctree"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/roster"
	"nomadlike/plugins/exec/supervisor"
)

const (
	tick = time.Second / proctree.TicksPerSecond
	// askPatience bounds a control request when its context does not.
	askPatience = 10 * time.Second
	// Between attempts to reach a supervisor that is alive but does not
	// answer.
	redialFirst = 10 * time.Millisecond
	redialSlow  = time.Second
	// endPatience is how long a request waits for a task to be known as
	// ended when its supervisor has just gone.
	endPatience = 5 * time.Second
)

// task is what the driver knows of one task. The watcher writes result, then
// closes ended; everything else is set before the task is handed out, but for
// the state of a recovered one, which the watcher may have to complete.
type task struct {
	home    *home
	known   *roster.Roster[*task]
	ready   *pool
	id      driver.TaskID
	state   supervisor.State
	process *osexec.Cmd // nil when an earlier agent started the supervisor
	first   *net.UnixConn
	limited bool // its supervisor runs no other task

	result driver.ExitResult
	ended  chan struct{}
}

func newTask(d *Driver, id driver.TaskID) *task {
	return &task{home: d.home, known: d.known, ready: d.ready, id: id, ended: make(chan struct{})}
}

// path is where the task's record or socket is.
func (t *task) path(suffix string) string {
	return filepath.Join(t.home.dir, string(t.id)+suffix)
}

// erase removes the task's files.
func (t *task) erase() error {
	t.home.cgroups.remove(t.state.Marker) // as a rule the supervisor has done it
	for _, suffix := range []string{supervisor.SocketSuffix, supervisor.RecordSuffix} {
		if err := os.Remove(t.path(suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// newHandle makes what the client stores. The driver's own part repeats the
// supervisor's record, in case the file is damaged.
func newHandle(id driver.TaskID, state *supervisor.State) driver.Handle {
	own, err := json.Marshal(state)
	if err != nil {
		own = nil // impossible for this type; the file has it too
	}
	handle := driver.Handle{Version: driver.HandleVersion, Driver: Name, TaskID: id, State: own}
	if state.StartedNS > 0 {
		handle.StartedAt = time.Unix(0, state.StartedNS)
	}
	return handle
}

// watch waits for the task's end, over one connection after another.
func (t *task) watch(connection *net.UnixConn) {
	life := t.known.Life()
	for pause := redialFirst; ; pause = min(pause*2, redialSlow) {
		if connection != nil {
			release := context.AfterFunc(life, func() { connection.SetDeadline(past()) })
			reply, err := readReply(connection)
			usable := release()
			if err == nil && reply.Exit != nil {
				t.end(reply.Exit, connection, usable)
				return
			}
			connection.Close()
			connection = nil
		}
		if life.Err() != nil {
			if t.process != nil {
				t.process.Process.Release()
			}
			return
		}
		if t.settle() {
			return
		}
		connection = t.redial()
		if connection == nil {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-life.Done():
			}
			timer.Stop()
		}
	}
}

// end finishes a task whose exit has come over a connection. The one that its
// supervisor was started with serves for another task.
func (t *task) end(exit *supervisor.Exit, connection *net.UnixConn, usable bool) {
	if t.process == nil || connection != t.first || !usable || t.limited || len(exit.Unkillable) > 0 {
		connection.Close()
		t.finish(exit)
		return
	}
	process := t.process
	t.process = nil // not to be collected yet
	t.finish(exit)
	t.ready.giveBack(&readySupervisor{process: process, connection: connection})
}

// redial asks a supervisor anew for the exit; nil when it cannot be reached.
func (t *task) redial() *net.UnixConn {
	connection, err := t.dial()
	if err != nil {
		return nil
	}
	if err := writeRequest(connection, &supervisor.Request{Op: supervisor.OpWait}); err != nil {
		connection.Close()
		return nil
	}
	return connection
}

// settle finishes a task whose supervisor has ended, with its exit record or
// as lost. It returns false while the supervisor lives.
func (t *task) settle() bool {
	alive := t.state.BootID == t.home.bootID && proctree.Alive(t.state.Supervisor.PID, t.state.Supervisor.StartTicks)
	// Asked in this order: the exit is recorded before the supervisor ends.
	record, err := supervisor.ReadRecord(t.home.dir, string(t.id))
	switch {
	case err == nil && record.Exit != nil:
		t.finish(record.Exit)
		return true
	case alive && t.reachable():
		return false
	case alive:
		// It has removed its socket, perhaps just now, after the record.
		if record, err := supervisor.ReadRecord(t.home.dir, string(t.id)); err == nil && record.Exit != nil {
			t.finish(record.Exit)
			return true
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.home.log.Warn("record cannot be read", logkey.TaskID, t.id, logkey.Error, err)
	}
	claim, record, err := supervisor.ClaimRecord(t.home.dir, string(t.id))
	if err == nil {
		defer claim.Release()
	}
	switch {
	case errors.Is(err, supervisor.ErrLocked):
		return false // a supervisor is starting it, or about to see that nobody wants that any more
	case err == nil && record.Exit != nil:
		t.finish(record.Exit)
		return true
	case err == nil && record.State != nil && record.State.TaskID == string(t.id) && t.state.Supervisor.PID == 0:
		t.load(driver.Handle{}) // it has started meanwhile
		return false
	case err != nil:
		t.home.log.Error("record cannot be claimed", logkey.TaskID, t.id, logkey.Error, err)
	}
	exit := &supervisor.Exit{
		Version: supervisor.RecordVersion, TaskID: string(t.id), Code: driver.CodeUnknown, Lost: true,
		StartedNS: t.state.StartedNS, FinishedNS: time.Now().UnixNano(),
	}
	exit.Killed, exit.Unkillable = t.sweep()
	if claim != nil {
		if err := claim.WriteExit(exit); err != nil {
			t.home.log.Error("exit of a lost task cannot be recorded", logkey.TaskID, t.id, logkey.Error, err)
		}
	}
	t.finish(exit)
	return true
}

// reachable reports whether the task's supervisor still has a socket for it. It
// may live on for other tasks.
func (t *task) reachable() bool {
	_, err := os.Lstat(t.path(supervisor.SocketSuffix))
	return err == nil
}

// finish makes the exit known and collects the supervisor.
func (t *task) finish(exit *supervisor.Exit) {
	t.result = exitResult(exit)
	close(t.ended)
	t.collect()
}

// exitResult says an exit record in the contract's words.
func exitResult(exit *supervisor.Exit) driver.ExitResult {
	// A task that goes on without what was killed, and succeeds, is no case
	// of it.
	result := driver.ExitResult{Code: exit.Code, Signal: signalName(exit.Signal), OOMKilled: exit.OOMKills > 0 && exit.Code != 0}
	if exit.StartedNS > 0 {
		result.StartedAt = time.Unix(0, exit.StartedNS)
	}
	if exit.FinishedNS > 0 {
		result.FinishedAt = time.Unix(0, exit.FinishedNS)
	}
	switch {
	case len(exit.Unkillable) > 0:
		pids := ""
		for _, pid := range exit.Unkillable {
			pids += " " + strconv.Itoa(pid)
		}
		result.Err = structs.NewError(structs.CodeInternal, "driver.unkillable", "count", len(exit.Unkillable), "pids", pids[1:])
	case exit.Lost:
		result.Err = structs.NewError(structs.CodeInternal, "driver.task_lost", "killed", exit.Killed)
	}
	return result
}

// ask sends one request to the supervisor and returns its answer.
func (t *task) ask(ctx context.Context, request *supervisor.Request) (*supervisor.Reply, error) {
	select {
	case <-t.ended:
		return nil, fmt.Errorf("task %s: %w", t.id, driver.ErrTaskEnded)
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	connection, err := t.dial()
	if err != nil {
		return nil, t.unreachable(ctx, err)
	}
	defer connection.Close()
	release := context.AfterFunc(ctx, func() { connection.SetDeadline(past()) })
	defer release()
	reply, err := exchange(connection, request)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("ask supervisor of task %s: %w", t.id, ctx.Err())
	case err != nil:
		return nil, t.unreachable(ctx, err)
	case reply.Failure != nil:
		return nil, fmt.Errorf("task %s: %w", t.id, startError(reply.Failure))
	default:
		return reply, nil
	}
}

// unreachable reports why a supervisor does not answer: as a rule because the
// task is just ending.
func (t *task) unreachable(ctx context.Context, cause error) error {
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	select {
	case <-t.ended:
		return fmt.Errorf("task %s: %w", t.id, driver.ErrTaskEnded)
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("reach supervisor of task %s: %w: %w", t.id, driver.ErrUnavailable, cause)
	}
}

// past is a deadline that has gone by.
func past() time.Time { return time.Unix(1, 0) }
