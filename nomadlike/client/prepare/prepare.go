package prepare

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/checkpoint"
	"nomadlike/nomadlike/client/environment"
	"nomadlike/nomadlike/client/hooks"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/client/secrets"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// slowStep is how long a step of the preparation may take before the servers
// are told of it; quick ones would only fill the log.
const slowStep = 250 * time.Millisecond

// The steps of a preparation that this version has, as people see them.
const (
	stepFiles = "files"
	stepImage = "image"
	stepHooks = "hooks"
)

// Prepared is what a preparation leaves for the start.
type Prepared struct {
	Strict  bool // the task ends with the node's lease
	Spec    driver.TaskSpec
	shell   io.Closer
	guarded string // the allocation whose gang's ports are kept
	links   []launch.Link
	Told    *environment.Told // of its environment before the start; nil when nobody looked
	Image   string            // that the task runs on, see imageOf
}

// Preparer gets allocations ready to start. Any goroutine may use it.
type Preparer struct {
	Config
	looks chan struct{} // one for each look for data under way
}

// Config is what preparing needs.
type Config struct {
	Layout      layout.Layout
	Drivers     map[string]driver.Driver
	Storages    []workspace.Storage
	Data        *Datasets
	Code        *Code
	Owners      *account.Owners
	Binary      string // the agent's program
	SharedDir   string
	EnvFile     string
	NCCLDebug   string
	SysRoot     string
	Events      loop.Events
	Notes       session.Teller
	Node        *machine.Registration
	Disks       *machine.Disks
	Rooms       *room.Rooms
	Guard       *machine.Guard
	Environment *environment.Environment
	Hooks       *hooks.Hooks
	Secrets     *secrets.Keeper
	Devices     Reserver
	Holds       HoldRecorder
	Shells      Sheller
	Now         func() time.Time
	Log         *slog.Logger
}

// Reserver makes devices ready for a task.
type Reserver interface {
	Reserve(ctx context.Context, a *structs.Assignment) (reserved []driver.Reservation, env map[string]string, failure *alloc.PrepareFailed)
	Registered() []structs.Device
}

// HoldRecorder stores what a debug hold will need.
type HoldRecorder interface {
	Record(id string, job *structs.Job, spec driver.TaskSpec) error
}

// Sheller opens the remote shell of a rank.
type Sheller interface {
	Open(a *structs.Assignment, by account.Owner) (env map[string]string, shell io.Closer, err error)
	Reopen(a *structs.Assignment) io.Closer
}

// New makes a preparer.
func New(config Config) *Preparer {
	return &Preparer{Config: config, looks: make(chan struct{}, looksAtOnce)}
}

// Prepare gets an allocation ready to start: its ports are free, its
// directories and files are there, its rank's socket listens. What failed is
// told with whose fault it is. It may be repeated after a crash.
func (r *Preparer) Prepare(ctx context.Context, a *structs.Assignment) (*Prepared, *alloc.PrepareFailed) {
	id := a.Alloc.ID
	slow := time.AfterFunc(slowStep, func() { r.Events.Event(id, alloc.Progressed{Step: stepFiles}) })
	defer slow.Stop()

	if a.Job == nil {
		return nil, alloc.ByNode("client.launch_failed", "cause", "the job is missing")
	}
	if _, ok := r.Drivers[a.Job.Task.Driver]; !ok {
		return nil, alloc.ByNode("client.driver_missing", "driver", a.Job.Task.Driver)
	}
	if failure := r.precheck(a); failure != nil {
		return nil, failure
	}
	r.Disks.Look()
	if fault := r.Node.Unfit(); fault != nil {
		return nil, alloc.ByNode("client.node_unfit", "fault", fault.Name) // it was placed before the servers heard
	}
	if name, port, ok := r.portTaken(a.Alloc.Ports); ok {
		return nil, alloc.ByNode("client.port_taken", "port", port, "name", name)
	}
	owner, err := r.Owners.Of(a)
	if err != nil {
		return nil, alloc.ByJob(err)
	}
	if err := r.makeDirs(id, owner, a.Job.Task.Driver); err != nil {
		return nil, alloc.ByNode("client.dir_failed", "cause", err)
	}
	r.Rooms.Bound(id, a.Alloc.Spec.Disk)
	p := &Prepared{Strict: a.Job.Fencing == alloc.FencingStrict}
	env, shell, err := r.Shells.Open(a, owner)
	if err != nil {
		return nil, alloc.ByNode("client.dir_failed", "cause", err)
	}
	p.shell = shell
	r.Guard.Enter(a, owner)
	p.guarded = id
	if failure := r.fill(ctx, p, a, env, owner); failure != nil {
		r.Release(p)
		return nil, failure
	}
	if ctx.Err() != nil {
		r.Release(p)
		return nil, alloc.ByNode("client.prepare_cancelled")
	}
	return p, nil
}

