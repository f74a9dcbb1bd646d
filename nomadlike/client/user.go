package client

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

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
