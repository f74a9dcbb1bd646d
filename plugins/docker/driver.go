package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/roster"
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
// driver.Lister, driver.Preparer, driver.Committer, driver.ImageKeeper and driver.StateSaver. It
// answers the contract by its parts: which tasks it knows, what is known of the
// engine, the images, and how a container is made.
type Driver struct {
	config  Config
	log     *slog.Logger
	home    *home
	known   *roster.Roster[*task]
	host    *host
	images  *imageStore
	starter *starter
}

// home is where the tasks of a driver live: what each of them needs to be found,
// asked and ended.
type home struct {
	dir           string // of records and sockets
	cluster, node string // as containers are labelled
	engine        *engine
	program       string // of keepers and inits; "" when this build has none
	keeperLog     *os.File
	log           *slog.Logger
}

// New prepares a driver. It needs no engine to be there: the fingerprint says
// whether one is. Tasks of an earlier agent are taken over by Recover. The
// caller closes it.
func New(config Config) (*Driver, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	d := &Driver{config: config, log: config.Logger.With(logkey.Driver, Name), known: roster.New[*task]()}
	d.home = &home{dir: filepath.Join(config.StateDir, "tasks"), cluster: config.Cluster, node: config.Node, log: d.log}
	if err := os.MkdirAll(d.home.dir, 0o700); err != nil {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	// What an agent has left that was killed while tasks were starting; only
	// root could have, and only root can clear it.
	if err := (&mounter{dir: mountsDir(&config)}).clear(); err != nil && !errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	if d.home.program, err = installProgram(&config); err != nil && !errors.Is(err, errNoProgram) {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	uses, err := openUseLog(filepath.Join(config.StateDir, "images.json"))
	if err != nil {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	if d.home.keeperLog, err = openKeeperLog(config.StateDir); err != nil {
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	if d.home.engine, err = newEngine(config.Endpoint); err != nil {
		d.home.keeperLog.Close()
		return nil, fmt.Errorf("prepare docker driver: %w", err)
	}
	d.host = &host{config: &d.config, engine: d.home.engine, program: d.home.program}
	d.images = &imageStore{config: &d.config, engine: d.home.engine, host: d.host, uses: uses, log: d.log}
	d.starter = &starter{config: &d.config, engine: d.home.engine, host: d.host, images: d.images}
	if !config.GC.Disabled {
		d.known.Go(func() { d.images.run(d.known.Life()) })
	}
	return d, nil
}

// Close lets go of all tasks without touching them, and waits for the
// driver's goroutines. Wait calls end with driver.ErrUnavailable.
func (d *Driver) Close() error {
	if !d.known.Close() {
		return nil // by an earlier call
	}
	d.home.engine.close()
	return errors.Join(d.home.keeperLog.Close(), d.host.close())
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

// Wait blocks until the task has ended.
func (d *Driver) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	t, err := d.known.Find(id)
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
	case <-d.known.Life().Done():
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
	t, err := d.known.Find(id)
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
	t, err := d.known.Find(id)
	if err != nil {
		return err
	}
	return t.ask(ctx, &taskinit.Request{Op: taskinit.OpSignal, Signal: int(number)})
}

// Layer is where the engine keeps what the task writes into its container.
func (d *Driver) Layer(ctx context.Context, id driver.TaskID) (string, error) {
	t, err := d.known.Find(id)
	if err != nil {
		return "", err
	}
	return d.home.engine.layer(ctx, t.record.ContainerID)
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
	t, err := d.known.Find(id)
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
	t, err := d.known.Find(id)
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
	d.known.Forget(id)
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
