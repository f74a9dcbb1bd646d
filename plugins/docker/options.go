package docker

import (
	"slices"
	"sort"
	"strings"

	"nomadlike/nomadlike/structs"
)

// options are the settings of the engine that a job may name when the node's
// policy allows it, and what each does. Lists are separated by commas.
func options() map[string]func(c *container, value string) (problem string) {
	yes := func(set func(c *container)) func(*container, string) string {
		return func(c *container, value string) string {
			if value != "true" {
				return `want "true"`
			}
			set(c)
			return ""
		}
	}
	host := func(set func(c *container)) func(*container, string) string {
		return func(c *container, value string) string {
			if value != "host" {
				return `want "host"`
			}
			set(c)
			return ""
		}
	}
	list := func(to func(c *container) *[]string) func(*container, string) string {
		return func(c *container, value string) string {
			for word := range strings.SplitSeq(value, ",") {
				if word = strings.TrimSpace(word); word != "" {
					*to(c) = append(*to(c), word)
				}
			}
			return ""
		}
	}
	text := func(to func(c *container) *string) func(*container, string) string {
		return func(c *container, value string) string {
			if value == "" {
				return "is empty"
			}
			*to(c) = value
			return ""
		}
	}
	return map[string]func(*container, string) string{
		"privileged":    yes(func(c *container) { c.Privileged, c.Security = true, nil }),
		"cap_add":       list(func(c *container) *[]string { return &c.CapAdd }),
		"security_opt":  list(func(c *container) *[]string { return &c.Security }),
		"ipc":           host(func(c *container) { c.IPC = "host" }),
		"uts":           host(func(c *container) { c.UTS, c.Hostname = "host", "" }),
		"userns":        host(func(c *container) { c.UserNS = "host" }),
		"cgroup_parent": text(func(c *container) *string { return &c.CgroupParent }),
		"runtime":       text(func(c *container) *string { return &c.Runtime }),
		"volumes_from":  list(func(c *container) *[]string { return &c.VolumesFrom }),
		"extra_hosts":   list(func(c *container) *[]string { return &c.ExtraHosts }),
		"sysctls": func(c *container, value string) string {
			c.Sysctls = make(map[string]string)
			for entry := range strings.SplitSeq(value, ",") {
				name, setting, ok := strings.Cut(strings.TrimSpace(entry), "=")
				if !ok {
					return "want name=value"
				}
				c.Sysctls[name] = setting
			}
			return ""
		},
		"devices": func(c *container, value string) string {
			for path := range strings.SplitSeq(value, ",") {
				path = strings.TrimSpace(path)
				if !strings.HasPrefix(path, "/dev/") || strings.Contains(path, "..") {
					return "want paths below /dev"
				}
				c.Devices = append(c.Devices, deviceNode(path))
			}
			return ""
		},
	}
}

// OptionNames lists the options that a node's Policy may allow. The host's
// process namespace is not among them: the init kills everything in its
// namespace when a task ends.
func OptionNames() []string {
	var names []string
	for name := range options() {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// applyOptions puts a job's options into a container, those that the policy
// allows. Pure.
func applyOptions(c *container, asked map[string]string, policy Policy) error {
	names := make([]string, 0, len(asked))
	for name := range asked {
		names = append(names, name)
	}
	sort.Strings(names)
	known := options()
	for _, name := range names {
		apply, ok := known[name]
		if !ok || !slices.Contains(policy.Options, name) {
			return structs.NewError(structs.CodeForbidden, "docker.option_refused", "option", name)
		}
		if problem := apply(c, asked[name]); problem != "" {
			return structs.NewError(structs.CodeInvalid, "docker.option_bad", "option", name, "problem", problem)
		}
	}
	return nil
}
