package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
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
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/checkpoint"
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
)

// prepared is what a preparation leaves for the start.
type prepared struct {
	strict  bool // the task ends with the node's lease
	spec    driver.TaskSpec
	shell   shellServer
	guarded string // the allocation whose gang's ports are kept
	links   []launch.Link
	told    *envTold // of its environment before the start; nil when nobody looked
	image   string   // that the task runs on, see imageOf
}

// prepare gets an allocation ready to start: its ports are free, its
// directories and files are there, its rank's socket listens. What failed is
// told with whose fault it is. It may be repeated after a crash.
func (c *Client) prepare(ctx context.Context, a *structs.Assignment) (*prepared, *alloc.PrepareFailed) {
	id := a.Alloc.ID
	slow := time.AfterFunc(slowStep, func() { c.event(id, alloc.Progressed{Step: stepFiles}) })
	defer slow.Stop()

	if a.Job == nil {
		return nil, infra("client.launch_failed", "cause", "the job is missing")
	}
	if _, ok := c.config.Drivers[a.Job.Task.Driver]; !ok {
		return nil, infra("client.driver_missing", "driver", a.Job.Task.Driver)
	}
	if failure := c.precheck(a); failure != nil {
		return nil, failure
	}
	c.lookAtDisks()
	if fault := c.unfit(); fault != nil {
		return nil, infra("client.node_unfit", "fault", fault.Name) // it was placed before the servers heard
	}
	if name, port, ok := c.portTaken(a.Alloc.Ports); ok {
		return nil, infra("client.port_taken", "port", port, "name", name)
	}
	owner, err := c.ownerOf(a)
	if err != nil {
		return nil, users(err)
	}
	if err := c.makeDirs(id, owner, a.Job.Task.Driver); err != nil {
		return nil, infra("client.dir_failed", "cause", err)
	}
	c.boundRoom(id, a.Alloc.Spec.Disk)
	p := &prepared{strict: a.Job.Fencing == alloc.FencingStrict}
	env, shell, err := c.openShell(a, owner)
	if err != nil {
		return nil, infra("client.dir_failed", "cause", err)
	}
	p.shell = shell
	c.guard(a, owner)
	p.guarded = id
	if failure := c.fill(ctx, p, a, env, owner); failure != nil {
		p.release(c)
		return nil, failure
	}
	if ctx.Err() != nil {
		p.release(c)
		return nil, infra("client.prepare_cancelled")
	}
	return p, nil
}

// fill makes the command line and writes what belongs to it.
func (c *Client) fill(ctx context.Context, p *prepared, a *structs.Assignment, env map[string]string, owner owner) *alloc.PrepareFailed {
	id := a.Alloc.ID
	reserved, seen, failure := c.reserve(ctx, a)
	if failure != nil {
		return failure
	}
	env = maps.Clone(env)
	if env == nil {
		env = make(map[string]string, len(seen)+1)
	}
	env[checkpoint.EnvInbox] = path.Join(c.files.task(id), checkpoint.InboxDir)
	maps.Copy(env, seen)
	space, failure := c.openWorkspace(ctx, a, owner)
	if failure != nil {
		return failure
	}
	maps.Copy(env, space.env)
	node := c.nodeFacts(a, env, owner)
	if err := c.nodeEnv(&node); err != nil {
		return infra("client.env_file", "path", c.config.EnvFile, "cause", err)
	}
	l, err := launch.Build(launch.Input{Job: a.Job, Alloc: a.Alloc, Members: a.Members, Node: node})
	if err != nil {
		return users(err)
	}
	for _, note := range l.Notes {
		c.log.Debug("launch note", logkey.AllocID, id, logkey.Reason, note.ID, "params", note.Params)
	}
	if err := writeFiles(c.files.task(id), l.Files, owner); err != nil {
		return infra("client.dir_failed", "cause", err)
	}
	if err := c.linkProgram(c.files.task(id), owner); err != nil {
		return infra("client.dir_failed", "cause", err)
	}
	if err := makeWorkingDir(c.files.task(id), a.Job.Task.Dir, owner); err != nil {
		c.log.Debug("working directory is not made", logkey.AllocID, id, logkey.Error, err) // the driver will tell
	}
	if a.Job.Task.Driver != structs.DriverDocker { // containers see what links lead to as mounts
		for _, link := range l.Links {
			if err := makeLink(link); err != nil {
				return infra("client.dir_failed", "cause", err)
			}
			p.links = append(p.links, link)
		}
	}
	if err := space.link(c.files.task(id), owner); err != nil {
		return infra("client.dir_failed", "cause", err)
	}
	space.rewrite(&l)
	p.spec = c.taskSpec(a, &l, owner)
	p.spec.Mounts = append(p.spec.Mounts, space.mounts...)
	p.spec.Reservations = append(p.spec.Reservations, reserved...)
	var failed *alloc.PrepareFailed
	if p.image, failed = c.fetch(ctx, a, &p.spec); failed != nil {
		return failed
	}
	if failure := c.prestart(ctx, a, p.spec); failure != nil {
		return failure
	}
	c.foresee(ctx, a, p, l.Notes)
	return nil
}

