package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/roster"
	"nomadlike/plugins/driver/taskproc"
)

const (
	// askPatience bounds a request to the init when its context does not.
	askPatience = 10 * time.Second
	// killDelay is how long after the grace the engine is asked to kill a
	// container whose init did not end it.
	killDelay = 2 * time.Second
	// thawDelay is how long an init may take to answer before is looked whether
	// it is paused.
	thawDelay = 500 * time.Millisecond
	// endPatience is how long the engine may take to see a container's end.
	endPatience = 10 * time.Second
	// refusalPatience is how long it may take for a container whose start went
	// wrong: as a rule its init says why, and ends.
	refusalPatience = time.Second
	// recordPatience is how long a living keeper may take to record an end that
	// the engine has seen.
	recordPatience = time.Second
	// Between looks at a task whose keeper or engine does not answer.
	lookFirst = 20 * time.Millisecond
	lookSlow  = time.Second
)

// task is what the driver knows of one task. The watcher writes result, then
// closes ended; the rest is set before the task is handed out, but for what
// only the watcher uses.
type task struct {
	home   *home
	known  *roster.Roster[*task]
	id     driver.TaskID
	record record
	keeper *keeper
	news   *taskinit.Conn // from the keeper, nil: to be made
	paused atomic.Bool    // by us, or found so
	// stray is a container whose door does not lead here: nothing but its
	// labels is known, and only the engine can act on it.
	stray bool
	// doubtful is a keeper that was started late, or by an earlier agent: the
	// init that it waits for may be dead, or never have lived. Only the
	// watcher uses it.
	doubtful bool

	masking struct {
		sync.Mutex       // also held while a keeper is started: it is told exactly once
		mask       *mask // nil: not known yet
	}

	result driver.ExitResult
	ended  chan struct{}
}

func newTask(d *Driver, id driver.TaskID) *task {
	t := &task{home: d.home, known: d.known, id: id, ended: make(chan struct{})}
	t.keeper = &keeper{home: d.home, dir: t.dir()}
	return t
}

// box is the task's container.
func (t *task) box() box { return box{engine: t.home.engine, id: t.record.ContainerID} }

func (t *task) dir() string { return filepath.Join(t.home.dir, string(t.id)) }

func (t *task) over() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// handle makes what the client stores.
func (t *task) handle() driver.Handle {
	state, err := json.Marshal(&t.record)
	if err != nil {
		state = nil // impossible for this type; the file has it too
	}
	h := driver.Handle{Version: driver.HandleVersion, Driver: Name, TaskID: t.id, State: state}
	if t.record.StartedNS > 0 {
		h.StartedAt = time.Unix(0, t.record.StartedNS)
	}
	return h
}

// watch follows the task to its end: the keeper's news, a new keeper when the
// old one has died, and what the engine knows when there is nothing else.
func (t *task) watch() {
	life := t.known.Life()
	defer func() { t.keeper.release(t.known.Life()) }()
	if t.stray {
		t.watchStray()
		return
	}
	for pause := lookFirst; ; pause = min(pause*2, lookSlow) {
		if t.news != nil {
			exit := t.await(t.news)
			t.news.Close()
			t.news = nil
			if exit != nil {
				t.finish(exit)
				return
			}
			pause = lookFirst
		}
		if life.Err() != nil || t.settle() {
			return
		}
		var err error
		if t.news, err = t.keeper.listen(); err != nil {
			t.news = nil
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-life.Done():
			}
			timer.Stop()
		}
	}
}

// watchStray follows a container by what the engine says.
func (t *task) watchStray() {
	for pause := lookFirst; ; pause = min(pause*2, lookSlow) {
		state, err := t.home.engine.inspect(t.known.Life(), t.record.ContainerID)
		switch {
		case t.known.Life().Err() != nil:
			return
		case errors.Is(err, errNotFound), err == nil && state.Created:
			t.lose("docker.container_gone")
			return
		case err == nil && !state.Running:
			t.settleByEngine(&state)
			return
		case err == nil:
			_ = t.home.engine.awaitEnd(t.known.Life(), t.record.ContainerID) // an engine that is away is asked again
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-t.known.Life().Done():
		}
		timer.Stop()
	}
}

