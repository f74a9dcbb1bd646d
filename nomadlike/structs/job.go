package structs

import "time"

// JobType says what kind of work a job is.
type JobType string

// The job types of the job file.
const (
	JobTypeTraining JobType = "training"
	JobTypeBatch    JobType = "batch"
	JobTypeDev      JobType = "dev"
)

// Priority is the tier of a job in the queue.
type Priority string

// The tiers, lowest first. Only administrators may use critical.
const (
	PriorityNormal   Priority = "normal"
	PriorityUrgent   Priority = "urgent"
	PriorityCritical Priority = "critical"
)

// Rank orders tiers: a larger number is served first.
func (p Priority) Rank() int {
	switch p {
	case PriorityCritical:
		return 2
	case PriorityUrgent:
		return 1
	default:
		return 0
	}
}

// Job is what the user wants: 训练任务. It is the only Go form of a job; HCL,
// JSON, Raft and diff all derive from it.
//
// Writers: everything above "fixed at admission" by the user; the rest by
// server/admit before the log. After that a Job is never changed: what
// happens to it is told by Subjob, Attempt and Allocation.
type Job struct {
	Name            string            `json:"name"`
	Project         string            `json:"project"`
	Type            JobType           `json:"type"`
	Category        string            `json:"category,omitempty"`
	Description     string            `json:"description,omitempty"`
	Priority        Priority          `json:"priority"`
	Preemptible     bool              `json:"preemptible,omitempty"`
	Access          string            `json:"access,omitempty"` // read-write | read-only | none
	TimeLimit       Duration          `json:"time_limit,omitempty"`
	LimitWarning    *LimitWarning     `json:"limit_warning,omitempty" since:"16"`
	ExpectedRuntime Duration          `json:"expected_runtime,omitempty"`
	Nodes           int               `json:"nodes"`
	Batch           *Batch            `json:"batch,omitempty"`
	Sweep           *Sweep            `json:"sweep,omitempty" since:"55"` // nil: no trials
	Distributed     Distributed       `json:"distributed"`
	Resources       []Resources       `json:"resources"` // equal alternatives; the first that can start wins
	Placement       Placement         `json:"placement,omitzero"`
	VIP             *VIP              `json:"vip,omitempty"`
	Task            Task              `json:"task"`
	Workdir         *Workdir          `json:"workdir,omitempty" since:"32"` // nil: no code travels with it
	Algorithms      []DataRef         `json:"algorithms,omitempty"`
	Datasets        []DataRef         `json:"datasets,omitempty"`
	Models          []DataRef         `json:"models,omitempty"`
	Volumes         []DataRef         `json:"volumes,omitempty"`
	Mounts          []Mount           `json:"mounts,omitempty"`
	Output          string            `json:"output,omitempty"`
	OutputStorage   string            `json:"output_storage,omitempty"`         // "": the first that takes outputs
	OutputKeep      *OutputKeep       `json:"output_keep,omitempty" since:"45"` // nil: the output becomes no version of named data
	Restart         *Restart          `json:"restart,omitempty"`
	Elastic         *Elastic          `json:"elastic,omitempty" since:"16"` // nil: the gang has all of its nodes, or of old words, see ElasticRule
	Checkpoint      *Checkpoint       `json:"checkpoint,omitempty"`
	Hang            *Hang             `json:"hang,omitempty"`
	StopGrace       Duration          `json:"stop_grace"`
	Fencing         string            `json:"fencing,omitempty"`  // commit (default) | strict
	Supports        *Supports         `json:"supports,omitempty"` // nil: all of it
	Throttle        *Throttle         `json:"throttle,omitempty"` // nil: none to begin with
	Debug           *Debug            `json:"debug,omitempty"`
	SSH             bool              `json:"ssh,omitempty"`
	Jupyter         bool              `json:"jupyter,omitempty"`
	Tensorboard     *Tensorboard      `json:"tensorboard,omitempty"`
	Metrics         *Metrics          `json:"metrics,omitempty"` // nil: the common forms
	Meta            map[string]string `json:"meta,omitempty"`
	Tags            []string          `json:"tags,omitempty" since:"17"` // what people find it by; may change at any time, see JobAnnotate
	Note            string            `json:"note,omitempty" since:"17"` // what people say of it; the same
	Notify          *JobNotify        `json:"notify,omitempty" since:"37"`
	After           []After           `json:"after,omitempty" since:"52"`          // jobs that it waits for before it may start
	Begin           string            `json:"begin,omitempty" since:"52"`          // an Instant before which it does not start
	Deadline        string            `json:"deadline,omitempty" since:"52"`       // an Instant by which it has ended, or is ended
	MaxQueueTime    Duration          `json:"max_queue_time,omitempty" since:"52"` // then it leaves the queue, if it has not started

	// Fixed at admission.
	ID             string   `json:"id,omitempty"`
	User           string   `json:"user,omitempty"`
	SubmittedAt    UnixNano `json:"submitted_at,omitempty"`
	BeginAt        UnixNano `json:"begin_at,omitempty" since:"52"`    // that Begin meant; 0: none
	DeadlineAt     UnixNano `json:"deadline_at,omitempty" since:"52"` // that Deadline meant; 0: none
	IdempotencyKey string   `json:"idempotency_key,omitempty"`
	Source         string   `json:"source,omitempty"` // the job file as submitted, for people
	// Resume is the checkpoint of an ended job that this one goes on from, nil
	// for a job that begins anew.
	Resume *SavedCheckpoint `json:"resume,omitempty"`
	// PatientStarts: after an attempt whose command could not be started for the
	// job's own sake the next one waits, longer each time, and events name the cause.
	// Set by the server that admits it; jobs of older versions go on as they did.
	PatientStarts bool `json:"patient_starts,omitempty" since:"16"`
	// OutsideYields: in a project without quotas the job, if it is preemptible,
	// yields to the owners of a guarantee. Set like PatientStarts.
	OutsideYields bool `json:"outside_yields,omitempty" since:"16"`
	// SavesAtEnds: its checkpoint signal and grace come at every end that leaves
	// time for them, not only where it makes room. Set like PatientStarts.
	SavesAtEnds bool `json:"saves_at_ends,omitempty" since:"16"`
	// KillsLast: a VIP job ends those on its machines to kill when nothing else is
	// on any of its machines, not with the nomination. Set like PatientStarts.
	KillsLast bool `json:"kills_last,omitempty" since:"16"`
	// Number counts the jobs of the cluster from 1, in the order of the log. Set by
	// state.Apply; 0 of jobs of older versions.
	Number uint64 `json:"number,omitempty" since:"52"`
}