// fill makes the command line and writes what belongs to it.
func (r *Preparer) fill(ctx context.Context, p *Prepared, a *structs.Assignment, env map[string]string, owner account.Owner) *alloc.PrepareFailed {
	id := a.Alloc.ID
	reserved, seen, failure := r.Devices.Reserve(ctx, a)
	if failure != nil {
		return failure
	}
	env = maps.Clone(env)
	if env == nil {
		env = make(map[string]string, len(seen)+1)
	}
	env[checkpoint.EnvInbox] = path.Join(r.Layout.Task(id), checkpoint.InboxDir)
	maps.Copy(env, seen)
	space, failure := r.openWorkspace(ctx, a, owner)
	if failure != nil {
		return failure
	}
	codeDir, failure := r.Code.bring(ctx, a, space, owner)
	if failure != nil {
		return failure
	}
	maps.Copy(env, space.env)
	if a.Job.Task.HoldsSecrets() && !masks(r.Node.Node(), a.Job.Task.Driver) {
		return alloc.ByNode("client.secrets_unmasked", "driver", a.Job.Task.Driver)
	}
	given, secretsDir, failure := secretsFor(ctx, r.Secrets, a, owner)
	if failure != nil {
		return failure
	}
	node := r.nodeFacts(a, env, owner)
	node.CodeDir = codeDir
	if secretsDir != "" && a.Job.Task.Driver != structs.DriverDocker {
		node.SecretsDir = secretsDir
	}
	if err := r.nodeEnv(&node); err != nil {
		return alloc.ByNode("client.env_file", "path", r.EnvFile, "cause", err)
	}
	l, err := launch.Build(launch.Input{Job: a.Job, Alloc: a.Alloc, Members: a.Members, Node: node})
	if err != nil {
		return alloc.ByJob(err)
	}
	for _, note := range l.Notes {
		r.Log.Debug("launch note", logkey.AllocID, id, logkey.Reason, note.ID, "params", note.Params)
	}
	if err := writeFiles(r.Layout.Task(id), l.Files, owner); err != nil {
		return alloc.ByNode("client.dir_failed", "cause", err)
	}
	if err := r.linkProgram(r.Layout.Task(id), owner); err != nil {
		return alloc.ByNode("client.dir_failed", "cause", err)
	}
	if err := makeWorkingDir(r.Layout.Task(id), a.Job, owner); err != nil {
		r.Log.Debug("working directory is not made", logkey.AllocID, id, logkey.Error, err) // the driver will tell
	}
	if a.Job.Task.Driver != structs.DriverDocker { // containers see what links lead to as mounts
		for _, link := range l.Links {
			if err := makeLink(link); err != nil {
				return alloc.ByNode("client.dir_failed", "cause", err)
			}
			p.links = append(p.links, link)
		}
	}
	if err := space.link(r.Layout.Task(id), owner); err != nil {
		return alloc.ByNode("client.dir_failed", "cause", err)
	}
	space.rewrite(&l)
	p.Spec = r.taskSpec(a, &l, owner)
	p.Spec.ImageCredentials = secrets.ImageCredentials(given)
	if secretsDir != "" {
		shown := driver.Mount{HostPath: secretsDir, TaskPath: node.SecretsDir, ReadOnly: true}
		p.Spec.Reservations = append(p.Spec.Reservations, driver.Reservation{Mounts: []driver.Mount{shown}})
	}
	p.Spec.Mounts = append(p.Spec.Mounts, space.mounts...)
	p.Spec.Reservations = append(p.Spec.Reservations, reserved...)
	var failed *alloc.PrepareFailed
	if p.Image, failed = r.fetch(ctx, a, &p.Spec); failed != nil {
		return failed
	}
	if failure := r.prestart(ctx, a, p.Spec); failure != nil { // records the spec, without secrets
		return failure
	}
	r.foresee(ctx, a, p, l.Notes)
	p.Spec.Env = append(p.Spec.Env, secrets.Env(given)...)
	p.Spec.Mask = secrets.Masks(given)
	return nil
}

