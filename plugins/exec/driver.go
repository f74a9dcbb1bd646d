package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// Name is what job files call this driver.
const Name = "exec"

// destroyPatience is how long Destroy waits for a task that it has killed.
// The supervisor itself gives up on unkillable processes before that.
const destroyPatience = 30 * time.Second

// supervisorLogMax is the size, in bytes, above which the log of all
// supervisors is emptied when the driver opens.
const supervisorLogMax = 1 << 20

// Config says where the driver lives.
type Config struct {
	// StateDir holds the records and control sockets of all tasks, mode 0700;
	// it must survive restarts of the agent and belong to it alone.
	StateDir string
	// BinDir is where the embedded supervisor is written to; "" means
	// StateDir/bin.
	BinDir string
	// Supervisor replaces the supervisor program; empty means the embedded
	// one or else this program itself, whose main must then dispatch
	// supervisor.Argument.
	Supervisor []string
	// Spares is how many supervisors are kept ready for tasks to come; 0 means
	// a default, a negative number none, and a new one for each task.
	Spares int
	// NoCgroup keeps tasks out of cgroups of their own: nothing bounds them.
	NoCgroup bool
	// CgroupParent is the cgroup below which those of the tasks are made, one
	// name; "" means CgroupParentDefault.
	CgroupParent string
	// PIDsMax bounds processes and threads of a task that says nothing; 0
	// means PIDsDefault.
	PIDsMax int64
	// Ulimits are limits of the processes of every task, those of its job over
	// them. UlimitsMax bounds by name what jobs may ask for, -1 for anything;
	// of limits that it does not name they have what the agent has itself.
	Ulimits    []driver.Ulimit
	UlimitsMax map[string]int64

	// Isolation is one of the Isolation words; "" means IsolationAuto.
	Isolation string
	// View is what isolated tasks see of the node's files, one of the View
	// words. Root is a directory that they have for "/" instead, read-only,
	// with a /tmp, a /run and a /dev/shm of their own.
	View, Root string
	// MountRoots are the directories of this node below which jobs may mount
	// files, links resolved. Without any, jobs mount nothing.
	MountRoots []string
	// Writable are directories of this node that isolated tasks use as their
	// users may, in whatever view: storage that all nodes have, as a rule.
	Writable []string
	// Hidden are paths of the node that isolated tasks do not see, such as the
	// agent's data directory, and Visible what they see nevertheless,
	// read-only. The state directory is always hidden and the agent's own
	// program always visible.
	Hidden, Visible []string

	Logger *slog.Logger // nil: no logs
}

// Driver runs tasks as processes; it implements driver.Driver and
// driver.Lister.
type Driver struct {
	config     Config
	log        *slog.Logger
	supervisor []string // argv
	// supervisorLog takes what supervisors of all tasks have to say on stderr,
	// which is nothing as long as all goes well.
	supervisorLog *os.File
	cgroups       cgroupTree
	probing       sync.Once
	probed        chan struct{} // closed once found is set
	found         level
	bootID        string
	root          bool

	spares       chan *readySupervisor
	sparesWanted int
	refilling    atomic.Bool  // somebody fills spares
	trimming     atomic.Bool  // somebody waits to send some away
	starts       atomic.Int64 // of tasks

	life   context.Context // ends the watchers
	cancel context.CancelFunc
	work   sync.WaitGroup // watchers and collectors of supervisors

	mu struct {
		sync.Mutex
		closed bool
		tasks  map[driver.TaskID]*task
	}
}