// await reads the keeper's news until the exit, nil when the keeper is gone.
func (t *task) await(news *taskinit.Conn) *taskinit.Exit {
	release := context.AfterFunc(t.known.Life(), func() { news.SetDeadline(time.Unix(1, 0)) })
	defer release()
	over := make(chan struct{})
	defer close(over)
	if t.doubtful {
		t.known.Go(func() { t.unblock(t.known.Life(), news, over) })
	}
	for {
		var told taskinit.News
		if _, err := news.Receive(&told); err != nil {
			return nil
		}
		if told.Exit != nil {
			return told.Exit
		}
	}
}

// settle looks at a task that has no keeper to tell about it: it ends the
// task when that is over, and starts a keeper when it is not. It tells
// whether the task is over.
func (t *task) settle() bool {
	if exit, err := taskinit.ReadExit(t.dir()); err == nil {
		t.finish(exit)
		return true
	}
	kept := t.keeper.serves()
	if kept && !t.doubtful {
		return false
	}
	ctx, cancel := context.WithTimeout(t.known.Life(), askPatience)
	defer cancel()
	state, err := t.home.engine.inspect(ctx, t.record.ContainerID)
	// The keeper may have recorded the end since, or be about to.
	if exit := t.awaitRecord(kept && err == nil && !state.Running); exit != nil {
		t.finish(exit)
		return true
	}
	switch {
	case errors.Is(err, errNotFound), err == nil && state.Created: // never started
		t.lose("docker.container_gone")
		return true
	case err != nil:
		return false // the engine is away: both may come back
	case !state.Running:
		t.settleByEngine(&state)
		return true
	}
	t.doubtful = true
	if kept {
		return false
	}
	t.keeper.release(t.known.Life())
	t.home.log.Warn("task had no keeper, gets another one", logkey.TaskID, t.id)
	if err := t.keep(); err != nil {
		t.home.log.Error("keeper cannot be started", logkey.TaskID, t.id, logkey.Error, err)
	}
	return false
}

// awaitRecord returns a recorded exit; patient, it waits a little for a keeper
// that is writing one.
func (t *task) awaitRecord(patient bool) *taskinit.Exit {
	for waited := time.Duration(0); ; waited += lookFirst {
		exit, err := taskinit.ReadExit(t.dir())
		if err == nil {
			return exit
		}
		if !patient || waited >= recordPatience {
			return nil
		}
		time.Sleep(lookFirst)
	}
}

// settleByEngine ends a task whose keeper died with or before it, by what the
// engine says. The init exits as the command did.
func (t *task) settleByEngine(state *containerState) {
	exit := &taskinit.Exit{Code: state.ExitCode, StartedNS: state.StartedNS, FinishedNS: state.FinishedNS}
	const signalBase, signalLast = 128, 64
	if n := state.ExitCode - signalBase; n > 0 && n <= signalLast {
		exit.Signal = n
	}
	// An init that was killed cannot have told; one that ended had nobody
	// to tell, and its code is the command's.
	exit.Vanished = exit.Signal == int(syscall.SIGKILL)
	t.note(exit)
	t.finish(exit)
}

// lose ends a task of which nothing is left to ask.
func (t *task) lose(id string) {
	at := time.Now()
	t.note(&taskinit.Exit{Code: driver.CodeUnknown, Vanished: true, StartedNS: t.record.StartedNS, FinishedNS: at.UnixNano()})
	t.result = driver.ExitResult{
		Code: driver.CodeUnknown, FinishedAt: at,
		Err: structs.NewError(structs.CodeUnavailable, id),
	}
	if t.record.StartedNS > 0 {
		t.result.StartedAt = time.Unix(0, t.record.StartedNS)
	}
	close(t.ended)
}

// note records an exit that no keeper has recorded.
func (t *task) note(exit *taskinit.Exit) {
	if err := taskinit.WriteExit(t.dir(), exit); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.home.log.Warn("exit is not recorded", logkey.TaskID, t.id, logkey.Error, err)
	}
}

// finish makes an exit known.
func (t *task) finish(exit *taskinit.Exit) {
	oom := exit.OOMKills > 0
	if exit.Vanished {
		// Nobody but the engine can say why process 1 died.
		ctx, cancel := context.WithTimeout(t.known.Life(), endPatience)
		if err := t.home.engine.awaitEnd(ctx, t.record.ContainerID); err == nil {
			if state, err := t.home.engine.inspect(ctx, t.record.ContainerID); err == nil {
				oom = oom || state.OOMKilled
			}
		}
		cancel()
	}
	if exit.Outside && !exit.Stopped {
		ctx, cancel := context.WithTimeout(t.known.Life(), endPatience)
		exit.Outside = !t.box().stoppedItself(ctx, time.Unix(0, t.record.StartedNS))
		cancel()
	}
	t.result = exitResult(exit, oom)
	close(t.ended)
}