// prestart runs the hooks that come before the command.
func (r *Preparer) prestart(ctx context.Context, a *structs.Assignment, spec driver.TaskSpec) *alloc.PrepareFailed {
	id := a.Alloc.ID
	if err := errors.Join(r.Hooks.Record(id, a.Job, spec), r.Holds.Record(id, a.Job, spec)); err != nil {
		return alloc.ByNode("client.dir_failed", "cause", err)
	}
	slow := time.AfterFunc(slowStep, func() { r.Events.Event(id, alloc.Progressed{Step: stepHooks}) })
	defer slow.Stop()
	if failure := r.Hooks.Around(ctx, r.Drivers[a.Job.Task.Driver], id, structs.HookPrestart, nil); failure != nil {
		return &alloc.PrepareFailed{Cause: &structs.Reason{ID: failure.ID, Params: failure.Params}, Infra: failure.Code == structs.CodeUnavailable}
	}
	return nil
}

// container is what a driver of containers needs to know of the job. Gangs of
// several nodes meet on the nodes' own network.
func container(a *structs.Assignment) *driver.Container {
	if a.Job.Task.Image == "" {
		return nil
	}
	made := &driver.Container{Image: a.Job.Task.Image, Pull: a.Job.Task.Pull, RDMA: a.Alloc.Spec.RDMA}
	for name, value := range a.Job.Task.Options {
		if name == structs.OptionEntrypoint {
			made.ImageEntrypoint = value == structs.OptionEntrypointImage
			continue
		}
		if made.Options == nil {
			made.Options = make(map[string]string)
		}
		made.Options[name] = value
	}
	if len(a.Members) > 1 {
		made.Network = driver.NetworkHost
	}
	return made
}

func (r *Preparer) taskSpec(a *structs.Assignment, l *launch.Launch, owner account.Owner) driver.TaskSpec {
	id := a.Alloc.ID
	spec := driver.TaskSpec{
		ID:        alloc.TaskID(id),
		AllocID:   id,
		JobName:   a.Job.Name,
		Attempt:   a.Alloc.Attempt,
		Rank:      a.Alloc.Rank,
		Command:   l.Command,
		Hold:      l.Hold,
		Env:       l.Environ(),
		EnvBase:   entries(l.Base),
		EnvNamed:  l.Named,
		PathFirst: l.PathFirst,
		Dir:       l.Dir,
		TaskDir:   r.Layout.Task(id),
		User:      owner.Name(&a.Job.Task),
		Hostname:  l.Hostname,
		Hosts:     l.Hosts,
		Resources: driver.Resources{CPU: a.Alloc.Spec.CPU, Memory: a.Alloc.Spec.Memory, Shm: a.Alloc.Spec.SharedMemory},
		Ulimits:   driver.ParseUlimits(a.Job.Task.Ulimits),
		Container: container(a),
		Devices:   machine.RDMANodes(r.SysRoot, &a.Alloc.Spec),
		LogDir:    r.Layout.Logs(id),
		Secrets:   a.Job.Task.Secrets,
		KillGrace: min(max(a.Job.StopGrace.Std(), 0), driver.KillGraceMax),
	}
	if spec.Container != nil && a.Job.Task.Dir == "" && spec.Dir == spec.TaskDir {
		spec.Dir = "" // the image's own, if it has one
	}
	for _, view := range l.Views {
		spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: path.Join(spec.TaskDir, view.File), TaskPath: view.Path, ReadOnly: true})
	}
	for _, m := range a.Job.Mounts {
		if m.Storage != "" {
			continue // part of the workspace
		}
		spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: m.Source, TaskPath: m.Target, ReadOnly: m.ReadOnly})
	}
	r.showProgram(&spec, a.Job.Task.Driver)
	if a.RanksReachEachOther() {
		spec.Reservations = append(spec.Reservations, r.shellMounts(a, l))
	}
	if policy := a.Job.Task.Logs; policy != nil {
		spec.LogRotation = driver.LogRotation{MaxFiles: max(policy.Files, 0), MaxBytes: max(policy.FileSizeMax, 0)}
	}
	spec.LogRotation = r.Rooms.Rotation(spec.LogRotation)
	return spec
}

