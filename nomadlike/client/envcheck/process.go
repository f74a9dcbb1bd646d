package envcheck

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a look at processes.
const (
	processesMax = 1 << 15
	environMax   = 1 << 20 // bytes
	namesMax     = 16      // of variables in one fact
)

// unread stands for the value of a secret.
const unread = "***"

// Process is a process of a task as the node's /proc shows it.
type Process struct {
	PID  int
	Name string            // of its program, as the kernel keeps it
	Env  map[string]string // when its program was started; nil when it cannot be read
}

// Processes lists the processes whose environment has the pair marker, and
// their descendants, by pid. proc is where the node's /proc is.
func Processes(proc, marker string) []Process {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	found := make(map[int]Process)
	parents := make(map[int]int)
	for _, entry := range entries[:min(len(entries), processesMax)] {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		name, parent, ok := stat(proc, pid)
		if !ok {
			continue // it has ended
		}
		parents[pid] = parent
		found[pid] = Process{PID: pid, Name: name, Env: environ(proc, pid)}
	}
	name, value, _ := strings.Cut(marker, "=")
	var ours []Process
	for pid, p := range found {
		for at, steps := pid, 0; at > 1 && steps < len(found); at, steps = parents[at], steps+1 {
			if found[at].Env[name] == value {
				ours = append(ours, p)
				break
			}
		}
	}
	slices.SortFunc(ours, func(a, b Process) int { return a.PID - b.PID })
	return ours
}

// stat returns the name and the parent of a process; ok is false when it has ended.
func stat(proc string, pid int) (name string, parent int, ok bool) {
	data, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", 0, false
	}
	text := string(data)
	from, to := strings.Index(text, "("), strings.LastIndex(text, ")") // a name may hold either
	if from < 0 || to < from {
		return "", 0, false
	}
	fields := strings.Fields(text[to+1:])
	if len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return text[from+1 : to], parent, err == nil && fields[0] != "Z" // of what has ended nothing is left to see
}

func environ(proc string, pid int) map[string]string {
	data, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "environ"))
	if err != nil || len(data) > environMax {
		return nil
	}
	env := make(map[string]string)
	for pair := range bytes.SplitSeq(data, []byte{0}) {
		if name, value, ok := strings.Cut(string(pair), "="); ok {
			env[name] = value
		}
	}
	return env
}

// ofLauncher reports whether a launcher started a process as one of several: it
// sets the variables of each anew, as it must.
func ofLauncher(env map[string]string) bool {
	for _, name := range []string{"LOCAL_RANK", "TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "HOROVOD_RANK"} {
		if _, ok := env[name]; ok {
			return true
		}
	}
	return false
}

// Compare holds the environment that the task was given, as Script saw it,
// against the one its processes have: an entrypoint, a script or a tool such as
// env -i may have changed it. What the processes have takes the place of what
// was given, and the facts env.unset, env.changed and env.dropped tell the
// difference. Processes that have the variable probe are the check's own. Of the
// variables in secret no value is read, here or there: facts say that there is one.
func (facts Facts) Compare(processes []Process, probe string, secret map[string]bool) {
	given := make(map[string]string)
	for name, value := range facts {
		switch variable, ok := strings.CutPrefix(name, "env."); {
		case !ok:
		case secret[variable]:
			facts[name] = unread
		default:
			given[variable] = value
		}
	}
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names)
	var unset, changed, dropped []string
	for _, p := range processes {
		if _, own := p.Env[probe]; own || p.Env == nil || ofLauncher(p.Env) {
			continue
		}
		for name, value := range p.Env {
			if _, known := facts["env."+name]; !known && len(facts) < factsMax && watched(name) && !secret[name] {
				facts["env."+name] = bounded(value) // what the script itself has set
			}
		}
		var missing []string
		for _, name := range names {
			value, ok := p.Env[name]
			switch {
			case !ok:
				missing = append(missing, name)
			case bounded(value) != given[name] && facts["env."+name] == given[name]:
				facts["env."+name] = bounded(value)
				changed = append(changed, fmt.Sprintf("%s=%s (%s)", name, bounded(value), given[name]))
			}
		}
		switch {
		case len(missing) == len(names) && len(names) > 0:
			dropped = append(dropped, p.Name)
		default:
			unset = append(unset, missing...)
		}
	}
	for fact, list := range map[string][]string{"env.unset": unset, "env.changed": changed, "env.dropped": dropped} {
		slices.Sort(list)
		list = slices.Compact(list)
		if len(list) > 0 {
			facts[fact] = strings.Join(list[:min(len(list), namesMax)], ", ")
		}
	}
}

// watched reports whether Script would have shown a variable.
func watched(name string) bool {
	for _, prefix := range []string{"NCCL_", "HCCL_", "GLOO_", "CUDA_", "PYTORCH_", "ASCEND_", "OMP_", "MASTER_", "MS_SCHED_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// bounded is a value as Parse keeps it.
func bounded(value string) string {
	return strings.ToValidUTF8(strings.Trim(value[:min(len(value), valueMax)], ", "), "")
}
