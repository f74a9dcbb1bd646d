package account

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Owner is the user that a task runs as.
type Owner struct {
	UID, GID int
	Change   bool   // another user than the agent, and the agent may give files away
	allotted bool   // the project's id, which the node knows no user of
	account  string // name or number of the node's user, "" for the agent's own
	home     string // of an account, "" for others
}

// Owners reports which user of the node a task runs as. Any goroutine may use it.
type Owners struct {
	Bound  structs.Accounts // users and projects of the cluster, bound to users of this node
	IDs    *IDs             // of projects that are bound to none
	Layout layout.Layout
}

// taskOwner looks a job's user up, a name or a number; "" is the agent's own.
// The error is a *structs.Error that blames the job.
func taskOwner(name string) (Owner, error) {
	if name == "" {
		return Owner{UID: os.Geteuid(), GID: os.Getegid()}, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		if _, numberErr := strconv.Atoi(name); numberErr == nil {
			found, err = user.LookupId(name)
		}
	}
	if err != nil {
		return Owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", name).Because(err)
	}
	uid, uidErr := strconv.Atoi(found.Uid)
	gid, gidErr := strconv.Atoi(found.Gid)
	if uidErr != nil || gidErr != nil {
		return Owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", name)
	}
	return Owner{UID: uid, GID: gid, Change: uid != os.Geteuid() && os.Geteuid() == 0, account: name, home: found.HomeDir}, nil
}

// Of returns whom an allocation's task runs as and its files belong to. Below
// an agent with root that is an account which the node's configuration or the record of its
// pool binds to the task's user or project: the one that the task names, or the first.
// Without any it is the id of the project. Nothing is root unless the pool's record says so.
func (o *Owners) Of(a *structs.Assignment) (Owner, error) {
	task := &a.Job.Task
	if os.Geteuid() != 0 {
		return namedOwner(task.Driver, task.User)
	}
	bound := o.Bound.Of(a.Job.User, a.Job.Project)
	root := false
	if a.RunAs != nil {
		bound, root = append(bound, a.RunAs.Accounts...), a.RunAs.Root
	}
	switch {
	case task.User != "":
		return chooseOwner(task, bound, root, a)
	case len(bound) > 0:
		found, err := namedOwner(task.Driver, bound[0])
		if err == nil && found.UID == 0 {
			return Owner{}, rootRefused(bound[0])
		}
		return found, err
	case task.Driver == structs.DriverDocker, root:
		return taskOwner("") // the image's own, or the one that stands in for its root
	}
	uid, err := o.IDs.of(a.Job.Project)
	if err != nil {
		return Owner{}, structs.NewError(structs.CodeUnavailable, "client.user_none_left", "project", a.Job.Project, "cause", err)
	}
	return Owner{UID: uid, GID: uid, Change: true, allotted: true}, nil
}

// chooseOwner is the user that a task names, if it may have it.
func chooseOwner(task *structs.Task, bound []string, root bool, a *structs.Assignment) (Owner, error) {
	wanted, err := namedOwner(task.Driver, task.User)
	if err != nil {
		return Owner{}, err
	}
	if wanted.UID == 0 || wanted.GID == 0 {
		if !root {
			return Owner{}, rootRefused(task.User)
		}
		return wanted, nil
	}
	for _, account := range bound {
		if known, err := namedOwner(task.Driver, account); err == nil && known.UID == wanted.UID && known.GID == wanted.GID {
			return wanted, nil
		}
	}
	if len(bound) == 0 {
		return Owner{}, structs.NewError(structs.CodeForbidden, "client.user_none_bound", "user", task.User, "who", a.Job.User, "project", a.Job.Project)
	}
	return Owner{}, structs.NewError(structs.CodeForbidden, "client.user_unbound", "user", task.User, "who", a.Job.User, "project", a.Job.Project,
		"bound", strings.Join(bound, ", "))
}

func rootRefused(name string) error {
	return structs.NewError(structs.CodeForbidden, "client.user_root", "user", name)
}

