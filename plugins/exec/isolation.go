package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// How far tasks are kept from the node and from each other.
const (
	// IsolationAuto isolates tasks where the kernel and the agent's rights
	// allow it, and says in the fingerprint where they do not. It is what
	// drivers do that are told nothing.
	IsolationAuto = "auto"
	// IsolationRaw runs tasks as plain processes: for administrators' pools.
	IsolationRaw = "raw"
	// IsolationRequired runs isolated tasks or none.
	IsolationRequired = "required"
)

// What isolated tasks see of the node's files.
const (
	// ViewShared shows the node's files as the task's user may use them.
	ViewShared = ""
	// ViewPrivate shows them read-only, and gives the task a /tmp, a /run and
	// a /dev/shm of its own.
	ViewPrivate = "private"
	// ViewByUser is private for tasks whose user the node does not know, "uid:gid",
	// and shared for the others, whose rights are those that the node gives them.
	ViewByUser = "by_user"
)

// probePatience bounds trying out a kind of isolation. What fails by it counts as
// missing until the agent starts again, so a slow machine gets time.
const probePatience = time.Minute

// level is what isolation there is.
type level struct {
	isolated  bool
	users     bool // in user namespaces
	landlock  int  // version
	classical bool // views are made by calls that old kernels have
	reason    string
}

// checkIsolation fills in a default and refuses settings that mean nothing.
func (c *Config) checkIsolation() error {
	if c.Isolation == "" {
		c.Isolation = IsolationAuto
	}
	if !slices.Contains([]string{IsolationAuto, IsolationRaw, IsolationRequired}, c.Isolation) {
		return fmt.Errorf("prepare exec driver: isolation %q: want auto, raw or required", c.Isolation)
	}
	if !slices.Contains([]string{ViewShared, ViewPrivate, ViewByUser}, c.View) {
		return fmt.Errorf("prepare exec driver: view %q: want private, by_user or nothing", c.View)
	}
	for _, list := range [][]string{c.MountRoots, c.Hidden, c.Visible, c.Writable, {c.Root}} {
		for _, path := range list {
			if path != "" && (!filepath.IsAbs(path) || filepath.Clean(path) != path) {
				return fmt.Errorf("prepare exec driver: %q is not a clean absolute path", path)
			}
		}
	}
	return nil
}

// isolator finds out how far tasks can be kept from the node, and says to a
// supervisor what a task may see.
type isolator struct {
	config  *Config
	cgroups *cgroupTree
	program *program
	work    worker
	log     *slog.Logger

	probing sync.Once
	probed  chan struct{} // closed once found is set
	found   level
}

func newIsolator(config *Config, cgroups *cgroupTree, program *program, work worker, log *slog.Logger) *isolator {
	return &isolator{config: config, cgroups: cgroups, program: program, work: work, log: log, probed: make(chan struct{})}
}

// level returns what isolation there is. The first call finds out, which takes
// as long as starting a few programs.
func (i *isolator) level(ctx context.Context) (level, error) {
	i.probing.Do(func() {
		i.work.Go(func() {
			i.found = i.probe()
			close(i.probed)
		})
	})
	select {
	case <-i.probed:
		return i.found, nil
	default:
	}
	select {
	case <-i.probed:
		return i.found, nil
	case <-ctx.Done():
		return level{}, ctx.Err()
	case <-i.work.Life().Done():
		return level{}, driver.ErrUnavailable
	}
}

// probe finds out what isolation works here, by trying it.
func (i *isolator) probe() level {
	if i.config.Isolation == IsolationRaw {
		return level{reason: "switched off"}
	}
	found, err := i.probeLevel(true)
	if err != nil && i.program.root {
		withUsers := err
		if found, err = i.probeLevel(false); err == nil {
			found.reason = "no user namespace: " + withUsers.Error()
		}
	}
	if err != nil {
		i.log.Warn("tasks cannot be isolated", logkey.Error, err)
		return level{reason: err.Error()}
	}
	i.tryDevices()
	return found
}