// exitResult says an exit in the contract's words. Pure.
func exitResult(exit *taskinit.Exit, oom bool) driver.ExitResult {
	result := driver.ExitResult{Code: exit.Code, Signal: signalName(exit.Signal)}
	if exit.StartedNS > 0 {
		result.StartedAt = time.Unix(0, exit.StartedNS)
	}
	if exit.FinishedNS > 0 {
		result.FinishedAt = time.Unix(0, exit.FinishedNS)
	}
	// A task that was asked to stop, or ended well, has not failed for memory.
	result.OOMKilled = oom && !exit.Stopped && exit.Code != 0
	switch {
	case len(exit.Unkillable) > 0:
		pids := strings.Trim(fmt.Sprint(exit.Unkillable), "[]")
		result.Err = structs.NewError(structs.CodeInternal, "driver.unkillable", "count", len(exit.Unkillable), "pids", pids)
	case result.OOMKilled:
	case exit.Vanished:
		result.Err = structs.NewError(structs.CodeUnavailable, "docker.killed_outside")
	case exit.Outside && !exit.Stopped:
		result.Err = structs.NewError(structs.CodeUnavailable, "docker.stopped_outside")
	}
	return result
}

// ask sends one request to the init and waits until it is taken.
func (t *task) ask(ctx context.Context, request *taskinit.Request) error {
	if t.over() {
		return fmt.Errorf("task %s: %w", t.id, driver.ErrTaskEnded)
	}
	if t.stray {
		return fmt.Errorf("task %s is a stray: %w", t.id, driver.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	for pause := lookFirst; ; pause = min(pause*2, lookSlow) {
		err := t.keeper.ask(ctx, request)
		var failure *taskproc.Failure
		switch {
		case err == nil:
			return nil
		case errors.As(err, &failure):
			return fmt.Errorf("task %s: %w", t.id, failureError(failure))
		}
		// The task is just ending, or gets another keeper.
		timer := time.NewTimer(pause)
		select {
		case <-t.ended:
			timer.Stop()
			return fmt.Errorf("task %s: %w", t.id, driver.ErrTaskEnded)
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("reach init of task %s: %w: %w", t.id, driver.ErrUnavailable, err)
		case <-timer.C:
		}
	}
}

// stop lets the init end the task, and the engine when that does not help.
func (t *task) stop(ctx context.Context, signal syscall.Signal, grace time.Duration) error {
	if t.over() {
		return nil
	}
	if t.paused.Load() {
		if err := t.freeze(ctx, false); err != nil {
			return err
		}
	}
	if t.stray {
		if err := t.home.engine.kill(ctx, t.record.ContainerID, driver.SignalName(signal)); err != nil && grace > 0 {
			return engineError(err)
		}
		t.known.Go(func() { t.killLater(grace) })
		return nil
	}
	asked := make(chan struct{})
	t.known.Go(func() { t.box().thaw(t.known.Life(), asked) })
	err := t.ask(ctx, &taskinit.Request{Op: taskinit.OpStop, Signal: int(signal), GraceMS: grace.Milliseconds()})
	close(asked)
	if errors.Is(err, driver.ErrTaskEnded) {
		return nil
	}
	if err != nil && grace > 0 {
		return err
	}
	delay := grace + killDelay
	if err != nil {
		delay = 0 // the init cannot be reached, and the time is over
	}
	t.known.Go(func() { t.killLater(delay) })
	return nil
}

// freeze pauses or continues the task.
func (t *task) freeze(ctx context.Context, frozen bool) error {
	if err := t.box().freeze(ctx, frozen); err != nil {
		return fmt.Errorf("task %s: %w", t.id, err)
	}
	t.paused.Store(frozen)
	return nil
}

// killLater has the engine kill the container after a while, unless the task
// is over.
func (t *task) killLater(delay time.Duration) {
	t.box().killLater(t.known.Life(), t.ended, delay, func(err error) {
		t.home.log.Warn("container cannot be killed", logkey.TaskID, t.id, logkey.Error, err)
	})
}

// erase removes the task's container and files.
func (t *task) erase(ctx context.Context) error {
	if t.record.ContainerID != "" {
		if err := t.box().remove(ctx, destroyPatience, t.over()); err != nil {
			return engineError(err)
		}
	}
	return os.RemoveAll(t.dir())
}
