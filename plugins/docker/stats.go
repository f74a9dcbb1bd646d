package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"nomadlike/plugins/driver"
)

// Stats measures the container by its cgroups, which costs a few reads and no
// question to the engine, and works while it is paused.
func (d *Driver) Stats(_ context.Context, id driver.TaskID) (driver.Usage, error) {
	t, err := d.known.Find(id)
	if err != nil {
		return driver.Usage{}, err
	}
	if t.over() {
		return driver.Usage{}, fmt.Errorf("task %s: %w", id, driver.ErrTaskEnded)
	}
	membership, err := os.ReadFile("/proc/" + strconv.Itoa(t.record.InitPID) + "/cgroup")
	if err != nil {
		return driver.Usage{}, fmt.Errorf("measure task %s: %w", id, driver.ErrTaskEnded)
	}
	groups := parseMembership(string(membership))
	usage := driver.Usage{At: time.Now()}
	if err := groups.measure("/sys/fs/cgroup", &usage); err != nil {
		return driver.Usage{}, fmt.Errorf("measure task %s: %w", id, err)
	}
	// The init is ours, not the task's.
	usage.Processes = max(usage.Processes-1, 0)
	usage.Threads = max(usage.Threads-threadsOf(t.record.InitPID), usage.Processes)
	return usage, nil
}

// membership is where a process is in each hierarchy of cgroups; "" is the
// one of version 2.
type membership map[string]string

// parseMembership reads /proc/<pid>/cgroup. Pure.
func parseMembership(text string) membership {
	m := make(membership)
	for line := range strings.SplitSeq(text, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			m[controller] = parts[2]
		}
	}
	return m
}

// measure reads the figures below root, where cgroups are mounted.
func (m membership) measure(root string, usage *driver.Usage) error {
	if path, ok := m["cpuacct"]; ok {
		return m.measureV1(root, path, usage)
	}
	dir := filepath.Join(root, m[""])
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	usage.Processes = countLines(procs)
	if threads, err := os.ReadFile(filepath.Join(dir, "cgroup.threads")); err == nil {
		usage.Threads = countLines(threads)
	}
	cpu := readStats(filepath.Join(dir, "cpu.stat"))
	memory := readStats(filepath.Join(dir, "memory.stat"))
	usage.CPUTime = time.Duration(cpu["usage_usec"]) * time.Microsecond
	usage.RSSBytes = memory["anon"] + memory["file_mapped"]
	return nil
}

func (m membership) measureV1(root, path string, usage *driver.Usage) error {
	dir := filepath.Join(root, "cpuacct", path)
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	usage.Processes = countLines(procs)
	if threads, err := os.ReadFile(filepath.Join(dir, "tasks")); err == nil {
		usage.Threads = countLines(threads)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
	if err != nil {
		return err
	}
	spent, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return err
	}
	usage.CPUTime = time.Duration(spent)
	memory := readStats(filepath.Join(root, "memory", m["memory"], "memory.stat"))
	usage.RSSBytes = memory["total_rss"] + memory["total_mapped_file"]
	return nil
}

func countLines(text []byte) int { return strings.Count(string(text), "\n") }

// readStats reads a file of names and numbers; what is not there is 0.
func readStats(file string) map[string]int64 {
	figures := make(map[string]int64)
	body, err := os.ReadFile(file)
	if err != nil {
		return figures
	}
	for line := range strings.SplitSeq(string(body), "\n") {
		if name, value, ok := strings.Cut(line, " "); ok {
			if number, err := strconv.ParseInt(value, 10, 64); err == nil {
				figures[name] = number
			}
		}
	}
	return figures
}

// threadsOf counts the threads of one process.
func threadsOf(pid int) int {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return 0
	}
	return len(entries)
}