// OfRunning is Of for a task that runs, also one that an earlier agent
// has started by other rules: its directory says.
func (o *Owners) OfRunning(a *structs.Assignment) (Owner, error) {
	found, err := o.Of(a)
	if a.Job.Task.Driver == structs.DriverDocker {
		return found, err // the owner of the directory may be the image's user
	}
	var stat syscall.Stat_t
	if lookErr := syscall.Stat(o.Layout.Task(a.Alloc.ID), &stat); lookErr != nil {
		return found, err
	}
	found.UID, found.GID = int(stat.Uid), int(stat.Gid)
	found.Change = (found.UID != os.Geteuid() || found.GID != os.Getegid()) && os.Geteuid() == 0
	return found, nil
}

// namedOwner looks up whom a task names. A container may run as a user that the
// node does not know, when that is a number.
func namedOwner(driverName, wanted string) (Owner, error) {
	name, group, grouped := strings.Cut(wanted, ":")
	if driverName != structs.DriverDocker && !grouped {
		return taskOwner(wanted)
	}
	found := Owner{account: wanted}
	if uid, err := strconv.ParseUint(name, 10, 31); err == nil {
		found = Owner{UID: int(uid), GID: int(uid), account: wanted}
		if known, err := user.LookupId(name); err == nil {
			if gid, err := strconv.Atoi(known.Gid); err == nil {
				found.GID = gid
			}
		}
	} else if found, err = taskOwner(name); err != nil {
		return Owner{}, err
	}
	if grouped {
		gid, err := strconv.ParseUint(group, 10, 31)
		if err != nil {
			known, lookupErr := user.LookupGroup(group)
			if lookupErr != nil {
				return Owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", wanted).Because(lookupErr)
			}
			if gid, err = strconv.ParseUint(known.Gid, 10, 31); err != nil {
				return Owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", wanted)
			}
		}
		found.GID = int(gid)
	}
	found.Change = (found.UID != os.Geteuid() || found.GID != os.Getegid()) && os.Geteuid() == 0
	return found, nil
}

// Name is the user as the driver takes it. A container gets numbers: in its
// image the same name may be somebody else, and files on the node's storage
// belong to the node's users.
func (o Owner) Name(task *structs.Task) string {
	switch {
	case o.account == "" && !o.allotted:
		return ""
	case task.Driver != structs.DriverDocker && !o.allotted && !strings.Contains(o.account, ":"):
		return o.account
	}
	return strconv.Itoa(o.UID) + ":" + strconv.Itoa(o.GID)
}

// Env is what shells and programs expect to find of their user and of a shell: the
// same for every driver, below whatever an image or the job says. The home is the
// one that the node knows of the user, but for a container, where it would be the
// home of somebody else; else it is the task's own directory.
func (o Owner) Env(task *structs.Task, taskDir, who string) map[string]string {
	name, home := o.account, o.home
	switch contained := task.Driver == structs.DriverDocker; {
	case o.allotted:
		name, home = who, ""
	case contained && o.account == "": // the image's own user, root unless the image says otherwise
		name, home = "root", "/root"
	case contained:
		home = ""
	case o.account == "":
		if known, err := user.LookupId(strconv.Itoa(o.UID)); err == nil {
			name, home = known.Username, known.HomeDir
		}
	}
	name, _, _ = strings.Cut(cmp.Or(name, strconv.Itoa(o.UID)), ":")
	return map[string]string{
		"HOME": cmp.Or(home, taskDir), "USER": name, "LOGNAME": name, "SHELL": "/bin/sh", "LANG": "C.UTF-8",
		"TMPDIR": "/tmp", "PATH": driver.SearchPathDefault,
	}
}

// Give hands a path over to the task's user.
func (o Owner) Give(path string) error {
	if !o.Change {
		return nil
	}
	if err := os.Lchown(path, o.UID, o.GID); err != nil {
		return fmt.Errorf("give to task's user: %w", err)
	}
	return nil
}

// GiveIn hands a path below root over.
func (o Owner) GiveIn(root *os.Root, path string) error {
	if !o.Change {
		return nil
	}
	if err := root.Lchown(path, o.UID, o.GID); err != nil {
		return fmt.Errorf("give to task's user: %w", err)
	}
	return nil
}
