package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Cgroup is a task's cgroup in one hierarchy of version 1, made by the driver.
type Cgroup struct {
	Controller string `json:"controller"`
	Dir        string `json:"dir"`
}

// cgroups are the task's cgroups: one of version 2, into which the kernel puts
// a process as it makes it, and several of version 1, where the child is where
// the thread is that makes it. So that thread goes in for that moment only: a
// supervisor that is frozen or throttled with its task could not help it.
type cgroups struct {
	v2     string            // directory, "" for none
	loose  bool              // the kernel could not make processes in there: what was forked at once is outside; guarded by the freezer's gate
	v1     map[string]string // directories by controller
	inside []*os.File        // lists of threads of the task's cgroups
	home   []*os.File        // those where this process lives
}

// openCgroups takes over what the driver has made.
func openCgroups(spec *Spec) (*cgroups, error) {
	c := &cgroups{v2: spec.Cgroup, v1: make(map[string]string, len(spec.Cgroups))}
	if len(spec.Cgroups) == 0 {
		return c, nil
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find own cgroups: %w", err)
	}
	for _, cgroup := range spec.Cgroups {
		c.v1[cgroup.Controller] = cgroup.Dir
		inside, err := openThreads(cgroup.Dir)
		if err != nil {
			c.close()
			return nil, fmt.Errorf("enter cgroup: %w", err)
		}
		c.inside = append(c.inside, inside)
		root := filepath.Dir(filepath.Dir(cgroup.Dir))
		home, err := openThreads(filepath.Join(root, ownCgroup(own, cgroup.Controller)))
		if err != nil {
			home, err = openThreads(root) // the agent sees another part of the tree than the kernel tells
		}
		if err != nil {
			c.close()
			return nil, fmt.Errorf("come back from cgroup: %w", err)
		}
		c.home = append(c.home, home)
	}
	return c, nil
}

func openThreads(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0)
}

// ownCgroup finds the cgroup of a controller in the text of /proc/self/cgroup.
// Pure.
func ownCgroup(text []byte, controller string) string {
	for line := range strings.Lines(string(text)) {
		words := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(words) < 3 {
			continue
		}
		for name := range strings.SplitSeq(words[1], ",") {
			if name == controller {
				return words[2]
			}
		}
	}
	return "/"
}

// enter puts the calling thread into the task's cgroups of version 1; leave
// takes it back.
func (c *cgroups) enter() error {
	for _, file := range c.inside {
		if _, err := file.WriteString("0"); err != nil {
			c.leave()
			return fmt.Errorf("enter %s: %w", file.Name(), err)
		}
	}
	return nil
}

func (c *cgroups) leave() {
	for _, file := range c.home {
		_, _ = file.WriteString("0") // at worst the thread is bounded with the task
	}
}

func (c *cgroups) close() {
	for _, file := range append(c.inside, c.home...) {
		file.Close()
	}
	c.inside, c.home = nil, nil
}

// remove removes the cgroups; those that something unkillable is in stay.
func (c *cgroups) remove() {
	c.close()
	for _, dir := range c.dirs() {
		_ = os.Remove(dir)
	}
}

func (c *cgroups) dirs() []string {
	var all []string
	if c.v2 != "" {
		all = append(all, c.v2)
	}
	for _, dir := range c.v1 {
		all = append(all, dir)
	}
	return all
}

// members lists the processes in the task's cgroups of version 1.
func (c *cgroups) members() []int {
	for _, controller := range []string{"freezer", "pids", "memory"} {
		dir, ok := c.v1[controller]
		if !ok {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		var pids []int
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	return nil
}

// oomKills counts the processes of the task that were killed because its
// memory was used up.
func (c *cgroups) oomKills() int {
	path := filepath.Join(c.v2, "memory.events")
	if dir, ok := c.v1["memory"]; ok {
		path = filepath.Join(dir, "memory.oom_control")
	} else if c.v2 == "" {
		return 0
	}
	return int(readCounter(path, "oom_kill "))
}

// cpuNS returns the processor time that the task has used, in nanoseconds, with
// processes that are gone. It returns false when nobody counts.
func (c *cgroups) cpuNS() (uint64, bool) {
	if dir, ok := c.v1["cpuacct"]; ok {
		if ns := readCounter(filepath.Join(dir, "cpuacct.usage"), ""); ns > 0 {
			return ns, true
		}
	}
	if c.v2 != "" && len(c.v1) == 0 {
		if us := readCounter(filepath.Join(c.v2, "cpu.stat"), "usage_usec "); us > 0 {
			return us * 1000, true
		}
	}
	return 0, false
}

// readCounter returns the number behind a line's prefix, 0 for none.
func readCounter(path, prefix string) uint64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(prefix)); ok {
			value, err := strconv.ParseUint(string(bytes.TrimSpace(rest)), 10, 64)
			if err == nil {
				return value
			}
		}
	}
	return 0
}

// write puts a value into a file of a cgroup and reports whether it could.
func write(dir, name, value string) bool {
	if dir == "" {
		return false
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	_, err = file.WriteString(value)
	return err == nil
}
