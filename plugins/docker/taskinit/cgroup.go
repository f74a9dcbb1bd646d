package taskinit

import (
	"os"
	"strconv"
	"strings"
)

// oomKills counts what the kernel killed for memory in the cgroup of a
// process, 0 when it does not say.
func oomKills(pid int) int64 {
	membership, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return 0
	}
	return killsIn("/sys/fs/cgroup", string(membership))
}

// killsIn finds the counter for a membership as /proc shows it, below the
// place where cgroups are mounted.
func killsIn(root, membership string) int64 {
	for line := range strings.SplitSeq(membership, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		var files []string
		switch {
		case parts[1] == "memory":
			files = []string{root + "/memory" + parts[2] + "/memory.oom_control"}
		case parts[0] == "0" && parts[1] == "":
			files = []string{root + parts[2] + "/memory.events", root + "/unified" + parts[2] + "/memory.events"}
		}
		for _, file := range files {
			if kills, ok := field(file, "oom_kill"); ok {
				return kills
			}
		}
	}
	return 0
}

// field reads one number of a file of names and numbers.
func field(file, name string) (int64, bool) {
	body, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.SplitSeq(string(body), "\n") {
		if key, value, ok := strings.Cut(line, " "); ok && key == name {
			number, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return number, err == nil
		}
	}
	return 0, false
}

// startTicks reports since when a process runs, in ticks since boot; 0 when it
// does not exist or is dead.
func startTicks(pid int) int64 {
	body, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold anything.
	text := string(body)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const state, start = 0, 19
	if len(fields) <= start || fields[state] == "Z" || fields[state] == "X" {
		return 0
	}
	ticks, err := strconv.ParseInt(fields[start], 10, 64)
	if err != nil {
		return 0
	}
	return ticks
}

// Alive reports whether the process with that id is still the one that started
// then.
func Alive(pid int, ticks int64) bool { return pid > 0 && ticks > 0 && startTicks(pid) == ticks }