func (i *isolator) probeLevel(users bool) (level, error) {
	dir := filepath.Join(i.config.StateDir, "probe")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return level{}, err
	}
	spec := &driver.TaskSpec{TaskDir: dir}
	isolation := i.view(spec, level{users: users})
	isolation.Hidden = slices.DeleteFunc(isolation.Hidden, func(path string) bool { return path == i.config.StateDir })
	ready, err := i.program.start(users)
	if err != nil {
		return level{}, err
	}
	defer func() {
		_ = ready.process.Process.Kill() // it may have ended by itself
		ready.dismiss()
	}()
	if err := ready.connection.SetDeadline(time.Now().Add(probePatience)); err != nil {
		return level{}, err
	}
	release := context.AfterFunc(i.work.Life(), func() { ready.connection.SetDeadline(past()) })
	defer release()
	reply, err := exchange(ready.connection, &supervisor.Request{Op: supervisor.OpProbe, Protocol: supervisor.Protocol, Spec: &supervisor.Spec{
		TaskID: "probe", Marker: "probe:", Hold: true, Hostname: "probe", Dir: "/", LogDir: "/", LogFiles: 2, LogBytes: 1, Isolation: isolation,
	}})
	switch {
	case err != nil:
		return level{}, err
	case reply.Failure != nil:
		return level{}, errors.New(reply.Failure.Params["cause"])
	case reply.Probe == nil:
		return level{}, errors.New("supervisor did not say what it found")
	}
	return level{isolated: true, users: users, landlock: reply.Probe.Landlock, classical: reply.Probe.Classical}, nil
}

// describe names what keeps tasks apart, for the fingerprint.
func (l *level) describe() string {
	if !l.isolated {
		return "raw"
	}
	parts := []string{"mount", "pid", "ipc", "uts", "capabilities", "seccomp"}
	if l.users {
		parts = append(parts, "user")
	}
	if l.landlock > 0 {
		parts = append(parts, "landlock"+strconv.Itoa(l.landlock))
	}
	if l.classical {
		parts = append(parts, "classical")
	}
	return strings.Join(parts, ",")
}

// hiddenDefault is what a private view does not show, for tasks that run as
// root; others may not read it anyhow.
func hiddenDefault() []string {
	return []string{
		"/root", "/boot", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh", "/etc/ssl/private",
		"/etc/nomadlike", "/var/lib/docker", "/var/lib/containerd", "/var/lib/nomadlike",
	}
}

// forbiddenDefault is what no job may mount, with what is above and below.
func forbiddenDefault() []string {
	return []string{"/proc", "/sys", "/dev", "/run", "/var/run", "/boot", "/etc", "/root", "/var/lib/docker", "/var/lib/containerd"}
}

// view says to a supervisor what a task may see.
func (i *isolator) view(spec *driver.TaskSpec, l level) *supervisor.Isolation {
	c := i.config
	v := &supervisor.Isolation{
		Root: c.Root, Private: c.View == ViewPrivate || c.View == ViewByUser && allotted(spec.User), TaskDir: spec.TaskDir, ShmBytes: spec.Resources.Shm,
		Hidden: append(append([]string{c.StateDir}, c.Hidden...), shut(spec)...), Visible: slices.Clone(c.Visible), MountRoots: resolved(c.MountRoots),
		OwnUsers: l.users, CloneOpen: i.cgroups.v2 != "",
	}
	if v.Private {
		v.Hidden = append(v.Hidden, hiddenDefault()...)
		if v.ShmBytes == 0 {
			v.ShmBytes = spec.Resources.Memory // which it counts to; 0 leaves the choice to the supervisor
		}
	}
	v.Hidden = outermost(v.Hidden)
	v.Forbidden = resolved(append(append(forbiddenDefault(), c.StateDir), c.Hidden...))
	if self, err := os.Executable(); err == nil {
		v.Visible = append(v.Visible, self) // remote shells of MPI run it
	}
	if v.Private || v.Root != "" { // else they are as they were
		for _, path := range c.Writable {
			v.Mounts = append(v.Mounts, supervisor.BindMount{Source: path, Target: path})
		}
	}
	for _, mount := range spec.Mounts {
		v.Mounts = append(v.Mounts, supervisor.BindMount{Source: mount.HostPath, Target: mount.TaskPath, ReadOnly: mount.ReadOnly, Job: mount.Within == "", Within: mount.Within})
	}
	for _, reservation := range spec.Reservations {
		for _, mount := range reservation.Mounts {
			v.Mounts = append(v.Mounts, supervisor.BindMount{Source: mount.HostPath, Target: mount.TaskPath, ReadOnly: mount.ReadOnly})
		}
	}
	for _, node := range taskNodes(spec) {
		v.Nodes = append(v.Nodes, supervisor.BindMount{Source: node.HostPath, Target: node.TaskPath})
	}
	return v
}

