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
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/roster"
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
// driver.Lister. It answers the contract by its parts: which tasks it knows,
// how far they can be kept apart, the supervisors that wait for one, what a
// supervisor is told, and those that were left behind.
type Driver struct {
	config Config
	log    *slog.Logger
	root   bool
	// supervisorLog takes what supervisors of all tasks have to say on stderr,
	// which is nothing as long as all goes well.
	supervisorLog *os.File

	home      *home
	known     *roster.Roster[*task]
	isolator  *isolator
	ready     *pool
	translate *translator
	orphans   orphans
}

// home is where the tasks of a driver live: what each of them needs to be found
// and to be ended.
type home struct {
	dir     string // of records and sockets
	bootID  string
	cgroups *cgroupTree
	log     *slog.Logger
}

// worker runs what goes on after a call has returned, for the parts that know no
// tasks.
type worker interface {
	Go(f func()) bool
	Life() context.Context
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
	d := &Driver{config: config, log: config.Logger.With(logkey.Driver, Name), root: os.Geteuid() == 0, known: roster.New[*task]()}
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("prepare exec driver: %w", err)
	}
	argv, err := findSupervisor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare exec driver: %w", err)
	}
	if d.supervisorLog, err = openSupervisorLog(config.StateDir); err != nil {
		return nil, fmt.Errorf("prepare exec driver: %w", err)
	}
	d.home = &home{dir: config.tasksDir(), bootID: boot, cgroups: cgroupsFor(&config, d.root), log: d.log}
	program := &program{argv: argv, dir: d.home.dir, log: d.supervisorLog, root: d.root}
	d.isolator = newIsolator(&d.config, d.home.cgroups, program, d.known, d.log)
	d.translate = &translator{config: &d.config, root: d.root, isolator: d.isolator, cgroups: d.home.cgroups}
	d.orphans = orphans{dir: d.home.dir}
	d.ready = newPool(config.Spares, program, d.isolator, d.known, d.log)
	d.ready.refill()
	return d, nil
}

// cgroupsFor returns where tasks have cgroups, or why they have none.
func cgroupsFor(config *Config, root bool) *cgroupTree {
	switch {
	case config.NoCgroup:
		return &cgroupTree{reason: "switched off"}
	case !root:
		return &cgroupTree{reason: "the agent does not run as root"}
	}
	return findCgroups(config.CgroupParent)
}

func (c *Config) tasksDir() string { return filepath.Join(c.StateDir, "tasks") }

// Close lets go of all tasks without touching them, and waits for the
// driver's goroutines. Wait calls end with driver.ErrUnavailable.
func (d *Driver) Close() error {
	if !d.known.Close() {
		return nil // by an earlier call
	}
	d.ready.dismissAll()
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
	l, err := d.isolator.level(ctx)
	if err != nil {
		return nil, err
	}
	report := driver.Fingerprint{Health: driver.Healthy, Attributes: map[string]string{
		structs.AttrMasks(Name):  structs.MasksYes,
		"driver.exec.arch":       runtime.GOARCH,
		"driver.exec.namespaces": fmt.Sprint(d.root || l.isolated),
		"driver.exec.isolation":  l.describe(),
		"driver.exec.users":      fmt.Sprint(d.root),
		"driver.exec.cgroup":     d.home.cgroups.version(),
		"driver.exec.limits":     orNone(strings.Join(d.home.cgroups.limits, ",")),
	}}
	if d.home.cgroups.reason != "" {
		report.Attributes["driver.exec.limits_reason"] = d.home.cgroups.reason
	}
	if l.reason != "" {
		report.Attributes["driver.exec.isolation_reason"] = l.reason
	}
	if l.isolated {
		report.Attributes["driver.exec.view"] = d.config.viewName()
		report.Attributes["driver.exec.device_rules"] = fmt.Sprint(d.home.cgroups.ruleDevices())
		if d.home.cgroups.deviceReason != "" {
			report.Attributes["driver.exec.device_rules_reason"] = d.home.cgroups.deviceReason
		}
	} else if d.config.Isolation == IsolationRequired {
		report.Health, report.Reason = driver.Unhealthy, "tasks cannot be isolated: "+l.reason
	}
	reports := make(chan driver.Fingerprint, 1)
	reports <- report
	context.AfterFunc(ctx, func() { close(reports) })
	return reports, nil
}

func (c *Config) viewName() string {
	switch {
	case c.Root != "":
		return "root"
	case c.View != ViewShared:
		return c.View
	}
	return "shared"
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
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

// Stop asks the supervisor to end the task.
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
	t, err := d.known.Find(id)
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
	t, err := d.known.Find(id)
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
	t, err := d.known.Find(id)
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
	d.known.Forget(id)
	if t.state.Supervisor.PID == 0 {
		d.orphans.end()
	}
	return nil
}

// List names the tasks that have a record on this node, whether this driver
// knows them or not, and those whose record is gone while they run. A caller that wants to be rid of one recovers and destroys it.
func (d *Driver) List(context.Context) ([]driver.Handle, error) {
	entries, err := os.ReadDir(d.home.dir)
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
		record, err := supervisor.ReadRecord(d.home.dir, name)
		if err != nil || record.State == nil {
			record.State = &supervisor.State{Version: supervisor.RecordVersion, TaskID: name}
		}
		recorded[id] = true
		handles = append(handles, newHandle(id, record.State))
	}
	lost, err := d.orphans.list(recorded)
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