// Batch makes a job several independent sub-jobs under one name.
type Batch struct {
	Count    int            `json:"count,omitempty"`    // N equal sub-jobs, told apart by an index
	Subtasks []BatchSubtask `json:"subtasks,omitempty"` // different sub-jobs, in order
	// Array numbers the sub-jobs as ParseArray reads it; Count is how many it has.
	Array string `json:"array,omitempty" since:"55"`
	// Parallel is how many may be placed, or wait for a place, at a time; 0: all. It may be
	// changed while the job lives, see JobParallel.
	Parallel int `json:"parallel,omitempty" since:"55"`
}

// BatchSubtask is one of the different sub-jobs of a batch.
type BatchSubtask struct {
	Name      string            `json:"name"`
	Algorithm string            `json:"algorithm,omitempty"`
	Command   string            `json:"command,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
}

// Mode is a way in which the processes of a job find each other.
type Mode string

// The distributed modes of the job file.
const (
	ModeSingle     Mode = "single"
	ModePyTorch    Mode = "pytorch"
	ModeDeepSpeed  Mode = "deepspeed"
	ModeHorovod    Mode = "horovod"
	ModeMPI        Mode = "mpi"
	ModeTensorFlow Mode = "tensorflow"
	ModeMindSpore  Mode = "mindspore"
	ModeJAX        Mode = "jax"
	ModeNone       Mode = "none"
)

// Distributed names the mode of a job with its options; an option that does
// not belong to the mode is refused by Validate.
type Distributed struct {
	Mode             Mode   `json:"mode"`
	WorldSize        string `json:"world_size,omitempty"`        // nodes | procs: what WORLD_SIZE counts
	Rewrite          string `json:"rewrite,omitempty"`           // launch | torchrun | procs | none
	Launcher         string `json:"launcher,omitempty"`          // mode-specific launcher choice
	ProcsPerNode     int    `json:"procs_per_node,omitempty"`    // 0: devices of the spec, 1 without devices
	MasterPort       int    `json:"master_port,omitempty"`       // 0: assigned by the scheduler
	ParameterServers int    `json:"parameter_servers,omitempty"` // tensorflow
	Chief            bool   `json:"chief,omitempty"`             // tensorflow
	// MinNodes is what nodes of protocol 15 read of an Elastic by torchrun, and what
	// jobs of that time say: ask ElasticRule. Goes with wire.OldestProtocol 16.
	MinNodes  int    `json:"min_nodes,omitempty"`
	RankTable string `json:"rank_table,omitempty"` // mindspore
	// Emulate names a platform whose variables and files the ranks find as well.
	Emulate string `json:"emulate,omitempty" since:"16"`
}

// Resources is a spec 规格: what one compute node of a job gets.
type Resources struct {
	Label        string  `json:"label,omitempty"`
	CPU          float64 `json:"cpu"`                     // cores, fractions allowed
	Memory       int64   `json:"memory"`                  // bytes
	SharedMemory int64   `json:"shared_memory,omitempty"` // bytes
	// Disk bounds what a rank writes on its node outside of storages, in bytes; 0: as
	// much as the node allows. It is no reservation.
	Disk    int64           `json:"disk,omitempty" since:"16"`
	SKU     int             `json:"sku,omitempty"` // multiples of the pool's unit
	Devices []DeviceRequest `json:"devices,omitempty"`
	Ports   []PortRequest   `json:"ports,omitempty"`
	RDMA    bool            `json:"rdma,omitempty"`
	// RDMAByNodes: what the nodes say of themselves decides where RDMA is, and a
	// pool's record can only deny it. Set at admission; without it, in jobs of older
	// versions, the record must promise it.
	RDMAByNodes bool `json:"rdma_by_nodes,omitempty" since:"16"`
	// LastDevices is how many devices of the one device request the last node of
	// a whole gang gets when that is less than the others get: 12 devices on nodes
	// of 8 are a node of 8 and a last one of 4. 0: as many as the others.
	LastDevices int `json:"last_devices,omitempty"`
}

// DevicesAll as the count of a device request asks for every device of the
// node that meets it, at least one, none of them held by others.
const DevicesAll = -1

// DeviceCount is the number of accelerator cards that the spec counts out; one
// that asks for all of a node counts none, its allocation knows.
func (r Resources) DeviceCount() int {
	n := 0
	for _, d := range r.Devices {
		n += max(d.Count, 0)
	}
	return n
}

// DeviceRequest asks for accelerators of one kind on each node.
type DeviceRequest struct {
	Kind   string   `json:"kind"`            // vendor/type, for instance nvidia/gpu
	Count  int      `json:"count,omitempty"` // DevicesAll: every one of the node
	Model  string   `json:"model,omitempty"`
	Models []string `json:"models,omitempty"` // any of these; instead of Model
	Memory int64    `json:"memory,omitempty"` // bytes at least
	IDs    []string `json:"ids,omitempty"`    // explicit, on pinned nodes
}

// PortRequest asks for a TCP port of the node on every rank.
type PortRequest struct {
	Name   string `json:"name"`
	Static int    `json:"static,omitempty"` // 0: any free port of the node's range
}

// Placement narrows where a job may run.
type Placement struct {
	Pool          string   `json:"pool,omitempty"`
	Nodes         []string `json:"nodes,omitempty"` // node names or ids
	DriverVersion string   `json:"driver_version,omitempty"`
	SpreadOrPack  string   `json:"spread_or_pack,omitempty"` // pack (default) | spread
}

// Task is the process or container of every rank.
type Task struct {
	Driver  string `json:"driver"` // exec | docker
	Image   string `json:"image,omitempty"`
	Pull    string `json:"pull,omitempty"`
	Command string `json:"command"`
	// Arguments are start-up options that stand behind the command, and behind that
	// of each subtask.
	Arguments string            `json:"arguments,omitempty" since:"16"`
	Dir       string            `json:"dir,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	User      string            `json:"user,omitempty"`
	Hooks     []Hook            `json:"hooks,omitempty"`
	Logs      *LogPolicy        `json:"logs,omitempty"`
	// Ulimits are limits of the task's processes by name, as ParseUlimit reads
	// them; those that are not named are the node's.
	Ulimits map[string]string `json:"ulimits,omitempty"`
	// Options are settings of the container engine by name, such as cap_add or ipc.
	// Each but OptionEntrypoint is refused unless the node's configuration allows it.
	Options map[string]string `json:"options,omitempty" since:"16"`
	// Secrets are what the task is given beside Env, by name: the job never holds a
	// value. In the job file they stand in env, and in secrets where they are files.
	Secrets []SecretUse `json:"secrets,omitempty" since:"26"`
}

