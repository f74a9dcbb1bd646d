package structs

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The values that a job gets for what its author left out.
const (
	DefaultProject   = "default"
	DefaultNodes     = 1
	DefaultCPU       = 1.0       // cores
	DefaultMemory    = 512 * MiB // bytes
	DefaultStopGrace = Duration(30 * time.Second)
	DefaultAccess    = AccessReadOnly
	DefaultDriver    = DriverExec
	DefaultPull      = PullMissing
	DefaultFencing   = FencingCommit
	DefaultSpread    = Pack

	DefaultCheckpointSignal = "SIGUSR1"
	DefaultCheckpointGrace  = Duration(5 * time.Minute)
	DefaultHold             = Duration(4 * time.Hour)
)

// Words of the job file that have no type of their own.
const (
	AccessReadWrite = "read-write"
	AccessReadOnly  = "read-only"
	AccessNone      = "none"

	DriverExec   = "exec"
	DriverDocker = "docker"

	PullAlways  = "always"
	PullMissing = "missing"
	PullNever   = "never"

	FencingCommit = "commit"
	FencingStrict = "strict"

	Pack   = "pack"
	Spread = "spread"

	WorldSizeNodes = "nodes"
	WorldSizeProcs = "procs"

	RewriteLaunch   = "launch"
	RewriteTorchrun = "torchrun"
	RewriteNone     = "none"
	RewriteProcs    = "procs"
	EmulateDLWS     = "dlws"

	LauncherNoSSH = "no_ssh" // the command runs on every node
	LauncherPDSH  = "pdsh"   // rank 0 launches; its pdsh and ssh reach the other ranks through the agents
)

// Default is a value that SetDefaults chose; it is shown to the user before
// submission, because no required figure is chosen silently.
type Default struct {
	Path  string `json:"path"`  // field in the words of the job file, as in Problem
	Value string `json:"value"` // as it would be written there
	// From is whose default it is: FromProject, FromPool, or "" where neither says.
	From string `json:"from,omitempty"`
}

// SetDefaults fills what the author left out and says what it chose, in the
// order of the job file. It changes j in place: call it on a job that nobody
// else holds yet. It is idempotent, pure, and comes before Validate.
func (j *Job) SetDefaults() []Default {
	d := defaulter{}
	fill(&d, "project", &j.Project, DefaultProject)
	jobType := JobTypeTraining
	if j.Batched() {
		jobType = JobTypeBatch
	}
	d.batched(j)
	fill(&d, "type", &j.Type, jobType)
	fill(&d, "priority", &j.Priority, PriorityNormal)
	fill(&d, "access", &j.Access, DefaultAccess)
	for i := range j.After {
		fill(&d, IndexedPath("after", i)+".when", &j.After[i].When, UntilSucceeded)
	}
	if v := j.VIP; v != nil {
		fill(&d, "nodes", &j.Nodes, len(v.Machines))
		for i := range v.Machines {
			fill(&d, IndexedPath("vip.machine", i)+".busy", &v.Machines[i].Busy, BusyWait)
		}
		if v.Ask == nil && slices.ContainsFunc(v.Machines, func(m VIPMachine) bool { return m.Busy == BusyAsk }) {
			v.Ask = new(VIPAsk)
		}
		if v.Ask != nil {
			fill(&d, "vip.ask.for", &v.Ask.For, ConsentForDefault)
			fill(&d, "vip.ask.silence", &v.Ask.Silence, BusyWait)
		}
	}
	fill(&d, "nodes", &j.Nodes, DefaultNodes)
	d.distributed(j)
	d.resources(j)
	fill(&d, "placement.spread_or_pack", &j.Placement.SpreadOrPack, DefaultSpread)
	fill(&d, "task.driver", &j.Task.Driver, DefaultDriver)
	if j.Task.Driver == DriverDocker {
		fill(&d, "task.pull", &j.Task.Pull, DefaultPull)
	}
	for i := range j.Models {
		fill(&d, IndexedPath("model", i)+".read_only", &j.Models[i].ReadOnly, true) // always
	}
	if e := j.Elastic; e != nil {
		fill(&d, "elastic.by", &e.By, ElasticByRestart)
		if e.By == ElasticByTorchrun && j.Distributed.Mode == ModePyTorch {
			j.Distributed.MinNodes = e.MinNodes
		}
	}
	if c := j.Checkpoint; c != nil {
		fill(&d, "checkpoint.signal", &c.Signal, DefaultCheckpointSignal)
		fill(&d, "checkpoint.grace", &c.Grace, DefaultCheckpointGrace)
		if c.Performance != nil {
			fill(&d, "checkpoint.performance.action", &c.Performance.Action, WatchAlert)
			fill(&d, "checkpoint.performance.compare", &c.Performance.Compare, "gt")
			fill(&d, "checkpoint.performance.times", &c.Performance.Times, PerformanceTimesDefault)
		}
	}
	if w := j.LimitWarning; w != nil {
		signal := DefaultCheckpointSignal
		if j.Checkpoint != nil {
			signal = j.Checkpoint.Signal
		}
		fill(&d, "time_limit.signal", &w.Signal, signal)
	}
	if j.Debug != nil {
		fill(&d, "debug.hold", &j.Debug.Hold, DefaultHold)
	}
	if h := j.Hang; h != nil {
		fill(&d, "hang.action", &h.Action, WatchAlert)
		fill(&d, "hang.factor", &h.Factor, HangFactorDefault)
		fill(&d, "hang.least", &h.Least, HangLeastDefault)
		fill(&d, "hang.most", &h.Most, max(h.Least, HangMostDefault))
	}
	if j.Throttle != nil {
		fill(&d, "throttle.busy", &j.Throttle.Busy, ThrottleBusyDefault)
	}
	fill(&d, "stop_grace", &j.StopGrace, DefaultStopGrace)
	fill(&d, "fencing", &j.Fencing, DefaultFencing)
	return d.chosen
}

