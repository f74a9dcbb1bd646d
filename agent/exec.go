package agent

import (
	"maps"
	"path/filepath"
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// ExecBlock is the part of a client that runs tasks as processes.
type ExecBlock struct {
	Isolation  *string           `hcl:"isolation,optional"`   // auto (default) | raw | required
	View       *string           `hcl:"view,optional"`        // of isolated tasks: shared (default) | private
	Root       *string           `hcl:"root,optional"`        // directory that isolated tasks have for /
	MountRoots []string          `hcl:"mount_roots,optional"` // directories below which isolated tasks may mount
	Cgroups    *bool             `hcl:"cgroups,optional"`     // bound tasks; true unless told
	PIDsMax    *int              `hcl:"pids_max,optional"`    // processes and threads of a task
	Ulimits    map[string]string `hcl:"ulimits,optional"`     // of the processes of every task: name to "soft:hard"
	UlimitsMax map[string]string `hcl:"ulimits_max,optional"` // what jobs may ask for; by default what the agent has itself
	_          struct{}
}

// ExecConfig is the part of exec.
type ExecConfig struct {
	Isolation  string
	View       string
	Root       string
	MountRoots []string
	NoCgroup   bool
	PIDsMax    int
	Ulimits    map[string]string `json:",omitempty"`
	UlimitsMax map[string]string `json:",omitempty"`
}

// viewShared is the word for what isolated tasks see by default.
const viewShared = "shared"

func (r *resolver) exec(block *ExecBlock) ExecConfig {
	b := blockOf(block)
	c := ExecConfig{
		Isolation: r.word("client.exec.isolation", get(b.Isolation, exec.IsolationAuto), exec.IsolationRaw, exec.IsolationAuto, exec.IsolationRequired),
		View:      r.word("client.exec.view", get(b.View, viewShared), viewShared, exec.ViewPrivate),
		Ulimits:   b.Ulimits, UlimitsMax: b.UlimitsMax,
		Root: get(b.Root, ""), MountRoots: b.MountRoots, NoCgroup: !get(b.Cgroups, true), PIDsMax: get(b.PIDsMax, 0),
	}
	if c.View == viewShared {
		c.View = exec.ViewShared
	}
	if b.PIDsMax != nil {
		r.positive("client.exec.pids_max", *b.PIDsMax)
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
		MountRoots: orList(top.MountRoots, b.MountRoots), Cgroups: or(top.Cgroups, b.Cgroups), PIDsMax: or(top.PIDsMax, b.PIDsMax),
		Ulimits: orTable(top.Ulimits, b.Ulimits), UlimitsMax: orTable(top.UlimitsMax, b.UlimitsMax),
	}
}

// execConfig is what the driver of processes is opened with. Isolated tasks see
// nothing of what the agent keeps for itself.
func (a *Agent) execConfig(dir string) exec.Config {
	c := a.config.Client.Exec
	return exec.Config{
		StateDir: filepath.Join(dir, "exec"), Supervisor: a.options.Supervisor, Logger: a.log,
		Isolation: c.Isolation, View: c.View, Root: c.Root, MountRoots: c.MountRoots, NoCgroup: c.NoCgroup, PIDsMax: int64(c.PIDsMax),
		Ulimits: driver.ParseUlimits(c.Ulimits), UlimitsMax: hardLimits(c.UlimitsMax),
		Hidden: []string{filepath.Join(a.config.DataDir, identityDir), filepath.Join(a.config.DataDir, serverDir)},
	}
}
