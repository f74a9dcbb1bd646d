package client

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// layout names the files of the node's data directory. What a task may write
// lies in alloc; what the agent keeps of it, and is steered by, lies in
// records, which no task sees.
type layout struct{ root string }

func (l layout) allocs() string         { return filepath.Join(l.root, "alloc") }
func (l layout) alloc(id string) string { return filepath.Join(l.allocs(), id) }
func (l layout) task(id string) string  { return filepath.Join(l.alloc(id), "task") }
func (l layout) rsh(id string) string   { return filepath.Join(l.alloc(id), "rsh") }
func (l layout) rshSocket(id string) string {
	return filepath.Join(l.rsh(id), "agent.sock")
}

func (l layout) records() string            { return filepath.Join(l.root, recordsDir) }
func (l layout) recordsOf(id string) string { return filepath.Join(l.records(), id) }

func (l layout) metrics(id string) string      { return l.record(id, "metrics.json") }
func (l layout) figures(id string) string      { return l.record(id, "figures.json") }
func (l layout) output(id string) string       { return l.record(id, "output.json") }
func (l layout) logs(id string) string         { return l.record(id, "logs") }
func (l layout) hookPlan(id string) string     { return l.record(id, "hooks.json") }
func (l layout) hold(id string) string         { return l.record(id, "hold.json") }
func (l layout) kept(id string) string         { return l.record(id, "kept.json") }
func (l layout) holdLogs(id string) string     { return l.record(id, "hold") }
func (l layout) hookLogs(id string) string     { return l.record(id, "hooks") }
func (l layout) hookTaskLogs(id string) string { return l.record(id, "hook-task") }
func (l layout) rshToken(id string) string     { return l.record(id, "rsh-token") }
func (l layout) lease() string                 { return filepath.Join(l.root, "lease.json") }

// recordsDir is the directory of what the agent keeps of allocations.
const recordsDir = "records"

// RecordsDir is where a client with the data directory dir keeps what steers
// it: drivers hide it from tasks.
func RecordsDir(dir string) string { return layout{dir}.records() }

// record names what the agent keeps of an allocation. Agents before 2026-11-22
// kept it beside the task's directory: so it is with what they have prepared.
func (l layout) record(id, name string) string {
	dir := l.recordsOf(id)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(l.alloc(id)); err == nil {
			return filepath.Join(l.alloc(id), name)
		}
	}
	return filepath.Join(dir, name)
}

// below is a path of the layout relative to root, where links are not followed.
func (l layout) below(path string) string {
	rel, err := filepath.Rel(l.root, path)
	if err != nil {
		return ".." // refused
	}
	return rel
}
