package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// fakeRuntime is a fake driver whose tasks live outside of it, like supervisors do:
// a new driver on the same runtime finds them again.
type fakeRuntime struct {
	mu struct {
		sync.Mutex
		tasks     map[driver.TaskID]*fakeTask
		holdErr   error // of a pause
		signalErr error
	}
	log []string // guarded by mu

	startErr  error
	deaf      bool          // tasks ignore the stop signal
	startTime time.Duration // that a start takes
	cores     float64       // that each task keeps busy
}

type fakeTask struct {
	spec   driver.TaskSpec
	handle driver.Handle
	ended  chan struct{}
	result driver.ExitResult
}

func newFakeRuntime() *fakeRuntime {
	w := new(fakeRuntime)
	w.mu.tasks = make(map[driver.TaskID]*fakeTask)
	return w
}

func (w *fakeRuntime) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// refusePauses lets pauses fail from now on; nil: no more.
func (w *fakeRuntime) refusePauses(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.holdErr = err
}

func (w *fakeRuntime) refuseSignals(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.signalErr = err
}

func (w *fakeRuntime) notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// exit ends a task by itself.
func (w *fakeRuntime) exit(allocID string, code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked(w.mu.tasks[driver.TaskID(allocID+".main")], driver.ExitResult{Code: code})
}

// kill ends a task by SIGKILL, from nobody whom the agent knows.
func (w *fakeRuntime) kill(allocID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked(w.mu.tasks[driver.TaskID(allocID+".main")], driver.ExitResult{Code: 137, Signal: "SIGKILL"})
}

func (w *fakeRuntime) endLocked(t *fakeTask, result driver.ExitResult) {
	select {
	case <-t.ended:
	default:
		result.StartedAt, result.FinishedAt = t.handle.StartedAt, time.Now()
		t.result = result
		close(t.ended)
	}
}

// running lists the tasks that have not ended.
func (w *fakeRuntime) running() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for id, t := range w.mu.tasks {
		select {
		case <-t.ended:
		default:
			ids = append(ids, string(id))
		}
	}
	slices.Sort(ids)
	return ids
}

// fakeDriver is one agent's view of a runtime: it knows the tasks that it has
// started or recovered.
type fakeDriver struct {
	*fakeRuntime
	known struct {
		sync.Mutex
		ids map[driver.TaskID]bool
	}
}

func (w *fakeRuntime) driver() map[string]driver.Driver {
	d := &fakeDriver{fakeRuntime: w}
	d.known.ids = make(map[driver.TaskID]bool)
	return map[string]driver.Driver{"exec": d}
}

func (d *fakeDriver) Fingerprint(ctx context.Context) (<-chan driver.Fingerprint, error) {
	words := make(chan driver.Fingerprint, 1)
	words <- driver.Fingerprint{Health: driver.Healthy}
	context.AfterFunc(ctx, func() { close(words) })
	return words, nil
}

func (d *fakeDriver) know(id driver.TaskID) {
	d.known.Lock()
	defer d.known.Unlock()
	d.known.ids[id] = true
}

func (d *fakeDriver) find(id driver.TaskID) (*fakeTask, error) {
	d.known.Lock()
	known := d.known.ids[id]
	d.known.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.mu.tasks[id]
	if t == nil || !known {
		return nil, driver.ErrUnknownTask
	}
	return t, nil
}

func (d *fakeDriver) Start(_ context.Context, spec driver.TaskSpec) (driver.Handle, error) {
	if err := spec.Validate(); err != nil {
		return driver.Handle{}, err
	}
	<-time.After(d.startTime)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.startErr != nil {
		return driver.Handle{}, d.startErr
	}
	if d.mu.tasks[spec.ID] != nil {
		return driver.Handle{}, driver.ErrTaskExists
	}
	t := &fakeTask{spec: spec, ended: make(chan struct{}), handle: driver.Handle{
		Version: 1, Driver: "exec", TaskID: spec.ID, StartedAt: time.Now().UTC(),
	}}
	d.mu.tasks[spec.ID] = t
	d.know(spec.ID)
	d.note("start %s", spec.Hostname)
	return t.handle, nil
}

