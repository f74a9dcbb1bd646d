package docker

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/taskproc"
)

// limitFacts say how high the engine may raise the limits of processes; -1
// stands for no bound. An engine without CAP_SYS_RESOURCE can only lower its
// own.
type limitFacts struct {
	Raise bool
	Hard  map[string]int64
}

// inputs are all that the settings of a container are made of.
type inputs struct {
	Config *Config
	Spec   *driver.TaskSpec
	Image  *image
	Facts  engineFacts
	Limits limitFacts
	Name   string
	// Door is the directory on the node that the container sees as
	// taskinit.MountPoint, and Hosts a file for /etc/hosts, "" for none.
	Door, Hosts string
	// Mounts are the job's, with sources made safe.
	Mounts []mount
}

// outputs are what a start needs.
type outputs struct {
	Container container
	Task      taskinit.Spec
	Ways      []string // how the devices come
}

// settings decides what a task's container is and may do. Pure: everything
// that a job, an image and a node say comes in, and the refusal or the
// container goes out.
func settings(in inputs) (*outputs, error) {
	spec, wanted, config := in.Spec, in.Spec.Container, in.Config
	network, err := chooseNetwork(config, wanted.Network)
	if err != nil {
		return nil, err
	}
	plan, err := planDevices(in.Facts, spec.Reservations, in.Image.Env)
	if err != nil {
		return nil, err
	}
	c := container{
		Name: in.Name, Image: in.Image.ID,
		Entrypoint:  []string{taskinit.MountPoint + "/" + taskinit.Program},
		Env:         plan.EngineEnv,
		User:        chooseUser(spec.User, in.Image.User, config.User),
		Hostname:    spec.Hostname,
		Labels:      labels(config, spec),
		StopSeconds: int((spec.KillGrace + time.Second - 1) / time.Second),
		Network:     network,
		Mounts: []mount{
			{Source: in.Door, Target: taskinit.MountPoint, ReadOnly: true},
			{Source: spec.TaskDir, Target: spec.TaskDir},
		},
		ReadOnlyRoot: config.ReadOnlyRoot || wanted.ReadOnlyRoot,
		NanoCPUs:     int64(spec.Resources.CPU * 1e9),
		Memory:       spec.Resources.Memory,
		PIDs:         orDefault(spec.Resources.PIDs, config.PIDsMax),
		Shm:          orDefault(spec.Resources.Shm, config.ShmBytes),
		CapAdd:       slices.Clone(config.Capabilities),
		Security:     []string{"no-new-privileges:true"},
		IPC:          "private",
		Requests:     plan.Requests,
		Runtime:      plan.Runtime,
	}
	if in.Hosts != "" {
		c.Mounts = append(c.Mounts, mount{Source: in.Hosts, Target: "/etc/hosts", ReadOnly: true})
	}
	if network != driver.NetworkHost && network != driver.NetworkNone && spec.Hostname != "" {
		c.Aliases = []string{spec.Hostname}
	}
	for _, d := range append(slices.Clone(spec.Devices), plan.Nodes...) {
		c.Devices = append(c.Devices, driver.Device{HostPath: d.HostPath, TaskPath: orText(d.TaskPath, d.HostPath), Access: orText(d.Access, "rwm")})
	}
	for _, m := range append(slices.Clone(config.Mounts), plan.Mounts...) {
		c.Mounts = append(c.Mounts, mount{Source: m.HostPath, Target: m.TaskPath, ReadOnly: m.ReadOnly})
	}
	if c.Mounts, err = addMounts(c.Mounts, in.Mounts); err != nil {
		return nil, err
	}
	if err := limits(&c, in); err != nil {
		return nil, err
	}
	if err := applyOptions(&c, wanted.Options, config.Policy); err != nil {
		return nil, err
	}
	task := taskinit.Spec{
		Command: spec.Command, Env: spec.WithSearchPath(taskEnv(spec, in.Image.Env, plan.TaskEnv)),
		Dir: orText(spec.Dir, orText(imageDir(in.Image.WorkingDir), spec.TaskDir)), Hold: spec.Hold,
	}
	if wanted.ImageEntrypoint && !spec.Hold {
		task.Command = append(slices.Clone(in.Image.Entrypoint), spec.Command...)
	}
	return &outputs{Container: c, Task: task, Ways: plan.Ways}, nil
}

// imageDir is the directory that an image wants its commands to begin in, "" for
// none. The root is what the engine says of images that want none, and of those
// that were made of a task's container. Directories of the kernel's are no
// image's to name: one that is open in the runtime leads out of the container
// (CVE-2024-21626).
func imageDir(wanted string) string {
	dir := path.Clean("/" + wanted)
	top, _, _ := strings.Cut(dir[1:], "/")
	switch top {
	case "", "proc", "sys", "dev":
		return ""
	}
	return dir
}