// OptionEntrypoint, with the value OptionEntrypointImage, puts the image's entrypoint
// before the command.
const (
	OptionEntrypoint      = "entrypoint"
	OptionEntrypointImage = "image"
	OptionsMax            = 32
)

// Hook is a lifecycle script 生命周期脚本.
//
//	prestart   before any rank's command starts; its failure ends the attempt
//	poststart  beside the command, once that runs
//	prestop    before the signal that asks the command to stop
//	poststop   after the command, however that ended, unless it was killed
type Hook struct {
	When    string   `json:"when"` // prestart | poststart | prestop | poststop
	Command string   `json:"command"`
	Timeout Duration `json:"timeout,omitempty"` // 0: HookTimeoutDefault; then it is killed and has failed
}

// The moments of hooks.
const (
	HookPrestart  = "prestart"
	HookPoststart = "poststart"
	HookPrestop   = "prestop"
	HookPoststop  = "poststop"
)

// Limits of a hook.
const (
	HookTimeoutDefault = Duration(5 * time.Minute)
	HookTimeoutMax     = Duration(24 * time.Hour)
)

// LogPolicy bounds what the logs of one task may keep on its node.
type LogPolicy struct {
	FileSizeMax int64 `json:"file_size_max,omitempty"` // bytes
	Files       int   `json:"files,omitempty"`
}