// entries is an environment as sorted NAME=value lines.
func entries(env map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		lines = append(lines, name+"="+env[name])
	}
	return lines
}

// shellMounts shows a task with a view of its own what its rank's remote shell is made of: the
// socket, which the task's own directory must not hold since the task could
// put another in its place; and the task's directory under the path that all ranks have it at.
func (r *Preparer) shellMounts(a *structs.Assignment, l *launch.Launch) driver.Reservation {
	rsh := r.Layout.Rsh(a.Alloc.ID)
	mounts := []driver.Mount{{HostPath: rsh, TaskPath: rsh}}
	for _, link := range l.Links {
		mounts = append(mounts, driver.Mount{HostPath: link.Target, TaskPath: link.Path})
	}
	return driver.Reservation{Mounts: mounts}
}

// nodeFacts is what the node tells launch of itself.
func (r *Preparer) nodeFacts(a *structs.Assignment, env map[string]string, owner account.Owner) launch.NodeFacts {
	dir := r.Layout.Task(a.Alloc.ID)
	facts := launch.OfNode(a.Job, &a.Alloc.Spec, r.Node.Node().Attributes)
	facts.TaskDir = dir
	facts.LocalDir = path.Join(dir, launch.LocalDir)
	facts.SecretsDir = path.Join(dir, launch.SecretsDir)
	facts.AgentPath = r.Binary
	facts.SharedDir = r.sharedDir(a.Job)
	facts.Env = env
	facts.Base = owner.Env(&a.Job.Task, dir, a.Job.User)
	facts.NCCLDebug = r.NCCLDebug
	return facts
}

// sharedDir is the part of the shared directory that belongs to one job, so
// that jobs of one name in two projects do not meet; "" when there is none.
func (r *Preparer) sharedDir(job *structs.Job) string {
	if r.SharedDir == "" || !driver.ValidTaskID(driver.TaskID(job.ID)) {
		return ""
	}
	return path.Join(r.SharedDir, job.ID)
}

// Reopen makes anew what the agent itself holds for a task that was taken over, now
// that the servers have said who its peers are.
func (r *Preparer) Reopen(a *structs.Assignment) *Prepared {
	p := &Prepared{shell: r.Shells.Reopen(a), links: r.linksOf(a), guarded: a.Alloc.ID}
	if by, err := r.Owners.OfRunning(a); err == nil {
		r.Guard.Enter(a, by)
	}
	return p
}

// linksOf lists the links that the preparation of an assignment may have made.
func (r *Preparer) linksOf(a *structs.Assignment) []launch.Link {
	shared := r.sharedDir(a.Job)
	if shared == "" || len(a.Members) == 0 {
		return nil
	}
	return []launch.Link{{Path: path.Join(shared, a.Members[0].Name), Target: r.Layout.Task(a.Alloc.ID)}}
}

// CloseShell closes the socket of a rank.
func (r *Preparer) CloseShell(p *Prepared) {
	if p.shell == nil {
		return
	}
	if err := p.shell.Close(); err != nil {
		r.Log.Debug("close rank shell", logkey.Error, err)
	}
}

// Release frees what a preparation has taken.
func (r *Preparer) Release(p *Prepared) {
	r.CloseShell(p)
	r.Guard.Leave(p.guarded)
	removeLinks(p.links)
}

