package config

import (
	"maps"
	"slices"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/structs"
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
type Exec struct {
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

func (r *resolver) exec(block *ExecBlock) Exec {
	b := blockOf(block)
	c := Exec{
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