// DataRef names a dataset, model, algorithm or volume that a job mounts.
type DataRef struct {
	Name     string `json:"name"`
	Version  int    `json:"version,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Prepare  bool   `json:"prepare,omitempty"`
	// From is the collection that a dataset or model is taken from: private
	// (default), favorite, which names a version too, or pretrained, of models.
	From string `json:"from,omitempty"`
	// Storage is the administrator's storage that it lies in; "" means the first
	// of the node that serves its kind.
	Storage string `json:"storage,omitempty"`
	// Annotations shows the directory annotation of a labelled dataset at its
	// own place as well.
	Annotations bool `json:"annotations,omitempty"`
	// Source is a path below the storage that stands in the place of the name. In
	// a storage that is read over the network it is one file, or with a "/" at its
	// end all below it.
	Source string `json:"source,omitempty"`
	// SHA256 is the digest, in hexadecimal, that the one file of Source must have.
	SHA256 string `json:"sha256,omitempty"`
	// Project is another one that has the named data and lets everybody use it.
	Project string `json:"project,omitempty" since:"39"`
	// Tag names a version of named data by the tag that it has at submission.
	Tag string `json:"tag,omitempty" since:"39"`
	// Object is what the name means, nil for a directory of a storage. Set at admission.
	Object *DataPick `json:"object,omitempty" since:"39"`
}

// The collections of DataRef.From.
const (
	FromPrivate    = "private"
	FromFavorite   = "favorite"
	FromPretrained = "pretrained"
)

// Mount puts a directory of an administrator's storage into the task: an
// absolute path of the node, or a path below the storage that is named.
type Mount struct {
	Target   string `json:"target"`
	Source   string `json:"source,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Storage  string `json:"storage,omitempty"`
}

// Restart is plain fault restart 故障重启: how often a rank's own failure may
// start the gang again.
type Restart struct {
	MaxRestarts int      `json:"max_restarts"`
	Delay       Duration `json:"delay,omitempty"`
}

// LimitWarning has every rank sent a signal some time before the time limit ends
// the job.
type LimitWarning struct {
	Before Duration `json:"before"`
	Signal string   `json:"signal,omitempty"`
}

