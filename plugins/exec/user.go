package exec

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// resolveUser gives the ids of a user of this node by name or number; nil
// when the task runs as the agent itself. Only root may change users.
func resolveUser(name string, root bool) (*supervisor.Credential, error) {
	if name == "" {
		return nil, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return nil, userError("driver.user_unknown", name)
	}
	uid, err := number(found.Uid)
	if err != nil {
		return nil, fmt.Errorf("resolve user %s: %w", name, err)
	}
	if int(uid) == os.Geteuid() {
		return nil, nil
	}
	if !root {
		return nil, userError("driver.user_denied", name)
	}
	gid, err := number(found.Gid)
	if err != nil {
		return nil, fmt.Errorf("resolve user %s: %w", name, err)
	}
	credential := &supervisor.Credential{UID: uid, GID: gid}
	groups, err := found.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("resolve groups of user %s: %w", name, err)
	}
	for _, text := range groups {
		group, err := number(text)
		if err != nil {
			return nil, fmt.Errorf("resolve groups of user %s: %w", name, err)
		}
		credential.Groups = append(credential.Groups, group)
	}
	return credential, nil
}

func number(text string) (uint32, error) {
	value, err := strconv.ParseUint(text, 10, 32)
	return uint32(value), err
}

func userError(id, name string) error {
	return &driver.StartError{
		ExitCode: driver.CodeNotExecutable,
		Err:      structs.NewError(structs.CodeInvalid, id, "user", name),
	}
}