// Whose default a Default may be.
const (
	FromProject = "project"
	FromCluster = "cluster"
	FromPool    = "pool"
	FromImage   = "image" // what administrators declare of it
)

// defaulter collects what was chosen, all of it from one place.
type defaulter struct {
	chosen []Default
	from   string
}

// fill puts value into a field that still has its zero value.
func fill[T comparable](d *defaulter, path string, field *T, value T) {
	var zero T
	if *field != zero {
		return
	}
	*field = value
	written := fmt.Sprint(value)
	if span, ok := any(value).(Duration); ok {
		written = FormatDuration(span)
	}
	d.chosen = append(d.chosen, Default{Path: path, Value: written, From: d.from})
}

// batched counts an array, and takes from it how many may run at a time.
func (d *defaulter) batched(j *Job) {
	if b := j.Batch; b != nil && b.Array != "" {
		if array, err := ParseArray(b.Array); err == nil {
			if b.Count == 0 {
				b.Count = len(array.IDs)
			}
			if b.Parallel == 0 {
				b.Parallel = array.Parallel
			}
		}
	}
	if s := j.Sweep; s != nil {
		fill(d, "sweep.goal", &s.Goal, GoalMinimize)
	}
}

// distributed chooses single for one node and none for more: without a mode
// there is nothing to rendezvous with, and the command runs on each node.
func (d *defaulter) distributed(j *Job) {
	mode := ModeSingle
	if j.Nodes != 1 {
		mode = ModeNone
	}
	fill(d, "distributed.mode", &j.Distributed.Mode, mode)
	switch j.Distributed.Mode {
	case ModePyTorch:
		fill(d, "distributed.world_size", &j.Distributed.WorldSize, WorldSizeNodes)
		fill(d, "distributed.rewrite", &j.Distributed.Rewrite, RewriteLaunch)
	case ModeDeepSpeed:
		fill(d, "distributed.world_size", &j.Distributed.WorldSize, WorldSizeNodes)
		fill(d, "distributed.launcher", &j.Distributed.Launcher, deepSpeedLauncher(j.Task.Command))
	case ModeMindSpore:
		fill(d, "distributed.rank_table", &j.Distributed.RankTable, "v1.0")
	}
}

// deepSpeedLauncher lets rank 0 launch, as deepspeed does on any cluster, unless
// the command itself is what starts one node: torchrun, accelerate, or a program
// that has nothing to do with deepspeed's launcher. A script may call anything;
// most of them end in deepspeed.
func deepSpeedLauncher(command string) string {
	words, err := SplitCommand(command)
	if err != nil || len(words) == 0 {
		return LauncherNoSSH
	}
	byNode := !isShell(words[0]) && !strings.HasSuffix(words[0], ".sh")
	for _, word := range WordsInside(words) {
		switch base := path.Base(word); {
		case base == "deepspeed", base == "deepspeed.launcher.runner":
			return LauncherPDSH
		case base == "torchrun", base == "accelerate", strings.HasPrefix(base, "python"), strings.HasPrefix(base, "torch.distributed."):
			byNode = true // unless deepspeed comes after it: python -m deepspeed.launcher.runner
		}
	}
	if byNode {
		return LauncherNoSSH
	}
	return LauncherPDSH
}

func (d *defaulter) resources(j *Job) {
	if len(j.Resources) == 0 {
		j.Resources = []Resources{{}}
	}
	for i := range j.Resources {
		r, path := &j.Resources[i], IndexedPath("resources", i)
		if r.SKU == 0 { // an SKU brings its own cores and memory
			if r.CPU == 0 {
				r.CPU = DefaultCPU
				d.chosen = append(d.chosen, Default{Path: path + ".cpu", Value: strconv.FormatFloat(r.CPU, 'g', -1, 64)})
			}
			if r.Memory == 0 {
				r.Memory = DefaultMemory
				d.chosen = append(d.chosen, Default{Path: path + ".memory", Value: FormatSize(r.Memory)})
			}
		}
		for k := range r.Devices {
			count := max(1, len(r.Devices[k].IDs))
			fill(d, IndexedPath(path+".device", k)+".count", &r.Devices[k].Count, count)
		}
	}
}

// IndexedPath names an element of a repeated block, for instance resources[1].
func IndexedPath(path string, index int) string {
	return path + "[" + strconv.Itoa(index) + "]"
}