// Checkpoint is checkpoint resume 断点续训.
type Checkpoint struct {
	MaxResumes int      `json:"max_resumes"`
	Signal     string   `json:"signal,omitempty"`
	Grace      Duration `json:"grace,omitempty"`
	Precheck   bool     `json:"precheck,omitempty"`
	// Elastic is what jobs of protocol 15 and before say: ask ElasticRule.
	Elastic     *Elastic     `json:"elastic,omitempty"`
	Performance *Performance `json:"performance,omitempty"`
	// Dir is a directory as the task sees it, absolute, whose entries that match
	// Pattern are checkpoints: the node of rank 0 watches it.
	Dir     string `json:"dir,omitempty"`
	Pattern string `json:"pattern,omitempty"` // as of path.Match; "" means every entry
}

// Performance is the performance watch 性能检测: a figure that the training
// writes into its log with every iteration is held against a threshold.
type Performance struct {
	Threshold float64 `json:"threshold"`
	Action    string  `json:"action,omitempty"`  // WatchAlert | WatchReschedule
	Compare   string  `json:"compare,omitempty"` // gt | lt: which side of the threshold is bad
	// Pattern finds the figure in a line: the first of two groups divided by the
	// second, or the one group. "" is PerformancePattern.
	Pattern string `json:"pattern,omitempty"`
	Times   int    `json:"times,omitempty"` // bad lines in a row until something is done
}

// What a watch over a training does when it finds something.
const (
	WatchAlert      = "alert"      // an event
	WatchReschedule = "reschedule" // the gang saves its work and starts again elsewhere
)

// PerformancePattern is what the performance watch looks for unless a job says
// otherwise: the line of the reference guide, hardware time over end-to-end time.
const PerformancePattern = `hardware time is ([0-9.eE+-]+) and e2e time is ([0-9.eE+-]+)`

// Bounds and defaults of watches.
const (
	WatchTimesMax           = 1000
	PerformanceTimesDefault = 3
	HangFactorDefault       = 10
	HangFactorMax           = 1000
	HangLeastDefault        = Duration(2 * time.Minute)
	HangMostDefault         = Duration(30 * time.Minute)
	HangMin                 = Duration(time.Second)
	HangMax                 = Duration(7 * 24 * time.Hour)
)

// Hang is the hang watch: a gang that logs nothing, makes no step and leaves
// devices idle for Factor times as long as a step takes does not come back by
// itself. How long a step takes is learned from the log.
type Hang struct {
	Action  string   `json:"action,omitempty"`  // WatchAlert | WatchReschedule
	Factor  float64  `json:"factor,omitempty"`  // how many steps' time of silence
	Least   Duration `json:"least,omitempty"`   // silence shorter than that never counts
	Most    Duration `json:"most,omitempty"`    // silence of that length counts whatever the devices do
	Pattern string   `json:"pattern,omitempty"` // finds the step's number, its one group; "": StepPattern
}

// StepPattern is how steps are found in a log unless a job says otherwise.
const StepPattern = `(?i)\b(?:global[ _-]?step|step|iter(?:ation)?)\b\s*[:=#\[(]?\s*(\d+)`

// Supports says what a job can bear while it runs. What is not said it can.
type Supports struct {
	Pause     *bool `json:"pause,omitempty"`
	Throttle  *bool `json:"throttle,omitempty"`
	FinishNow *bool `json:"finish_now,omitempty" since:"16"` // its state is worth keeping when it is told to finish early
	Resume    *bool `json:"resume,omitempty" since:"16"`     // another job may go on from what it saved
}

// Pauses reports whether the job can be paused.
func (s *Supports) Pauses() bool { return s == nil || s.Pause == nil || *s.Pause }

// Finishes reports whether the job can be finished early.
func (s *Supports) Finishes() bool { return s == nil || s.FinishNow == nil || *s.FinishNow }

// Resumes reports whether another job can go on from what the job saved.
func (s *Supports) Resumes() bool { return s == nil || s.Resume == nil || *s.Resume }

// Throttles reports whether the job can be throttled.
func (s *Supports) Throttles() bool { return s == nil || s.Throttle == nil || *s.Throttle }

