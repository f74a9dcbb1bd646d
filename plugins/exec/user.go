package exec

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// resolveUser returns the ids of a user of this node by name or number, or those
// of a user that the node need not know, "uid:gid"; nil when the task runs as
// the agent itself. Only root may change users.
func resolveUser(name string, root bool) (*supervisor.Credential, error) {
	if name == "" {
		return nil, nil
	}
	if strings.Contains(name, ":") {
		return allottedUser(name, root)
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

// allottedUser reads a user that is two numbers.
func allottedUser(name string, root bool) (*supervisor.Credential, error) {
	first, second, _ := strings.Cut(name, ":")
	uid, uidErr := number(first)
	gid, gidErr := number(second)
	switch {
	case uidErr != nil || gidErr != nil:
		return nil, userError("driver.user_unknown", name)
	case int(uid) == os.Geteuid() && int(gid) == os.Getegid():
		return nil, nil
	case !root:
		return nil, userError("driver.user_denied", name)
	}
	return &supervisor.Credential{UID: uid, GID: gid}, nil
}

// deviceGroups are the groups that may use a task's devices where not everybody
// may: a user that is given a device may open it. Root's group is none of them.
func deviceGroups(spec *driver.TaskSpec) []uint32 {
	const groupMayUse, everybodyMayUse = 0o060, 0o006
	var groups []uint32
	for _, node := range taskNodes(spec) {
		var stat syscall.Stat_t
		if err := syscall.Stat(node.HostPath, &stat); err != nil || stat.Gid == 0 || stat.Mode&syscall.S_IFMT != syscall.S_IFCHR {
			continue
		}
		if stat.Mode&groupMayUse == groupMayUse && stat.Mode&everybodyMayUse != everybodyMayUse && !slices.Contains(groups, stat.Gid) {
			groups = append(groups, stat.Gid)
		}
	}
	return groups
}

// passwdMax bounds what is read of the node's list of users.
const passwdMax = 1 << 20

// withUser is the list of users that a task sees whose user the node does not
// know: programs ask it for a name and a home. "" leaves the list as it is.
func withUser(root string, c *supervisor.Credential, spec *driver.TaskSpec) string {
	path := filepath.Join("/", root, "etc/passwd")
	if info, err := os.Stat(path); err != nil || info.Size() > passwdMax {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	name, home := "task", spec.TaskDir
	if word := valueOf(spec.Env, "USER"); plainWord(word) {
		name = word
	}
	if word := valueOf(spec.Env, "HOME"); filepath.IsAbs(word) && !strings.ContainsAny(word, ":\n") {
		home = word
	}
	shell := "/bin/sh"
	if _, err := os.Stat(filepath.Join("/", root, "bin/bash")); err == nil {
		shell = "/bin/bash"
	}
	line := fmt.Sprintf("%s:x:%d:%d::%s:%s\n", name, c.UID, c.GID, home, shell)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = "\n" + line
	}
	return string(text) + line
}

// valueOf is the last value of a variable, "" without one.
func valueOf(env []string, name string) (value string) {
	for _, entry := range env {
		if word, found := strings.CutPrefix(entry, name+"="); found {
			value = word
		}
	}
	return value
}

// plainWord reports whether a word can be a user's name in a list of users.
func plainWord(word string) bool {
	const most = 64
	return word != "" && len(word) <= most && strings.IndexFunc(word, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.@", c)
	}) < 0
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