// portTaken finds a port of the allocation that another process has.
func (r *Preparer) portTaken(ports map[string]int) (name string, port int, taken bool) {
	names := make([]string, 0, len(ports))
	for name := range ports {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(ports[name])))
		if errors.Is(err, syscall.EADDRINUSE) {
			return name, ports[name], true
		}
		if err == nil {
			l.Close()
		}
	}
	return "", 0, false
}

// makeDirs makes the directories of an allocation. Only the task's own one
// belongs to the task, and nobody else may look into it, unless it is for a
// container, whose user is the image's. The driver makes the one for logs.
func (r *Preparer) makeDirs(id string, owner account.Owner, driverName string) error {
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{r.Layout.RecordsOf(id), 0o700}, {r.Layout.Alloc(id), 0o711}, {r.Layout.Task(id), 0o755}} {
		if err := os.Mkdir(d.path, d.mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if owner.Change && driverName != structs.DriverDocker {
		if err := os.Chmod(r.Layout.Task(id), 0o700); err != nil {
			return err
		}
	}
	if err := owner.Give(r.Layout.Task(id)); err != nil {
		return err
	}
	return makeInbox(r.Layout.Task(id), owner)
}

// makeInbox makes the directory in which a task reports its checkpoints, and those
// that its variables NOMADLIKE_LOCAL_DIR and NOMADLIKE_SECRETS_DIR name.
func makeInbox(taskDir string, owner account.Owner) error {
	root, err := os.OpenRoot(taskDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(checkpoint.InboxDir, 0o755); err != nil {
		return err
	}
	for dir := checkpoint.InboxDir; dir != "."; dir = path.Dir(dir) {
		if err := owner.GiveIn(root, dir); err != nil {
			return err
		}
	}
	for _, own := range []struct {
		name string
		mode fs.FileMode
	}{{launch.LocalDir, 0o755}, {launch.SecretsDir, 0o700}} {
		if err := root.Mkdir(own.name, own.mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := owner.GiveIn(root, own.name); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles writes the files of a launch below the task's directory; a path
// that leads out of it is refused.
func writeFiles(dir string, files []launch.File, owner account.Owner) error {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, file := range files {
		if parent := path.Dir(file.Path); parent != "." {
			if err := root.MkdirAll(parent, 0o755); err != nil {
				return err
			}
			if err := owner.GiveIn(root, parent); err != nil {
				return err
			}
		}
		if err := root.Remove(file.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f, err := root.OpenFile(file.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(file.Mode).Perm())
		if err != nil {
			return err
		}
		_, err = f.WriteString(file.Content)
		if err == nil {
			err = f.Chmod(fs.FileMode(file.Mode).Perm())
		}
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			err = owner.GiveIn(root, file.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeLink makes a link, unless one is there that leads somewhere: a second
// agent on this machine has made it, and one is enough.
func makeLink(link launch.Link) error {
	if err := os.MkdirAll(filepath.Dir(link.Path), 0o755); err != nil {
		return err
	}
	err := os.Symlink(link.Target, link.Path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Stat(link.Path); err == nil {
		return nil
	}
	if err := os.Remove(link.Path); err != nil {
		return err
	}
	return os.Symlink(link.Target, link.Path)
}

// removeLinks removes links that still lead where they were made to lead, and
// their directory with the last one.
func removeLinks(links []launch.Link) {
	for _, link := range links {
		if target, err := os.Readlink(link.Path); err == nil && target == link.Target {
			_ = os.Remove(link.Path)               // the next one replaces it if it stays
			_ = os.Remove(filepath.Dir(link.Path)) // refused while there are other links
		}
	}
}

// blame reports whose fault it is that a driver could not prepare a task: what
// is unavailable on this node may be there on another. A registry that does
// not answer is charged to the job, or a job with a misspelt one would come
// back for ever.
func blame(err error) *alloc.PrepareFailed {
	failed := alloc.ByJob(err)
	var told *structs.Error
	if errors.As(err, &told) {
		failed.Infra = (told.Code == structs.CodeUnavailable || told.Code == structs.CodeInternal) && told.ID != "docker.pull_failed"
	} else {
		failed.Infra = true
	}
	return failed
}