// allotted reports whether a task's user is two numbers, which the node need not
// know.
func allotted(user string) bool { return strings.Contains(user, ":") }

// shut returns the outermost directory on the way to a task's own through which
// its user may not pass, none if there is no such directory. What lies in there is not
// for the task anyway; so it is shown a directory with its own one alone.
func shut(spec *driver.TaskSpec) []string {
	const everybodyMayPass = 0o001
	if !allotted(spec.User) {
		return nil
	}
	for at := 1; at < len(spec.TaskDir); at++ {
		if spec.TaskDir[at] != '/' {
			continue
		}
		if info, err := os.Stat(spec.TaskDir[:at]); err == nil && info.Mode()&everybodyMayPass == 0 {
			return []string{spec.TaskDir[:at]}
		}
	}
	return nil
}

// outermost drops paths that lie in others, with which they are hidden.
func outermost(paths []string) []string {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	kept := paths[:0]
	for _, path := range paths {
		if !slices.ContainsFunc(kept, func(above string) bool { return strings.HasPrefix(path, above+"/") }) {
			kept = append(kept, path)
		}
	}
	return kept
}

// taskNodes lists the device nodes of a task, one for each place in it.
func taskNodes(spec *driver.TaskSpec) []driver.Device {
	nodes := slices.Clone(spec.Devices)
	for _, reservation := range spec.Reservations {
		nodes = append(nodes, reservation.Nodes...)
	}
	seen := make(map[string]bool)
	unique := nodes[:0]
	for _, node := range nodes {
		if node.TaskPath == "" {
			node.TaskPath = node.HostPath
		}
		if !seen[node.TaskPath] {
			seen[node.TaskPath] = true
			unique = append(unique, node)
		}
	}
	return unique
}

// resolved follows the links of paths; those that do not exist stay.
func resolved(paths []string) []string {
	all := make([]string, 0, len(paths))
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		all = append(all, path)
	}
	return all
}

// userNamespace puts a supervisor into a user namespace in which all ids are
// what they are here: its tasks' files and users stay the same, but no
// capability that a task could get counts for anything of the node's.
func userNamespace(attributes *syscall.SysProcAttr, root bool) error {
	attributes.Cloneflags |= syscall.CLONE_NEWUSER
	if !root {
		uid, gid := os.Geteuid(), os.Getegid()
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Only root has capabilities without this.
		attributes.AmbientCaps = append(attributes.AmbientCaps, capDACOverride, capKill, capSetPCAP, capSysChroot, capSysPtrace, capSysAdmin, capSysResource)
		return nil
	}
	var err error
	if attributes.UidMappings, err = sameIDs("/proc/self/uid_map"); err != nil {
		return err
	}
	attributes.GidMappings, err = sameIDs("/proc/self/gid_map")
	attributes.GidMappingsEnableSetgroups = true
	return err
}

// Capabilities that a supervisor needs within its own namespaces.
const (
	capDACOverride = 1
	capKill        = 5
	capSetPCAP     = 8
	capSysChroot   = 18
	capSysPtrace   = 19
	capSysAdmin    = 21
	capSysResource = 24
)

// sameIDs maps all ids that this process's own map has to themselves.
func sameIDs(path string) ([]syscall.SysProcIDMap, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read map of ids: %w", err)
	}
	var maps []syscall.SysProcIDMap
	for line := range strings.Lines(string(text)) {
		var inside, outside, size int64
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err != nil {
			return nil, fmt.Errorf("read map of ids: %w", err)
		}
		maps = append(maps, syscall.SysProcIDMap{ContainerID: int(inside), HostID: int(inside), Size: int(size)})
	}
	return maps, nil
}