// New prepares a driver. It starts nothing; tasks of an earlier agent are
// taken over by Recover. The caller closes it.
func New(config Config) (*Driver, error) {
	if !filepath.IsAbs(config.StateDir) {
		return nil, fmt.Errorf("prepare exec driver: state directory %q is not absolute", config.StateDir)
	}
	if config.BinDir == "" {
		config.BinDir = filepath.Join(config.StateDir, "bin")
	}
	if err := config.checkIsolation(); err != nil {
		return nil, err
	}
	if err := config.checkUlimits(); err != nil {
		return nil, err
	}
	if config.CgroupParent == "" {
		config.CgroupParent = CgroupParentDefault
	}
	if strings.ContainsAny(config.CgroupParent, "/\x00") || config.CgroupParent[0] == '.' {
		return nil, fmt.Errorf("prepare exec driver: cgroup %q is not a plain name", config.CgroupParent)
	}
	if config.PIDsMax == 0 {
		config.PIDsMax = PIDsDefault
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(config.tasksDir(), 0o700); err != nil {
		return nil, fmt.Errorf("prepare exec driver: %w", err)
	}
	d := &Driver{config: config, log: config.Logger.With(logkey.Driver, Name), root: os.Geteuid() == 0}
	var err error
	if d.bootID, err = bootID(); err != nil {
		return nil, fmt.Errorf("prepare exec driver: %w", err)
	}
	if d.supervisor, err = findSupervisor(config); err != nil {
		return nil, fmt.Errorf("prepare exec driver: %w", err)
	}
	if d.supervisorLog, err = openSupervisorLog(config.StateDir); err != nil {
		return nil, fmt.Errorf("prepare exec driver: %w", err)
	}
	switch {
	case config.NoCgroup:
		d.cgroups.reason = "switched off"
	case !d.root:
		d.cgroups.reason = "the agent does not run as root"
	default:
		d.cgroups = findCgroups(config.CgroupParent)
	}
	d.probed = make(chan struct{})
	d.mu.tasks = make(map[driver.TaskID]*task)
	d.life, d.cancel = context.WithCancel(context.Background())
	if config.Spares == 0 {
		config.Spares = sparesDefault
	}
	if d.sparesWanted = min(config.Spares, sparesMax); d.sparesWanted > 0 {
		d.spares = make(chan *readySupervisor, sparesMax)
	}
	d.refill()
	return d, nil
}

func (c *Config) tasksDir() string { return filepath.Join(c.StateDir, "tasks") }

// Close lets go of all tasks without touching them, and waits for the
// driver's goroutines. Wait calls end with driver.ErrUnavailable.
func (d *Driver) Close() error {
	d.mu.Lock()
	closed := d.mu.closed
	d.mu.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	d.cancel()
	d.work.Wait()
	d.dismissSpares()
	return d.supervisorLog.Close()
}

// openSupervisorLog opens the common log, emptied when it has grown: it is
// for finding defects, not a record.
func openSupervisorLog(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "supervisors.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.Size() > supervisorLogMax {
		_ = file.Truncate(0) // an append goes on anyhow
	}
	return file, nil
}

// Fingerprint reports once what processes can be run, and how far they are
// kept apart.
func (d *Driver) Fingerprint(ctx context.Context) (<-chan driver.Fingerprint, error) {
	l, err := d.level(ctx)
	if err != nil {
		return nil, err
	}
	report := driver.Fingerprint{Health: driver.Healthy, Attributes: map[string]string{
		"driver.exec.arch":       runtime.GOARCH,
		"driver.exec.namespaces": fmt.Sprint(d.root || l.isolated),
		"driver.exec.isolation":  l.describe(),
		"driver.exec.users":      fmt.Sprint(d.root),
		"driver.exec.cgroup":     d.cgroups.version(),
		"driver.exec.limits":     orNone(strings.Join(d.cgroups.limits, ",")),
	}}
	if d.cgroups.reason != "" {
		report.Attributes["driver.exec.limits_reason"] = d.cgroups.reason
	}
	if l.reason != "" {
		report.Attributes["driver.exec.isolation_reason"] = l.reason
	}
	if l.isolated {
		report.Attributes["driver.exec.view"] = d.viewName()
		report.Attributes["driver.exec.device_rules"] = fmt.Sprint(d.cgroups.ruleDevices())
		if d.cgroups.deviceReason != "" {
			report.Attributes["driver.exec.device_rules_reason"] = d.cgroups.deviceReason
		}
	} else if d.config.Isolation == IsolationRequired {
		report.Health, report.Reason = driver.Unhealthy, "tasks cannot be isolated: "+l.reason
	}
	reports := make(chan driver.Fingerprint, 1)
	reports <- report
	context.AfterFunc(ctx, func() { close(reports) })
	return reports, nil
}

func (d *Driver) viewName() string {
	switch {
	case d.config.Root != "":
		return "root"
	case d.config.View != ViewShared:
		return d.config.View
	}
	return "shared"
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
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
// With it, a watcher may be started; the watcher's owner is Close.
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

// Stop asks the supervisor to end the task.
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
	_, err = t.ask(ctx, &supervisor.Request{Op: supervisor.OpStop, Signal: int(number), GraceMS: grace.Milliseconds()})
	if errors.Is(err, driver.ErrTaskEnded) {
		return nil
	}
	return err
}

