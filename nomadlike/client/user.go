package client

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// owner is the user that a task runs as.
type owner struct {
	uid, gid int
	change   bool   // another user than the agent, and the agent may give files away
	allotted bool   // the project's id, which the node knows no user of
	account  string // name or number of the node's user, "" for the agent's own
	home     string // of an account, "" for others
}

// taskOwner looks a job's user up, a name or a number; "" is the agent's own.
// The error is a *structs.Error that blames the job.
func taskOwner(name string) (owner, error) {
	if name == "" {
		return owner{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		if _, numberErr := strconv.Atoi(name); numberErr == nil {
			found, err = user.LookupId(name)
		}
	}
	if err != nil {
		return owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", name).Because(err)
	}
	uid, uidErr := strconv.Atoi(found.Uid)
	gid, gidErr := strconv.Atoi(found.Gid)
	if uidErr != nil || gidErr != nil {
		return owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", name)
	}
	return owner{uid: uid, gid: gid, change: uid != os.Geteuid() && os.Geteuid() == 0, account: name, home: found.HomeDir}, nil
}

// ownerOf gives whom an allocation's task runs as and its files belong to. Below
// an agent with root that is an account which the node's configuration or the record of its
// pool binds to the task's user or project: the one that the task names, or the first.
// Without any it is the id of the project. Nothing is root unless the pool's record says so.
func (c *Client) ownerOf(a *structs.Assignment) (owner, error) {
	task := &a.Job.Task
	if os.Geteuid() != 0 {
		return namedOwner(task.Driver, task.User)
	}
	bound := c.config.Accounts.Of(a.Job.User, a.Job.Project)
	root := false
	if a.RunAs != nil {
		bound, root = append(bound, a.RunAs.Accounts...), a.RunAs.Root
	}
	switch {
	case task.User != "":
		return chooseOwner(task, bound, root, a)
	case len(bound) > 0:
		found, err := namedOwner(task.Driver, bound[0])
		if err == nil && found.uid == 0 {
			return owner{}, rootRefused(bound[0])
		}
		return found, err
	case task.Driver == structs.DriverDocker, root:
		return taskOwner("") // the image's own, or who stands in for its root
	}
	uid, err := c.ids.of(a.Job.Project)
	if err != nil {
		return owner{}, structs.NewError(structs.CodeUnavailable, "client.user_none_left", "project", a.Job.Project, "cause", err)
	}
	return owner{uid: uid, gid: uid, change: true, allotted: true}, nil
}

// chooseOwner is the user that a task names, if it may have it.
func chooseOwner(task *structs.Task, bound []string, root bool, a *structs.Assignment) (owner, error) {
	wanted, err := namedOwner(task.Driver, task.User)
	if err != nil {
		return owner{}, err
	}
	if wanted.uid == 0 || wanted.gid == 0 {
		if !root {
			return owner{}, rootRefused(task.User)
		}
		return wanted, nil
	}
	for _, account := range bound {
		if known, err := namedOwner(task.Driver, account); err == nil && known.uid == wanted.uid && known.gid == wanted.gid {
			return wanted, nil
		}
	}
	if len(bound) == 0 {
		return owner{}, structs.NewError(structs.CodeForbidden, "client.user_none_bound", "user", task.User, "who", a.Job.User, "project", a.Job.Project)
	}
	return owner{}, structs.NewError(structs.CodeForbidden, "client.user_unbound", "user", task.User, "who", a.Job.User, "project", a.Job.Project,
		"bound", strings.Join(bound, ", "))
}

func rootRefused(name string) error {
	return structs.NewError(structs.CodeForbidden, "client.user_root", "user", name)
}

// ownerOfRunning is ownerOf for a task that runs, also one that an earlier agent
// has started by other rules: its directory tells.
func (c *Client) ownerOfRunning(a *structs.Assignment) (owner, error) {
	found, err := c.ownerOf(a)
	if a.Job.Task.Driver == structs.DriverDocker {
		return found, err // who owns the directory may be the image's user
	}
	var stat syscall.Stat_t
	if lookErr := syscall.Stat(c.files.task(a.Alloc.ID), &stat); lookErr != nil {
		return found, err
	}
	found.uid, found.gid = int(stat.Uid), int(stat.Gid)
	found.change = (found.uid != os.Geteuid() || found.gid != os.Getegid()) && os.Geteuid() == 0
	return found, nil
}

// namedOwner looks up whom a task names. A container may run as a user that the
// node does not know, when that is a number.
func namedOwner(driverName, wanted string) (owner, error) {
	name, group, grouped := strings.Cut(wanted, ":")
	if driverName != structs.DriverDocker && !grouped {
		return taskOwner(wanted)
	}
	found := owner{account: wanted}
	if uid, err := strconv.ParseUint(name, 10, 31); err == nil {
		found = owner{uid: int(uid), gid: int(uid), account: wanted}
		if known, err := user.LookupId(name); err == nil {
			if gid, err := strconv.Atoi(known.Gid); err == nil {
				found.gid = gid
			}
		}
	} else if found, err = taskOwner(name); err != nil {
		return owner{}, err
	}
	if grouped {
		gid, err := strconv.ParseUint(group, 10, 31)
		if err != nil {
			known, lookupErr := user.LookupGroup(group)
			if lookupErr != nil {
				return owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", wanted).Because(lookupErr)
			}
			if gid, err = strconv.ParseUint(known.Gid, 10, 31); err != nil {
				return owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", wanted)
			}
		}
		found.gid = int(gid)
	}
	found.change = (found.uid != os.Geteuid() || found.gid != os.Getegid()) && os.Geteuid() == 0
	return found, nil
}

// name is the user as the driver takes it. A container gets numbers: in its
// image the same name may be somebody else, and files on the node's storage
// belong to the node's users.
func (o owner) name(task *structs.Task) string {
	switch {
	case o.account == "" && !o.allotted:
		return ""
	case task.Driver != structs.DriverDocker && !o.allotted && !strings.Contains(o.account, ":"):
		return o.account
	}
	return strconv.Itoa(o.uid) + ":" + strconv.Itoa(o.gid)
}

// env is what shells and programs expect to find of their user and of a shell: the
// same for every driver, below whatever an image or the job says. The home is the
// one that the node knows of the user, but for a container, where it would be the
// home of somebody else; else it is the task's own directory.
func (o owner) env(task *structs.Task, taskDir, who string) map[string]string {
	name, home := o.account, o.home
	switch contained := task.Driver == structs.DriverDocker; {
	case o.allotted:
		name, home = who, ""
	case contained && o.account == "": // the image's own user, root unless the image says otherwise
		name, home = "root", "/root"
	case contained:
		home = ""
	case o.account == "":
		if known, err := user.LookupId(strconv.Itoa(o.uid)); err == nil {
			name, home = known.Username, known.HomeDir
		}
	}
	name, _, _ = strings.Cut(cmp.Or(name, strconv.Itoa(o.uid)), ":")
	return map[string]string{
		"HOME": cmp.Or(home, taskDir), "USER": name, "LOGNAME": name, "SHELL": "/bin/sh", "LANG": "C.UTF-8",
		"TMPDIR": "/tmp", "PATH": driver.SearchPathDefault,
	}
}

// give hands a path over to the task's user.
func (o owner) give(path string) error {
	if !o.change {
		return nil
	}
	if err := os.Lchown(path, o.uid, o.gid); err != nil {
		return fmt.Errorf("give to task's user: %w", err)
	}
	return nil
}

// giveIn hands a path below root over.
func (o owner) giveIn(root *os.Root, path string) error {
	if !o.change {
		return nil
	}
	if err := root.Lchown(path, o.uid, o.gid); err != nil {
		return fmt.Errorf("give to task's user: %w", err)
	}
	return nil
}
