package structs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// AccountsMax bounds the users and the projects that are bound to accounts of
// nodes.
const AccountsMax = 10_000

// Accounts binds users and projects of the cluster to accounts of its nodes: a
// name, or "uid:gid".
type Accounts struct {
	Users    map[string]string `json:"users,omitempty"`
	Projects map[string]string `json:"projects,omitempty"`
}

// Any reports whether anybody is bound.
func (a *Accounts) Any() bool { return len(a.Users)+len(a.Projects) > 0 }

// Of lists the accounts that a user may have in a project, the user's own
// first. Pure.
func (a *Accounts) Of(user, project string) []string {
	var bound []string
	for _, account := range []string{a.Users[user], a.Projects[project]} {
		if account != "" && !slices.Contains(bound, account) {
			bound = append(bound, account)
		}
	}
	return bound
}

// Problems lists what is wrong with bindings that stand at a path. Pure.
func (a *Accounts) Problems(path string) []Problem {
	v := &validator{}
	for _, table := range []struct {
		name  string
		bound map[string]string
	}{{"users", a.Users}, {"projects", a.Projects}} {
		at := strings.TrimPrefix(path+"."+table.name, ".")
		if len(table.bound) > AccountsMax {
			v.add(at, "job.too_many", "", "what", table.name, "count", len(table.bound), "max", AccountsMax)
			continue
		}
		for _, who := range slices.Sorted(maps.Keys(table.bound)) {
			account := table.bound[who]
			switch {
			case !userName(account):
				v.add(KeyedPath(at, who), "job.user", "", "user", account)
			case RootAccount(account):
				v.add(KeyedPath(at, who), "pool.account_root", "pool.account_root.hint", "account", account)
			}
		}
	}
	return v.problems
}

// RootAccount reports whether an account is root's, by name or number. Pure.
func RootAccount(account string) bool {
	name, _, _ := strings.Cut(account, ":")
	number, err := strconv.ParseUint(name, 10, 64)
	return name == "root" || err == nil && number == 0
}

// PoolExec says whom processes and containers on a pool's nodes run as. Without
// one they have ids of their projects, which no account of a node has.
type PoolExec struct {
	// Root lets tasks run as root of their node: those that name no user and
	// whose users and projects are bound to no account, and those that name root.
	Root bool `json:"root,omitempty"`
	Accounts
}

// RunAs is what the record of a node's pool says of whom a task runs as.
type RunAs struct {
	Root     bool     `json:"root,omitempty"`
	Accounts []string `json:"accounts,omitempty"` // bound to its user and project; the first unless the task names one
}

// RunAs returns what the pool says of a job's tasks on its nodes; nil without a
// word of it. Root is for jobs that were admitted by this pool's rules: one that lands here
// because any pool will do has not asked for it.
func (p *Pool) RunAs(j *Job) *RunAs {
	if p == nil || p.Exec == nil {
		return nil
	}
	return &RunAs{Root: p.Exec.Root && j.RulingPool() == p.Name, Accounts: p.Exec.Of(j.User, j.Project)}
}

// RulingPool names the pool by whose record a job is admitted: the one that it
// names, or else the default one. Pure.
func (j *Job) RulingPool() string {
	if len(j.Placement.Nodes) > 0 {
		return PoolDefault
	}
	return cmp.Or(j.Placement.Pool, PoolDefault)
}

// account checks the user that a task names against what the pool's record
// says. A record that binds nobody leaves the decision to the nodes.
func (v *validator) account(p *Pool, j *Job) {
	user := j.Task.User
	if user == "" {
		return
	}
	exec := PoolExec{}
	if p != nil && p.Exec != nil {
		exec = *p.Exec
	}
	bound := exec.Of(j.User, j.Project)
	switch {
	case RootAccount(user):
		if !exec.Root {
			v.add("task.user", "pool.user_root", "pool.user_root.hint", "pool", p.name(), "user", user)
		}
	case exec.Any() && !slices.Contains(bound, user):
		hint := "pool.user_unbound.hint"
		if len(bound) == 0 {
			hint = "pool.user_none_bound.hint"
		}
		v.add("task.user", "pool.user_unbound", hint, "pool", p.name(), "user", user, "who", cmp.Or(j.User, "-"), "project", j.Project,
			"bound", strings.Join(bound, ", "))
	}
}

// Warnings lists what is doubtful about a job that the pool admits. Pure.
func (p *Pool) Warnings(j *Job) []Problem {
	v := &validator{}
	if p.LetsRoot() && (RootAccount(j.Task.User) || j.Task.User == "" && j.Task.Driver != DriverDocker && len(p.Exec.Of(j.User, j.Project)) == 0) {
		v.add("task.user", "pool.warn.root", "", "pool", p.Name)
	}
	return v.problems
}

// LetsRoot reports whether tasks on the pool's nodes may run as root.
func (p *Pool) LetsRoot() bool { return p != nil && p.Exec != nil && p.Exec.Root }
