package launch

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// NodeFacts is what Build must know of the node and of the way the task will
// see it. Paths are absolute, as the task sees them.
type NodeFacts struct {
	TaskDir    string // the task's own directory; Files are relative to it
	LocalDir   string // scratch of the allocation; "" when there is none
	SecretsDir string // "" when there is none
	CodeDir    string // the code that came with the job, where its command starts; "" when none did
	AgentPath  string // the nomadlike binary; needed by mpi
	// Interface is the network interface that carries Member.Addr, and Network
	// the same as a CIDR such as 10.77.0.0/24; "" leaves the choice to the
	// frameworks.
	Interface string
	Network   string
	// PrivateHosts: the driver makes the task its own host name and hosts
	// file, so rank names resolve in it. When false, addresses stand in for
	// names wherever a framework would resolve them.
	PrivateHosts bool
	// SharedDir is a directory that has the same path on every node and that
	// only the agent may write, for instance /run/nomadlike. MPI launchers make
	// every process enter the directory that mpirun was started in, and task
	// directories differ between nodes; a link here makes them the same. ""
	// when task directories have the same path on all nodes anyway.
	SharedDir string
	// NCCLDebug is what NCCL logs in the prefix of mode horovod; "": INFO, and
	// NCCLDebugOff puts nothing there.
	NCCLDebug string
	// Env is put over everything else: the sockets and tokens of the agent.
	Env map[string]string
	// Defaults are put under everything else: PATH, HOME and the like, as the
	// driver would give them, so that a command may name them.
	Defaults map[string]string
	// Base is what a person's shell has: PATH, HOME and the like. Everything else
	// wins over it, the image's own values too where Image says that the task's
	// driver knows some: these, and what names them, are then left to the driver.
	Base  map[string]string
	Image bool
}

// Input is one rank of an attempt.
type Input struct {
	Job     *structs.Job
	Alloc   *structs.Allocation
	Members []structs.Member // by rank
	Node    NodeFacts
	// Gang is what NewGang gave for the same Members, for callers that build several
	// ranks of one gang; nil is made anew. It serves one job only.
	Gang *Gang
}

// Launch is what runs on the node for the rank.
type Launch struct {
	Command   []string          // argv; empty when Hold
	Hold      bool              // no command: the task lasts until stopped, commands come by exec
	Env       map[string]string // complete, but for what Base and Named leave to a driver of images
	Base      map[string]string // variables below those of the image
	Named     []string          // variables whose values, as they are written, name some of the image
	Files     []File            // to be written before the start
	Links     []Link            // to be made before the start and removed after the end
	Views     []View            // files that the task sees at another path too, where its driver can do that
	Hostname  string
	Hosts     []string         // lines of the hosts file, "address name", one for each rank
	Dir       string           // working directory
	PathFirst []string         // directories for programs, before those of PATH
	Notes     []structs.Reason // what the user may want to know; nothing here failed
}

// View shows a file of the task directory at a fixed path of the task.
type View struct {
	Path string // absolute, in the task
	File string // relative to the task directory
}

// File is a file of the task directory.
type File struct {
	Path    string // relative to the task directory
	Mode    uint32 // permission bits
	Content string
}

// Link is a symbolic link outside the task directory. Its name is the
// attempt's own; when it exists already, another rank of the attempt runs on
// this machine under another agent, and either task directory will do.
type Link struct {
	Path   string // absolute
	Target string
}

// Environ is the environment as sorted NAME=value lines.
func (l *Launch) Environ() []string {
	lines := make([]string, 0, len(l.Env))
	for name, value := range l.Env {
		lines = append(lines, name+"="+value)
	}
	slices.Sort(lines)
	return lines
}

// Build decides everything for one rank. It changes nothing it is given; any
// goroutine may call it. The error is a *structs.Error: the command cannot be
// read or must not run so (the user's), or the input is not whole (a defect).
func Build(input Input) (Launch, error) {
	b, err := newBuild(input)
	if err != nil {
		return Launch{}, err
	}
	b.common()
	b.emulate()
	switch b.job.Distributed.Mode {
	case structs.ModeNone, structs.ModeSingle, "":
		err = b.plain()
	case structs.ModePyTorch:
		err = b.pytorch()
	case structs.ModeMPI:
		err = b.mpi()
	case structs.ModeHorovod:
		err = b.horovod()
	case structs.ModeDeepSpeed:
		err = b.deepspeed()
	case structs.ModeTensorFlow:
		err = b.tensorflow()
	case structs.ModeMindSpore:
		err = b.mindspore()
	case structs.ModeJAX:
		err = b.jax()
	default:
		err = structs.NewError(structs.CodeNotAvailable, "launch.mode_not_available", "mode", b.job.Distributed.Mode)
	}
	if err != nil {
		return Launch{}, err
	}
	b.settle()
	b.out.Env = b.env.values
	b.out.Notes = append(b.out.Notes, b.env.notes()...)
	return b.out, nil
}

// ParamsFile is where a trial of a sweep finds its parameters, in its task's directory.
const ParamsFile = "params.json"

// Check reports whether the commands of a job can be launched at all, and what
// its author may want to know about them. It is Build for a made-up placement:
// what does not depend on nodes is found before the job queues.
func Check(job *structs.Job) ([]structs.Reason, error) {
	members := make([]structs.Member, job.RanksOf(max(job.Nodes, 1)))
	for rank := range members {
		members[rank] = structs.Member{Rank: rank, Name: structs.RankName(job, 0, 1, rank), Addr: "192.0.2.1"}
	}
	var notes []structs.Reason
	for subjob := range max(1, distinctCommands(job)) {
		out, err := Build(Input{
			Job:     job,
			Alloc:   &structs.Allocation{Subjob: subjob, Attempt: 1, Spec: job.SpecAt(0), Name: members[0].Name},
			Members: members,
			Node:    Somewhere(job),
		})
		if err != nil {
			return nil, err
		}
		for _, note := range out.Notes {
			if !slices.ContainsFunc(notes, func(n structs.Reason) bool { return equalReason(n, note) }) {
				notes = append(notes, note)
			}
		}
	}
	return notes, nil
}

