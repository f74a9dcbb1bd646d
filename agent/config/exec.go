package config

import (
	"maps"
	"math"
	"slices"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/exec"
)

// ExecBlock is the part of a client that runs tasks as processes.
type ExecBlock struct {
	Isolation  *string
	View       *string
	Root       *string
	MountRoots []string
	Writable   []string
	Cgroups    *bool
	PIDsMax    *int
	Ulimits    map[string]string
	UlimitsMax map[string]string
	Users      map[string]string
	Projects   map[string]string
	UIDMin     *int
	UIDMax     *int
	_          struct{}
}

// Exec is the part of exec.
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

func walkExec(v visitor, b *ExecBlock, c *Exec) {
	v.setting("isolation", word(&b.Isolation, &c.Isolation, exec.IsolationAuto, exec.IsolationRaw, exec.IsolationAuto, exec.IsolationRequired))
	v.setting("view", word(&b.View, &c.View, exec.ViewByUser, viewShared, exec.ViewPrivate, exec.ViewByUser))
	v.rule(func(*resolver) {
		if c.View == viewShared {
			c.View = exec.ViewShared
		}
	})
	v.setting("root", text(&b.Root, &c.Root, "").unset())
	v.setting("mount_roots", list(&b.MountRoots, &c.MountRoots))
	v.setting("writable", list(&b.Writable, &c.Writable))
	var cgroups bool
	v.setting("cgroups", toggle(&b.Cgroups, &cgroups, true).apart())
	v.rule(func(*resolver) { c.NoCgroup = !cgroups })
	v.setting("pids_max", number(&b.PIDsMax, &c.PIDsMax, 0).from(1, math.Inf(1)).unset())
	v.setting("users", table(&b.Users, &c.Accounts.Users))
	v.setting("projects", table(&b.Projects, &c.Accounts.Projects))
	v.rule(func(r *resolver) {
		for _, wrong := range c.Accounts.Problems("client.exec") {
			r.refuse("client.exec", wrong.ID, pairs(wrong.Params)...)
		}
	})
	v.setting("uid_min", number(&b.UIDMin, &c.UIDMin, 0).from(uidLeast, uidMax).refused("").knownAs(account.UIDMinDefault))
	v.setting("uid_max", number(&b.UIDMax, &c.UIDMax, 0).from(uidLeast, uidMax).refused("").knownAs(account.UIDMaxDefault))
	v.rule(func(r *resolver) {
		if b.UIDMin == nil && b.UIDMax == nil {
			return
		}
		c.UIDMin, c.UIDMax = get(b.UIDMin, account.UIDMinDefault), get(b.UIDMax, account.UIDMaxDefault)
		if c.UIDMin < uidLeast || c.UIDMax > uidMax || c.UIDMin > c.UIDMax {
			r.refuse("client.exec.uid_min", "agent.config.uids", "low", c.UIDMin, "high", c.UIDMax, "min", uidLeast, "max", uidMax)
		}
	})
	v.setting("ulimits", table(&b.Ulimits, &c.Ulimits))
	v.rule(func(r *resolver) { r.ulimits("client.exec.ulimits", c.Ulimits) })
	v.setting("ulimits_max", table(&b.UlimitsMax, &c.UlimitsMax))
	v.rule(func(r *resolver) { r.ulimits("client.exec.ulimits_max", c.UlimitsMax) })
}

// ulimits checks limits of processes.
func (r *resolver) ulimits(path string, limits map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if _, _, err := structs.ParseUlimit(name, limits[name]); err != nil {
			r.refuse(path, "agent.config.ulimit", "name", name, "value", limits[name])
		}
	}
}
