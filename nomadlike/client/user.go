package client

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// owner is the user that a task runs as.
type owner struct {
	uid, gid int
	change   bool // another user than the agent, and the agent may give files away
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
	return owner{uid: uid, gid: gid, change: uid != os.Geteuid() && os.Geteuid() == 0}, nil
}

// ownerOf gives whom the files of a task belong to. A container may run as a
// user that the node does not know, when that is a number.
func ownerOf(task *structs.Task) (owner, error) {
	if task.Driver != structs.DriverDocker {
		return taskOwner(task.User)
	}
	name, group, grouped := strings.Cut(task.User, ":")
	var found owner
	if uid, err := strconv.ParseUint(name, 10, 31); err == nil {
		found = owner{uid: int(uid), gid: int(uid)}
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
				return owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", task.User).Because(lookupErr)
			}
			if gid, err = strconv.ParseUint(known.Gid, 10, 31); err != nil {
				return owner{}, structs.NewError(structs.CodeInvalid, "driver.user_unknown", "user", task.User)
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
	if task.Driver != structs.DriverDocker || task.User == "" {
		return task.User
	}
	return strconv.Itoa(o.uid) + ":" + strconv.Itoa(o.gid)
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