// Somewhere is a node of which nothing is known, for those who look at what a job
// would run before it has one.
func Somewhere(job *structs.Job) NodeFacts {
	node := NodeFacts{
		TaskDir: "/task", AgentPath: "/nomadlike", PrivateHosts: true, Image: job.Task.Driver == structs.DriverDocker,
		LocalDir: "/task/" + LocalDir, SecretsDir: "/task/" + SecretsDir, Base: make(map[string]string, len(BaseNames)),
	}
	for _, name := range BaseNames {
		node.Base[name] = "$" + name
	}
	if job.Workdir != nil {
		node.CodeDir = CodeView
	}
	return node
}

// distinctCommands is how many subjobs must be looked at to see every command.
func distinctCommands(job *structs.Job) int {
	if job.Batch == nil { // the trials of a sweep have one
		return 1
	}
	return len(job.Batch.Subtasks)
}

func equalReason(a, b structs.Reason) bool {
	if a.ID != b.ID || len(a.Params) != len(b.Params) {
		return false
	}
	for name, value := range a.Params {
		if b.Params[name] != value {
			return false
		}
	}
	return true
}

// build is one Build under way.
type build struct {
	gang    *Gang
	job     *structs.Job
	alloc   *structs.Allocation
	members []structs.Member
	node    NodeFacts
	rank    int
	workers int // ranks that are no parameter servers
	slots   int // processes of each worker
	command string
	env     *environment
	out     Launch
}

func newBuild(input Input) (*build, error) {
	job, alloc := input.Job, input.Alloc
	if job == nil || alloc == nil || alloc.Rank < 0 || alloc.Rank >= len(input.Members) {
		return nil, structs.NewError(structs.CodeInternal, "launch.input", "what", "job, allocation or members are missing")
	}
	job = job.ForSubjob(alloc.Subjob)
	gang := input.Gang
	if gang == nil || len(gang.hosts) != len(input.Members) {
		var err error
		if gang, err = NewGang(input.Members); err != nil {
			return nil, err
		}
	}
	b := &build{
		gang: gang, job: job, alloc: alloc, members: input.Members, node: input.Node, rank: alloc.Rank,
		workers: job.NodesOf(len(input.Members)), slots: slotsOf(job, alloc), command: job.Task.Command, env: newEnvironment(),
	}
	if job.IsServer(b.rank) {
		b.slots = max(1, len(b.members[0].Devices))
	}
	b.env.user(job.Task.Env)
	if job.Batch != nil && alloc.Subjob < len(job.Batch.Subtasks) && alloc.Subjob >= 0 {
		subtask := job.Batch.Subtasks[alloc.Subjob]
		if subtask.Command != "" {
			b.command = subtask.Command
		}
		b.env.user(subtask.Env)
	}
	if job.Task.Arguments != "" {
		b.command += " " + job.Task.Arguments
	}
	if name := b.env.illegal(); name != "" {
		return nil, structs.NewError(structs.CodeInvalid, "launch.env_name", "name", name)
	}
	b.out.Hostname = b.members[b.rank].Name
	if b.out.Dir = job.Task.Dir; !path.IsAbs(b.out.Dir) {
		b.out.Dir = path.Join(cmp.Or(b.node.CodeDir, b.node.TaskDir), b.out.Dir)
	}
	b.out.Hosts = slices.Clip(gang.hosts) // shared: a caller that appends gets its own
	return b, nil
}

// slotsOf is the number of processes of a node: as the job says, else one for
// each accelerator, else one. A spec that asks for all devices of a node does
// not say how many they are; the allocation does.
func slotsOf(job *structs.Job, alloc *structs.Allocation) int {
	if job.Distributed.ProcsPerNode > 0 {
		return job.Distributed.ProcsPerNode
	}
	return max(1, len(alloc.Devices), alloc.Spec.DeviceCount())
}

// plain runs the command as typed on every node.
func (b *build) plain() error {
	words, err := b.words()
	b.out.Command = words
	return err
}

// words parts the command into words and puts in the environment.
func (b *build) words() ([]string, error) {
	b.settle() // the mode has set its variables
	words, unknown, err := b.expanded()
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "launch.command_unreadable", "command", b.command, "cause", err).Because(err)
	}
	if len(words) == 0 {
		return nil, structs.NewError(structs.CodeInvalid, "launch.command_empty")
	}
	for _, name := range unknown {
		b.note("launch.variable_unknown", "name", name)
	}
	return words, nil
}

// expanded is the command in words, with the variables that it names and nobody
// set; those stay as they are written.
func (b *build) expanded() (words, unknown []string, err error) {
	if !strings.Contains(b.command, "$") {
		words, err = b.gang.parted(b.command)
		return slices.Clone(words), nil, err
	}
	words, _, err = structs.ExpandCommand(b.command, func(name string) (string, bool) {
		if value, ok := b.env.values[name]; ok {
			return value, true
		}
		if !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
		// A shell that the command starts may still know it.
		return "${" + name + "}", true
	})
	return words, unknown, err
}

func (b *build) note(id string, params ...any) {
	b.out.Notes = append(b.out.Notes, *structs.NewReason(id, params...))
}
