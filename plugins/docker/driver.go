package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/taskproc"
)

// Bounds of calls that a context does not bound enough.
const (
	// destroyPatience is how long Destroy waits for a task that it has killed,
	// and then for the engine to remove it.
	destroyPatience = 30 * time.Second
	// engineLogMax is the size, in bytes, above which the log of all keepers
	// is emptied when the driver opens.
	keeperLogMax = 1 << 20
)

// Driver runs tasks in containers; it implements driver.Driver,
// driver.Lister, driver.Preparer, driver.Committer and driver.StateSaver.
type Driver struct {
	config    Config
	log       *slog.Logger
	engine    *engine
	program   string // "" when this build has none
	keeperLog *os.File
	uses      *useLog // when images were used last

	life   context.Context // ends the watchers
	cancel context.CancelFunc
	work   sync.WaitGroup

	network sync.Mutex // serialises making the private network
	pulls   pulls

	mu struct {
		sync.Mutex
		closed bool
		tasks  map[driver.TaskID]*task
		// What is known of the engine, gathered anew when it comes back.
		known   bool
		info    engineInfo
		facts   engineFacts
		limits  limitFacts
		looked  time.Time // at facts
		mounter *mounter
	}
}

// New prepares a driver. It needs no engine to be there: the fingerprint says
// whether one is. Tasks of an earlier agent are taken over by Recover. The
// caller closes it.
func New(config Config) (*Driver, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	d := &Driver{config: config, log: config.Logger.With(logkey.Driver, Name)}
	if err := os.MkdirAll(d.tasksDir(), 0o700); err != nil {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	// What an agent has left that was killed while tasks were starting; only
	// root could have, and only root can clear it.
	if err := (&mounter{dir: mountsDir(&config)}).clear(); err != nil && !errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	if d.program, err = installProgram(&config); err != nil && !errors.Is(err, errNoProgram) {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	if d.uses, err = openUseLog(filepath.Join(config.StateDir, "images.json")); err != nil {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	if d.keeperLog, err = openKeeperLog(config.StateDir); err != nil {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	if d.engine, err = newEngine(config.Endpoint); err != nil {
		d.keeperLog.Close()
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	d.mu.tasks = make(map[driver.TaskID]*task)
	d.life, d.cancel = context.WithCancel(context.Background())
	if !config.GC.Disabled {
		d.work.Go(d.collectImages)
	}
	return d, nil
}

func (d *Driver) tasksDir() string { return filepath.Join(d.config.StateDir, "tasks") }

// Close lets go of all tasks without touching them, and waits for the
// driver's goroutines. Wait calls end with driver.ErrUnavailable.
func (d *Driver) Close() error {
	d.mu.Lock()
	closed, mounter := d.mu.closed, d.mu.mounter
	d.mu.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	d.cancel()
	d.work.Wait()
	d.engine.close()
	err := d.keeperLog.Close()
	if mounter != nil {
		err = errors.Join(err, mounter.clear())
	}
	return err
}

// openKeeperLog opens the common log of keepers, emptied when it has grown:
// it is for finding defects, not a record.
func openKeeperLog(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "keepers.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.Size() > keeperLogMax {
		_ = file.Truncate(0) // an append goes on anyhow
	}
	return file, nil
}

// factsEvery is how often is looked for ways to devices that have come or
// gone while the engine runs, such as CDI specifications.
const factsEvery = 30 * time.Second

// learn asks the engine about itself unless that is known, and prepares what
// depends on the answer.
func (d *Driver) learn(ctx context.Context) error {
	d.mu.Lock()
	known := d.mu.known && time.Since(d.mu.looked) < factsEvery
	d.mu.Unlock()
	if known {
		return nil
	}
	info, err := d.engine.info(ctx)
	if err != nil {
		return err
	}
	pid := enginePID(d.config.Endpoint)
	facts, limits := gatherFacts(&info, pid), gatherLimits(pid)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.mounter == nil && !d.mu.closed {
		if d.mu.mounter, err = openMounter(&d.config, info.RootDir); err != nil {
			return err
		}
	}
	d.mu.known, d.mu.info, d.mu.facts, d.mu.limits, d.mu.looked = true, info, facts, limits, time.Now()
	return nil
}

// forgetEngine lets learn ask again.
func (d *Driver) forgetEngine() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.known = false
}

// find returns a known task.
func (d *Driver) find(id driver.TaskID) (*task, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, ok := d.mu.tasks[id]
	if !ok {
		return nil, fmt.Errorf("task %s: %w", id, driver.ErrUnknownTask)
	}
	return t, nil
}

// add makes a task known, unless its id is taken or the driver is closed.
func (d *Driver) add(t *task) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return fmt.Errorf("task %s: %w", t.id, driver.ErrUnavailable)
	}
	if _, taken := d.mu.tasks[t.id]; taken {
		return fmt.Errorf("task %s: %w", t.id, driver.ErrTaskExists)
	}
	d.mu.tasks[t.id] = t
	return nil
}

func (d *Driver) forget(id driver.TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.tasks, id)
}