// prestart runs the hooks that come before the command.
func (c *Client) prestart(ctx context.Context, a *structs.Assignment, spec driver.TaskSpec) *alloc.PrepareFailed {
	id := a.Alloc.ID
	if err := c.keepHooks(id, a.Job, spec); err != nil {
		return infra("client.dir_failed", "cause", err)
	}
	slow := time.AfterFunc(slowStep, func() { c.event(id, alloc.Progressed{Step: stepHooks}) })
	defer slow.Stop()
	if failure := c.hooksAround(ctx, c.config.Drivers[a.Job.Task.Driver], id, structs.HookPrestart, nil); failure != nil {
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

func (c *Client) taskSpec(a *structs.Assignment, l *launch.Launch, owner owner) driver.TaskSpec {
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
		TaskDir:   c.files.task(id),
		User:      owner.name(&a.Job.Task),
		Hostname:  l.Hostname,
		Hosts:     l.Hosts,
		Resources: driver.Resources{CPU: a.Alloc.Spec.CPU, Memory: a.Alloc.Spec.Memory, Shm: a.Alloc.Spec.SharedMemory},
		Ulimits:   driver.ParseUlimits(a.Job.Task.Ulimits),
		Container: container(a),
		Devices:   c.rdmaNodes(&a.Alloc.Spec),
		LogDir:    c.files.logs(id),
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
	c.showProgram(&spec, a.Job.Task.Driver)
	if needsShell(a) {
		spec.Reservations = append(spec.Reservations, c.shellMounts(a, l))
	}
	if policy := a.Job.Task.Logs; policy != nil {
		spec.LogRotation = driver.LogRotation{MaxFiles: max(policy.Files, 0), MaxBytes: max(policy.FileSizeMax, 0)}
	}
	spec.LogRotation = c.config.Room.rotation(spec.LogRotation)
	return spec
}

// entries is an environment as sorted NAME=value lines.
func entries(env map[string]string) []string {
	var lines []string
	for _, name := range sortedKeys(env) {
		lines = append(lines, name+"="+env[name])
	}
	return lines
}

// shellMounts shows a task with a view of its own what its rank's remote shell is made of: the
// socket, which the task's own directory must not hold since the task could
// put another in its place; and the task's directory under the path that all ranks have it at.
func (c *Client) shellMounts(a *structs.Assignment, l *launch.Launch) driver.Reservation {
	rsh := c.files.rsh(a.Alloc.ID)
	mounts := []driver.Mount{{HostPath: rsh, TaskPath: rsh}}
	for _, link := range l.Links {
		mounts = append(mounts, driver.Mount{HostPath: link.Target, TaskPath: link.Path})
	}
	return driver.Reservation{Mounts: mounts}
}

// nodeFacts is what the node tells launch of itself.
func (c *Client) nodeFacts(a *structs.Assignment, env map[string]string, owner owner) launch.NodeFacts {
	dir := c.files.task(a.Alloc.ID)
	facts := launch.OfNode(a.Job, &a.Alloc.Spec, c.Node().Attributes)
	facts.TaskDir = dir
	facts.LocalDir = path.Join(dir, launch.LocalDir)
	facts.SecretsDir = path.Join(dir, launch.SecretsDir)
	facts.AgentPath = c.config.Binary
	facts.SharedDir = c.sharedDir(a.Job)
	facts.Env = env
	facts.Base = owner.env(&a.Job.Task, dir, a.Job.User)
	facts.NCCLDebug = c.config.NCCLDebug
	return facts
}

// sharedDir is the part of the shared directory that belongs to one job, so
// that jobs of one name in two projects do not meet; "" when there is none.
func (c *Client) sharedDir(job *structs.Job) string {
	if c.config.SharedDir == "" || !driver.ValidTaskID(driver.TaskID(job.ID)) {
		return ""
	}
	return path.Join(c.config.SharedDir, job.ID)
}

// release gives back what a preparation holds.
func (p *prepared) release(c *Client) {
	closeShell(p.shell, c.log)
	c.unguard(p.guarded)
	removeLinks(p.links)
}

// portTaken finds a port of the allocation that another process has.
func (c *Client) portTaken(ports map[string]int) (name string, port int, taken bool) {
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
func (c *Client) makeDirs(id string, owner owner, driverName string) error {
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{c.files.recordsOf(id), 0o700}, {c.files.alloc(id), 0o711}, {c.files.task(id), 0o755}} {
		if err := os.Mkdir(d.path, d.mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if owner.change && driverName != structs.DriverDocker {
		if err := os.Chmod(c.files.task(id), 0o700); err != nil {
			return err
		}
	}
	if err := owner.give(c.files.task(id)); err != nil {
		return err
	}
	return makeInbox(c.files.task(id), owner)
}

// makeInbox makes the directory in which a task tells of its checkpoints, and those
// that its variables NOMADLIKE_LOCAL_DIR and NOMADLIKE_SECRETS_DIR name.
func makeInbox(taskDir string, owner owner) error {
	root, err := os.OpenRoot(taskDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(checkpoint.InboxDir, 0o755); err != nil {
		return err
	}
	for dir := checkpoint.InboxDir; dir != "."; dir = path.Dir(dir) {
		if err := owner.giveIn(root, dir); err != nil {
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
		if err := owner.giveIn(root, own.name); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles writes the files of a launch below the task's directory; a path
// that leads out of it is refused.
func writeFiles(dir string, files []launch.File, owner owner) error {
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
			if err := owner.giveIn(root, parent); err != nil {
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
			err = owner.giveIn(root, file.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeWorkingDir makes the job's working directory when it lies in the task's
// own.
func makeWorkingDir(taskDir, dir string, owner owner) error {
	if dir == "" || path.IsAbs(dir) {
		return nil
	}
	root, err := os.OpenRoot(taskDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Clean(dir), 0o755); err != nil {
		return err
	}
	return owner.giveIn(root, path.Clean(dir))
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

// newToken makes the secret of a rank's socket.
func newToken() string { return rand.Text() }

func infra(id string, params ...any) *alloc.PrepareFailed {
	return &alloc.PrepareFailed{Cause: structs.NewReason(id, params...), Infra: true}
}

// blame tells whose fault it is that a driver could not prepare a task: what
// is unavailable on this node may be there on another. A registry that does
// not answer is charged to the job, or a job with a misspelt one would come
// back for ever.
func blame(err error) *alloc.PrepareFailed {
	failed := users(err)
	var told *structs.Error
	if errors.As(err, &told) {
		failed.Infra = (told.Code == structs.CodeUnavailable || told.Code == structs.CodeInternal) && told.ID != "docker.pull_failed"
	} else {
		failed.Infra = true
	}
	return failed
}

// users is a failure that the job brought along.
func users(err error) *alloc.PrepareFailed {
	var told *structs.Error
	if errors.As(err, &told) {
		return &alloc.PrepareFailed{Cause: &structs.Reason{ID: told.ID, Params: told.Params}}
	}
	return &alloc.PrepareFailed{Cause: structs.NewReason("client.launch_failed", "cause", fmt.Sprint(err))}
}