// Signal sends a signal to the command's process group.
func (d *Driver) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	number, err := driver.ParseSignal(signal)
	if err != nil {
		return err
	}
	return d.order(ctx, id, &supervisor.Request{Op: supervisor.OpSignal, Signal: int(number)})
}

// Pause stops all processes of the task.
func (d *Driver) Pause(ctx context.Context, id driver.TaskID) error {
	return d.order(ctx, id, &supervisor.Request{Op: supervisor.OpPause})
}

// Continue lets a paused task go on.
func (d *Driver) Continue(ctx context.Context, id driver.TaskID) error {
	return d.order(ctx, id, &supervisor.Request{Op: supervisor.OpContinue})
}

func (d *Driver) order(ctx context.Context, id driver.TaskID, request *supervisor.Request) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	_, err = t.ask(ctx, request)
	return err
}

var _ driver.Throttler = (*Driver)(nil)

// Throttle lets the task run for busy and pauses it for idle, in turns, so that
// others get their share of a device; an idle of 0 lets it run again. Both are
// at most a minute. It works on beside Pause and Continue, and ends with the
// task.
func (d *Driver) Throttle(ctx context.Context, id driver.TaskID, busy, idle time.Duration) error {
	return d.order(ctx, id, &supervisor.Request{Op: supervisor.OpThrottle, BusyMS: busy.Milliseconds(), IdleMS: idle.Milliseconds()})
}

// Stats measures the task's processes.
func (d *Driver) Stats(ctx context.Context, id driver.TaskID) (driver.Usage, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.Usage{}, err
	}
	reply, err := t.ask(ctx, &supervisor.Request{Op: supervisor.OpStats})
	if err != nil {
		return driver.Usage{}, err
	}
	if reply.Stats == nil {
		return driver.Usage{}, fmt.Errorf("measure task %s: supervisor sent no figures", id)
	}
	return driver.Usage{
		At:        time.Now(),
		CPUTime:   time.Duration(reply.Stats.CPUTicks) * tick,
		RSSBytes:  reply.Stats.RSSBytes,
		Processes: reply.Stats.Processes,
		Threads:   reply.Stats.Threads,
	}, nil
}

// Destroy kills the task if it runs, and removes its state.
func (d *Driver) Destroy(ctx context.Context, id driver.TaskID) error {
	t, err := d.find(id)
	if err != nil {
		return nil
	}
	select {
	case <-t.ended:
	default:
		ctx, cancel := context.WithTimeout(ctx, destroyPatience)
		defer cancel()
		if err := d.Stop(ctx, id, "SIGKILL", 0); err != nil {
			return fmt.Errorf("destroy task %s: %w", id, err)
		}
		if _, err := d.Wait(ctx, id); err != nil {
			return fmt.Errorf("destroy task %s: %w", id, err)
		}
	}
	if err := t.erase(); err != nil {
		return fmt.Errorf("destroy task %s: %w", id, err)
	}
	d.forget(id)
	if t.state.Supervisor.PID == 0 {
		d.endOrphans()
	}
	return nil
}

// List names the tasks that have a record on this node, whether this driver
// knows them or not, and those whose record is gone while they run. Who wants to be rid of one recovers and destroys it.
func (d *Driver) List(context.Context) ([]driver.Handle, error) {
	entries, err := os.ReadDir(d.config.tasksDir())
	if err != nil {
		return nil, fmt.Errorf("list exec tasks: %w", err)
	}
	var handles []driver.Handle
	recorded := make(map[driver.TaskID]bool)
	for _, entry := range entries {
		name, isRecord := strings.CutSuffix(entry.Name(), supervisor.RecordSuffix)
		id := driver.TaskID(name)
		if !isRecord || !entry.Type().IsRegular() || !driver.ValidTaskID(id) {
			continue
		}
		record, err := supervisor.ReadRecord(d.config.tasksDir(), name)
		if err != nil || record.State == nil {
			record.State = &supervisor.State{Version: supervisor.RecordVersion, TaskID: name}
		}
		recorded[id] = true
		handles = append(handles, newHandle(id, record.State))
	}
	lost, err := d.orphans(recorded)
	if err != nil {
		return nil, fmt.Errorf("list exec tasks: %w", err)
	}
	return append(handles, lost...), nil
}

// signalName names the signal of an exit record, "" for none.
func signalName(number int) string {
	if number == 0 {
		return ""
	}
	return driver.SignalName(syscall.Signal(number))
}
