package agent

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// ExecBlock is the part of a client that runs tasks as processes.
type ExecBlock struct {
	Isolation  *string           `hcl:"isolation,optional"`   // auto (default) | raw | required
	View       *string           `hcl:"view,optional"`        // of isolated tasks: shared | private; by default private for those without an account of the node
	Root       *string           `hcl:"root,optional"`        // directory that isolated tasks have for /
	MountRoots []string          `hcl:"mount_roots,optional"` // directories below which isolated tasks may mount
	Writable   []string          `hcl:"writable,optional"`    // directories of the node that tasks use as their users may, in private views too
	Cgroups    *bool             `hcl:"cgroups,optional"`     // bound tasks; true unless told
	PIDsMax    *int              `hcl:"pids_max,optional"`    // processes and threads of a task
	Ulimits    map[string]string `hcl:"ulimits,optional"`     // of the processes of every task: name to "soft:hard"
	UlimitsMax map[string]string `hcl:"ulimits_max,optional"` // what jobs may ask for; by default what the agent has itself
	Users      map[string]string `hcl:"users,optional"`       // user of the cluster to account of this node
	Projects   map[string]string `hcl:"projects,optional"`    // project to account of this node
	UIDMin     *int              `hcl:"uid_min,optional"`     // ids of projects without an account
	UIDMax     *int              `hcl:"uid_max,optional"`
	_          struct{}
}

// ExecConfig is the part of exec.
type ExecConfig struct {
	Isolation  string
	View       string
	Root       string
	MountRoots []string
	Writable   []string
	NoCgroup   bool
	PIDsMax    int
	Ulimits    map[string]string `json:",omitempty"`
	UlimitsMax map[string]string `json:",omitempty"`
	Accounts   structs.Accounts
	UIDMin     int // 0: the default
	UIDMax     int
}

// viewShared is the word for tasks that see the node's files.
const viewShared = "shared"

// uidMax is the greatest id that a task may have; uidLeast keeps the ids of the
// system's own users out of the range.
const (
	uidMax   = 1<<31 - 2
	uidLeast = 1000
)

func (r *resolver) exec(block *ExecBlock) ExecConfig {
	b := blockOf(block)
	c := ExecConfig{
		Isolation: r.word("client.exec.isolation", get(b.Isolation, exec.IsolationAuto), exec.IsolationRaw, exec.IsolationAuto, exec.IsolationRequired),
		View:      r.word("client.exec.view", get(b.View, exec.ViewByUser), viewShared, exec.ViewPrivate, exec.ViewByUser),
		Ulimits:   b.Ulimits, UlimitsMax: b.UlimitsMax,
		Root: get(b.Root, ""), MountRoots: b.MountRoots, Writable: b.Writable, NoCgroup: !get(b.Cgroups, true), PIDsMax: get(b.PIDsMax, 0),
	}
	if c.View == viewShared {
		c.View = exec.ViewShared
	}
	if b.PIDsMax != nil {
		r.positive("client.exec.pids_max", *b.PIDsMax)
	}
	c.Accounts = structs.Accounts{Users: b.Users, Projects: b.Projects}
	for _, wrong := range c.Accounts.Problems("client.exec") {
		args := make([]any, 0, 2*len(wrong.Params))
		for name, value := range wrong.Params {
			args = append(args, name, value)
		}
		r.refuse("client.exec", wrong.ID, args...)
	}
	if b.UIDMin != nil || b.UIDMax != nil {
		c.UIDMin, c.UIDMax = get(b.UIDMin, account.UIDMinDefault), get(b.UIDMax, account.UIDMaxDefault)
		if c.UIDMin < uidLeast || c.UIDMax > uidMax || c.UIDMin > c.UIDMax {
			r.refuse("client.exec.uid_min", "agent.config.uids", "low", c.UIDMin, "high", c.UIDMax, "min", uidLeast, "max", uidMax)
		}
	}
	r.ulimits("client.exec.ulimits", b.Ulimits)
	r.ulimits("client.exec.ulimits_max", b.UlimitsMax)
	return c
}

// ulimits checks limits of processes.
func (r *resolver) ulimits(path string, limits map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if _, _, err := structs.ParseUlimit(name, limits[name]); err != nil {
			r.refuse(path, "agent.config.ulimit", "name", name, "value", limits[name])
		}
	}
}

// hardLimits reads the hard limits of a checked table.
func hardLimits(limits map[string]string) map[string]int64 {
	hard := make(map[string]int64, len(limits))
	for name, text := range limits {
		if _, most, err := structs.ParseUlimit(name, text); err == nil {
			hard[name] = most
		}
	}
	return hard
}

// orTable gives the upper table if there is one.
func orTable(top, below map[string]string) map[string]string {
	if top != nil {
		return maps.Clone(top)
	}
	return below
}

func (b ExecBlock) over(top ExecBlock) ExecBlock {
	return ExecBlock{
		Isolation: or(top.Isolation, b.Isolation), View: or(top.View, b.View), Root: or(top.Root, b.Root),
		MountRoots: orList(top.MountRoots, b.MountRoots), Writable: orList(top.Writable, b.Writable), Cgroups: or(top.Cgroups, b.Cgroups), PIDsMax: or(top.PIDsMax, b.PIDsMax),
		Ulimits: orTable(top.Ulimits, b.Ulimits), UlimitsMax: orTable(top.UlimitsMax, b.UlimitsMax),
		Users: orTable(top.Users, b.Users), Projects: orTable(top.Projects, b.Projects), UIDMin: or(top.UIDMin, b.UIDMin), UIDMax: or(top.UIDMax, b.UIDMax),
	}
}

// execConfig is what the driver of processes is opened with. Isolated tasks see
// nothing of what the agent keeps for itself: of its data directory what belongs to them
// alone, and none of the files that its configuration is made of.
func (a *Agent) execConfig(dir string) exec.Config {
	c := a.config.Client.Exec
	return exec.Config{
		StateDir: filepath.Join(dir, "exec"), Supervisor: a.options.Supervisor, Logger: a.log,
		Isolation: c.Isolation, View: c.View, Root: c.Root, MountRoots: c.MountRoots, Writable: c.Writable, NoCgroup: c.NoCgroup, PIDsMax: int64(c.PIDsMax),
		Ulimits: driver.ParseUlimits(c.Ulimits), UlimitsMax: hardLimits(c.UlimitsMax),
		Hidden: append([]string{a.config.DataDir}, a.secretFiles()...),
	}
}

// secretFiles lists the files outside of the data directory that this agent's
// configuration names and no task is to see, and the command line's contexts,
// which hold people's tokens.
func (a *Agent) secretFiles() []string {
	files := slices.Clone(a.config.Files)
	files = append(files, a.config.Client.Docker.AuthFile)
	for _, server := range a.config.Client.Remotes {
		files = append(files, server.AuthorizationFile)
		if server.S3 != nil {
			files = append(files, server.S3.CredentialsFile)
		}
	}
	if a.options.Getenv != nil {
		if dir, err := api.ContextDir(a.options.Getenv); err == nil {
			files = append(files, dir)
		}
	}
	var hidden []string
	for _, file := range files {
		if file == "" {
			continue
		}
		whole, err := filepath.Abs(file)
		if info, statErr := os.Stat(whole); err == nil && statErr == nil && (info.IsDir() || info.Mode().IsRegular()) { // not a pipe of the shell
			hidden = append(hidden, whole)
		}
	}
	return hidden
}