func (d *fakeDriver) Recover(_ context.Context, handle driver.Handle) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.mu.tasks[handle.TaskID]
	if t == nil {
		return driver.ErrUnknownTask
	}
	d.know(handle.TaskID)
	d.note("recover %s", t.spec.Hostname)
	return nil
}

// Mask implements driver.Masker.
func (d *fakeDriver) Mask(_ context.Context, id driver.TaskID, mask []structs.Mask) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	said := fmt.Sprintf("mask %s:", t.spec.Hostname)
	for _, one := range mask {
		said += fmt.Sprintf(" %s@%d %s", one.Name, one.Version, string(one.Text))
	}
	d.note("%s", said)
	return nil
}

func (d *fakeDriver) List(context.Context) ([]driver.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var handles []driver.Handle
	for _, id := range slices.Sorted(maps.Keys(d.mu.tasks)) {
		handles = append(handles, d.mu.tasks[id].handle)
	}
	return handles, nil
}

func (d *fakeDriver) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	select {
	case <-t.ended:
		return t.result, nil
	case <-ctx.Done():
		return driver.ExitResult{}, ctx.Err()
	}
}

func (d *fakeDriver) Stop(_ context.Context, id driver.TaskID, signal string, grace time.Duration) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("stop %s %s %s", t.spec.Hostname, signal, grace)
	kill := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.endLocked(t, driver.ExitResult{Code: 137, Signal: "SIGKILL"})
	}
	switch {
	case grace == 0:
		d.endLocked(t, driver.ExitResult{Code: 137, Signal: "SIGKILL"})
	case d.deaf:
		time.AfterFunc(grace, kill)
	default:
		d.endLocked(t, driver.ExitResult{Code: 143, Signal: "SIGTERM"})
	}
	return nil
}

func (d *fakeDriver) Destroy(_ context.Context, id driver.TaskID) error {
	t, err := d.find(id)
	if err != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endLocked(t, driver.ExitResult{Code: 137, Signal: "SIGKILL"})
	delete(d.mu.tasks, id)
	d.note("destroy %s", t.spec.Hostname)
	return nil
}

func (d *fakeDriver) Signal(_ context.Context, id driver.TaskID, signal string) error {
	return d.hold(id, "signal "+signal)
}

func (d *fakeDriver) Pause(_ context.Context, id driver.TaskID) error { return d.hold(id, "pause") }

func (d *fakeDriver) Continue(_ context.Context, id driver.TaskID) error {
	return d.hold(id, "continue")
}

func (d *fakeDriver) hold(id driver.TaskID, act string) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.mu.holdErr; err != nil && act == "pause" {
		return err
	}
	if err := d.mu.signalErr; err != nil && strings.HasPrefix(act, "signal ") {
		return err
	}
	d.note("%s %s", act, t.spec.Hostname)
	return nil
}

func (d *fakeDriver) Stats(_ context.Context, id driver.TaskID) (driver.Usage, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.Usage{}, err
	}
	now := time.Now()
	busy := time.Duration(d.cores * float64(now.Sub(t.handle.StartedAt)))
	return driver.Usage{At: now, CPUTime: busy, RSSBytes: 7 << 20, Processes: 3}, nil
}

// Exec echoes its command and input.
func (d *fakeDriver) Exec(_ context.Context, id driver.TaskID, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	fmt.Fprintf(streams.Stdout, "%s runs %q survive=%v: ", t.spec.Hostname, spec.Command, spec.Survive)
	if _, err := io.Copy(streams.Stdout, streams.Stdin); err != nil {
		return driver.ExitResult{}, err
	}
	return driver.ExitResult{Code: 5}, nil
}