// spawnWork runs f in a goroutine that Close waits for; it reports whether it
// could, which it cannot after Close.
func (d *Driver) spawnWork(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return false
	}
	d.work.Go(f)
	return true
}

// Wait blocks until the task has ended.
func (d *Driver) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	select {
	case <-t.ended:
		return t.result, nil
	default:
	}
	select {
	case <-t.ended:
		return t.result, nil
	case <-ctx.Done():
		return driver.ExitResult{}, ctx.Err()
	case <-d.life.Done():
		return driver.ExitResult{}, fmt.Errorf("wait for task %s: %w", id, driver.ErrUnavailable)
	}
}

// Stop asks the init to end the task; when the container is still there a
// moment after the grace, the engine kills it.
func (d *Driver) Stop(ctx context.Context, id driver.TaskID, signal string, grace time.Duration) error {
	if signal == "" {
		signal = "SIGTERM"
	}
	number, err := driver.ParseSignal(signal)
	if err != nil {
		return err
	}
	t, err := d.find(id)
	if err != nil {
		return err
	}
	grace = min(max(grace, 0), driver.KillGraceMax)
	if err := t.stop(ctx, number, grace); !errors.Is(err, driver.ErrTaskEnded) {
		return err
	}
	return nil
}

// Signal sends a signal to the command's process group.
func (d *Driver) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	number, err := driver.ParseSignal(signal)
	if err != nil {
		return err
	}
	t, err := d.find(id)
	if err != nil {
		return err
	}
	return t.ask(ctx, &taskinit.Request{Op: taskinit.OpSignal, Signal: int(number)})
}

// Layer is where the engine keeps what the task writes into its container.
func (d *Driver) Layer(ctx context.Context, id driver.TaskID) (string, error) {
	t, err := d.find(id)
	if err != nil {
		return "", err
	}
	return d.engine.layer(ctx, t.record.ContainerID)
}

// Pause freezes the container: memory, that of devices included, stays.
func (d *Driver) Pause(ctx context.Context, id driver.TaskID) error {
	return d.freeze(ctx, id, true)
}

// Continue lets a paused task go on.
func (d *Driver) Continue(ctx context.Context, id driver.TaskID) error {
	return d.freeze(ctx, id, false)
}

func (d *Driver) freeze(ctx context.Context, id driver.TaskID, frozen bool) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	if t.over() {
		return fmt.Errorf("task %s: %w", id, driver.ErrTaskEnded)
	}
	return t.freeze(ctx, frozen)
}

// Destroy kills the task if it runs, and removes its container and state.
func (d *Driver) Destroy(ctx context.Context, id driver.TaskID) error {
	t, err := d.find(id)
	if err != nil {
		return nil
	}
	if !t.over() {
		killed, cancel := context.WithTimeout(ctx, destroyPatience)
		defer cancel()
		if err := d.Stop(killed, id, "SIGKILL", 0); err != nil {
			return fmt.Errorf("destroy task %s: %w", id, err)
		}
		if _, err := d.Wait(killed, id); err != nil {
			return fmt.Errorf("destroy task %s: %w", id, err)
		}
	}
	if err := t.erase(ctx); err != nil {
		return fmt.Errorf("destroy task %s: %w", id, err)
	}
	d.forget(id)
	return nil
}

// signalName names the signal of an exit, "" for none.
func signalName(number int) string {
	if number == 0 {
		return ""
	}
	return driver.SignalName(syscall.Signal(number))
}

// failureError turns the init's refusal into the error that the client
// expects: the command's fault or the node's.
func failureError(failure *taskproc.Failure) error {
	switch failure.Kind {
	case taskproc.FailEnded:
		return driver.ErrTaskEnded
	case taskproc.FailBadRequest:
		return fmt.Errorf("ask init: %w", failure)
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