// Throttle has a job leave time to others from its start: it stands still for
// Idle after each Busy, until somebody lifts that.
type Throttle struct {
	Idle Duration `json:"keep"` // the log knows it by its old name
	Busy Duration `json:"busy"` // 0: ThrottleBusyDefault
}

// Debug keeps a failed job enterable.
type Debug struct {
	Hold Duration `json:"hold"`
}

// Tensorboard serves a summary directory.
type Tensorboard struct {
	LogDir string `json:"logdir"`
}

// SubjobCount is the number of independent gangs of the job: 1 for training.
func (j *Job) SubjobCount() int {
	if j.Sweep != nil {
		return j.Sweep.Trials()
	}
	if j.Batch == nil {
		return 1
	}
	if len(j.Batch.Subtasks) > 0 {
		return len(j.Batch.Subtasks)
	}
	return j.Batch.Count
}

// NeedsBarrier reports whether no rank may start before all allocations of an
// attempt are prepared; a gang of one rank skips the barrier.
func (j *Job) NeedsBarrier() bool { return j.RanksOf(j.Nodes) > 1 }

// FirstRankLeads reports whether rank 0 alone runs the command of a gang of
// several nodes: a launcher that reaches the other ranks, which hold their
// place until it is done.
func (j *Job) FirstRankLeads() bool {
	if j.Nodes < 2 {
		return false
	}
	switch j.Distributed.Mode {
	case ModeMPI, ModeHorovod:
		return true
	case ModeDeepSpeed:
		return j.Distributed.Launcher == LauncherPDSH
	}
	return false
}

// MaxRestarts is the user's budget of restarts after failures of their own:
// max_restarts, or max_resumes of a job that resumes from checkpoints.
func (j *Job) MaxRestarts() int {
	switch {
	case j.Restart != nil:
		return j.Restart.MaxRestarts
	case j.Checkpoint != nil:
		return j.Checkpoint.MaxResumes
	}
	return 0
}

// SpecAt is what a node contributes under the alternative resources block with the
// given index: the block, and the parameter servers of the node that has most.
func (j *Job) SpecAt(index int) Resources {
	return withServers(j.block(index), j.serversMost())
}

func (j *Job) block(index int) Resources {
	if index < 0 || index >= len(j.Resources) {
		return Resources{}
	}
	return j.Resources[index]
}

// SpecOf is what one rank of a gang of the given size gets under the
// alternative with the given index: the spec, with fewer devices on the last
// node of a whole gang where LastDevices says so. A size of as many nodes takes
// the servers beside a worker as part of its share; one that counts them as
// ranks has a share for each.
func (j *Job) SpecOf(index, rank, size int) Resources {
	if j.Servers() > 0 {
		switch {
		case j.IsServer(rank):
			return serverSpec()
		case size > j.Nodes:
			size = j.Nodes
		default:
			return withServers(j.rankSpec(index, rank, size), j.serversBeside(rank))
		}
	}
	return j.rankSpec(index, rank, size)
}

func (j *Job) rankSpec(index, rank, size int) Resources {
	spec := j.block(index)
	if spec.LastDevices > 0 && len(spec.Devices) == 1 && rank == size-1 && size == j.Nodes {
		last := spec.Devices[0]
		last.Count = spec.LastDevices
		spec.Devices = []DeviceRequest{last}
	}
	return spec
}

// MasterPortName is the port that distributed modes rendezvous on; the
// scheduler assigns it on rank 0's node, for TensorFlow on every rank's.
const MasterPortName = "master"

// PortRequests lists the ports that rank needs: those of the spec on every
// rank, the rendezvous port on rank 0 of modes that use one, and those of the
// parameter servers beside it.
func (j *Job) PortRequests(spec Resources, rank int) []PortRequest {
	requests := append([]PortRequest(nil), spec.Ports...)
	// TensorFlow's workers all listen; the others meet at rank 0.
	if j.Distributed.Mode.UsesMasterPort() && (rank == 0 || j.Distributed.Mode == ModeTensorFlow) {
		requests = append(requests, PortRequest{Name: MasterPortName, Static: j.Distributed.MasterPort})
	}
	return append(requests, j.serverPorts()...)
}
