package layout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Layout names the files of the node's data directory. What a task may write
// lies in alloc; what the agent keeps of it, and is controlled by, lies in
// records, which no task sees.
type Layout struct{ Root string }

// Allocs is the directory of all allocations.
func (l Layout) Allocs() string { return filepath.Join(l.Root, "alloc") }

// Alloc is the directory of one allocation.
func (l Layout) Alloc(id string) string { return filepath.Join(l.Allocs(), id) }

// Task is the task's own directory.
func (l Layout) Task(id string) string { return filepath.Join(l.Alloc(id), "task") }

// Rsh is the directory of a rank's socket.
func (l Layout) Rsh(id string) string { return filepath.Join(l.Alloc(id), "rsh") }

// RSHSocket is a rank's socket.
func (l Layout) RSHSocket(id string) string {
	return filepath.Join(l.Rsh(id), "agent.sock")
}

// Records is the directory of what the agent keeps of allocations.
func (l Layout) Records() string { return filepath.Join(l.Root, recordsDir) }

// RecordsOf is what the agent keeps of one allocation.
func (l Layout) RecordsOf(id string) string { return filepath.Join(l.Records(), id) }

// Metrics is the file of the training metrics of an allocation.
func (l Layout) Metrics(id string) string { return l.record(id, "metrics.json") }

// UsageHistory is the file of what a rank used.
func (l Layout) UsageHistory(id string) string { return l.record(id, "figures.json") }

func (l Layout) output(id string) string { return l.record(id, "output.json") }

// Logs is the directory of what the command wrote.
func (l Layout) Logs(id string) string { return l.record(id, "logs") }

// HookPlan is the file of what hooks need.
func (l Layout) HookPlan(id string) string { return l.record(id, "hooks.json") }

// HoldPlan is the file of what a debug hold needs.
func (l Layout) HoldPlan(id string) string { return l.record(id, "hold-task.json") }

// Hold is the file that says that an allocation is held.
func (l Layout) Hold(id string) string { return l.record(id, "hold.json") }

// SavedState is the file that says what is saved of a failed container.
func (l Layout) SavedState(id string) string { return l.record(id, "kept.json") }

// HoldLogs is the directory of the logs of a debug hold's task.
func (l Layout) HoldLogs(id string) string { return l.record(id, "hold") }

// HookLogs is the directory of what hooks wrote.
func (l Layout) HookLogs(id string) string { return l.record(id, "hooks") }

// HookTaskLogs is the directory of the logs of the hooks' own task.
func (l Layout) HookTaskLogs(id string) string { return l.record(id, "hook-task") }

// RSHToken is the file of the secret of a rank's socket.
func (l Layout) RSHToken(id string) string { return l.record(id, "rsh-token") }

// Code is the directory of the code of jobs, as the servers sent it.
func (l Layout) Code() string { return filepath.Join(l.Root, "code") }

// Lease is the file of the node's lease.
func (l Layout) Lease() string { return filepath.Join(l.Root, "lease.json") }

// recordsDir is the directory of what the agent keeps of allocations.
const recordsDir = "records"

// record names what the agent keeps of an allocation. Agents before 2026-11-22
// kept it beside the task's directory: so it is with what they have prepared.
func (l Layout) record(id, name string) string {
	dir := l.RecordsOf(id)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(l.Alloc(id)); err == nil {
			return filepath.Join(l.Alloc(id), name)
		}
	}
	return filepath.Join(dir, name)
}

// Below is a path of the layout relative to root, where links are not followed.
func (l Layout) Below(path string) string {
	rel, err := filepath.Rel(l.Root, path)
	if err != nil {
		return ".." // refused
	}
	return rel
}
