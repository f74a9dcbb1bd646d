package agent

import (
	"path/filepath"

	"nomadlike/plugins/exec"
)

// ExecBlock is the part of a client that runs tasks as processes.
type ExecBlock struct {
	Isolation  *string  `hcl:"isolation,optional"`   // auto (default) | raw | required
	View       *string  `hcl:"view,optional"`        // of isolated tasks: shared (default) | private
	Root       *string  `hcl:"root,optional"`        // directory that isolated tasks have for /
	MountRoots []string `hcl:"mount_roots,optional"` // directories below which isolated tasks may mount
	Cgroups    *bool    `hcl:"cgroups,optional"`     // bound tasks; true unless told
	PIDsMax    *int     `hcl:"pids_max,optional"`    // processes and threads of a task
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
}

// viewShared is the word for what isolated tasks see by default.
const viewShared = "shared"

func (r *resolver) exec(block *ExecBlock) ExecConfig {
	b := blockOf(block)
	c := ExecConfig{
		Isolation: r.word("client.exec.isolation", get(b.Isolation, exec.IsolationAuto), exec.IsolationRaw, exec.IsolationAuto, exec.IsolationRequired),
		View:      r.word("client.exec.view", get(b.View, viewShared), viewShared, exec.ViewPrivate),
		Root:      get(b.Root, ""), MountRoots: b.MountRoots, NoCgroup: !get(b.Cgroups, true), PIDsMax: get(b.PIDsMax, 0),
	}
	if c.View == viewShared {
		c.View = exec.ViewShared
	}
	if b.PIDsMax != nil {
		r.positive("client.exec.pids_max", *b.PIDsMax)
	}
	return c
}

func (b ExecBlock) over(top ExecBlock) ExecBlock {
	return ExecBlock{
		Isolation: or(top.Isolation, b.Isolation), View: or(top.View, b.View), Root: or(top.Root, b.Root),
		MountRoots: orList(top.MountRoots, b.MountRoots), Cgroups: or(top.Cgroups, b.Cgroups), PIDsMax: or(top.PIDsMax, b.PIDsMax),
	}
}

// execConfig is what the driver of processes is opened with. Isolated tasks see
// nothing of what the agent keeps for itself.
func (a *Agent) execConfig(dir string) exec.Config {
	c := a.config.Client.Exec
	return exec.Config{
		StateDir: filepath.Join(dir, "exec"), Supervisor: a.options.Supervisor, Logger: a.log,
		Isolation: c.Isolation, View: c.View, Root: c.Root, MountRoots: c.MountRoots, NoCgroup: c.NoCgroup, PIDsMax: int64(c.PIDsMax),
		Hidden: []string{filepath.Join(a.config.DataDir, identityDir), filepath.Join(a.config.DataDir, serverDir)},
	}
}