func orText(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// deviceNode is a device under its own path.
func deviceNode(path string) driver.Device {
	return driver.Device{HostPath: path, TaskPath: path, Access: "rwm"}
}

func chooseNetwork(config *Config, wanted string) (string, error) {
	switch orText(wanted, config.Network) {
	case driver.NetworkHost:
		if !config.Policy.HostNetwork {
			return "", structs.NewError(structs.CodeForbidden, "docker.host_network_refused")
		}
		return driver.NetworkHost, nil
	case driver.NetworkNone:
		return driver.NetworkNone, nil
	default:
		return config.PrivateNetwork, nil
	}
}

// chooseUser lets the job win over the image, and the node's default come
// before an image that says nothing or says root.
func chooseUser(job, ofImage, otherwise string) string {
	user, _, _ := strings.Cut(ofImage, ":")
	switch {
	case job != "":
		return job
	case otherwise != "" && (user == "" || user == "root" || strings.Trim(user, "0") == ""):
		return otherwise
	default:
		return ofImage
	}
}

func labels(config *Config, spec *driver.TaskSpec) map[string]string {
	return map[string]string{
		labelCluster: config.Cluster, labelNode: config.Node, labelTask: string(spec.ID), labelAlloc: spec.AllocID,
		labelJob: spec.JobName, labelAttempt: fmt.Sprint(spec.Attempt), labelRank: fmt.Sprint(spec.Rank), labelImage: spec.Container.Image,
	}
}

// ownPath reports whether a mount target is one that a job may not take.
func ownPath(target string) bool {
	for _, own := range []string{taskinit.MountPoint, "/proc", "/sys", "/dev"} {
		if target == own || strings.HasPrefix(target, own+"/") {
			return true
		}
	}
	return false
}

// addMounts puts the job's mounts behind the driver's own, each target once.
func addMounts(own, jobs []mount) ([]mount, error) {
	for _, m := range jobs {
		taken := slices.ContainsFunc(own, func(o mount) bool { return o.Target == m.Target })
		if taken || ownPath(m.Target) || path.Clean(m.Target) != m.Target {
			return nil, structs.NewError(structs.CodeInvalid, "docker.mount_target", "target", m.Target)
		}
		own = append(own, m)
	}
	return own, nil
}

// taskEnv is the task's environment: what a shell has, then the image's own,
// without what would give it devices or code, then the job's, whose values may
// name all of these, then what devices need.
func taskEnv(spec *driver.TaskSpec, ofImage, ofDevices []string) []string {
	kept := append([]string{"PATH=" + driver.SearchPathDefault}, spec.EnvBase...)
	var own []string
	for _, entry := range ofImage {
		name, _, ok := strings.Cut(entry, "=")
		if ok && name != "" && !neverFromImage(name) {
			own = append(own, entry)
		}
	}
	kept = taskproc.Overlay(kept, own)
	return taskproc.Overlay(taskproc.Overlay(kept, resolved(spec, kept)), ofDevices)
}

// resolved is the job's environment with the values that name variables, of base
// or of its own.
func resolved(spec *driver.TaskSpec, base []string) []string {
	if len(spec.EnvNamed) == 0 {
		return spec.Env
	}
	below, plain, raw := make(map[string]string), make(map[string]string), make(map[string]string)
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		below[name] = value
	}
	for _, entry := range spec.Env {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(spec.EnvNamed, name) {
			raw[name] = value
		} else {
			plain[name] = value
		}
	}
	values, _ := structs.ExpandEnv(raw, func(name string) (string, bool) {
		if value, ok := plain[name]; ok {
			return value, true
		}
		value, ok := below[name]
		return value, ok
	})
	env := make([]string, len(spec.Env))
	for i, entry := range spec.Env {
		name, _, _ := strings.Cut(entry, "=")
		if value, named := values[name]; named {
			entry = name + "=" + value
		}
		env[i] = entry
	}
	return env
}

// limits sets the limits of processes, as far as the engine can.
func limits(c *container, in inputs) error {
	wanted := []driver.Ulimit{{Name: "nofile", Soft: OpenFilesDefault, Hard: OpenFilesDefault}}
	bound := func(u driver.Ulimit) driver.Ulimit {
		hard, known := in.Limits.Hard[u.Name]
		if in.Limits.Raise || !known || hard < 0 {
			return u
		}
		if u.Hard < 0 || u.Hard > hard {
			u.Hard = hard
		}
		if u.Soft < 0 || u.Soft > hard {
			u.Soft = hard
		}
		return u
	}
	wanted[0] = bound(wanted[0])
	set := func(u driver.Ulimit) {
		wanted = slices.DeleteFunc(wanted, func(old driver.Ulimit) bool { return old.Name == u.Name })
		wanted = append(wanted, u)
	}
	for _, u := range in.Config.Ulimits {
		set(u)
	}
	if in.Spec.Container.RDMA {
		c.CapAdd = append(c.CapAdd, "IPC_LOCK")
		set(driver.Ulimit{Name: "memlock", Soft: -1, Hard: -1})
	}
	for _, u := range in.Spec.Ulimits {
		if u.Name == "memlock" && !in.Spec.Container.RDMA && !slices.Contains(in.Config.Policy.Options, "cap_add") {
			return structs.NewError(structs.CodeForbidden, "docker.memlock_refused")
		}
		set(u)
	}
	for _, u := range wanted {
		if bound(u) != u {
			code := structs.CodeUnavailable
			if slices.ContainsFunc(in.Spec.Ulimits, func(own driver.Ulimit) bool { return own.Name == u.Name }) {
				code = structs.CodeForbidden // the job asks for it: it ends, or it would be tried for ever
			}
			return structs.NewError(code, "docker.rlimit_refused", "limit", u.Name, "hard", in.Limits.Hard[u.Name])
		}
	}
	c.Ulimits = wanted
	return nil
}
