package exec

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// deletedDir is what the kernel puts behind the name of a directory that was
// removed while a process is in it.
const deletedDir = " (deleted)"

// orphans finds the supervisors whose directory of tasks is gone, such as
// after the data directory was wiped.
type orphans struct {
	dir string // the driver's directory of tasks
}

// list names the tasks whose records are gone, such as after the data
// directory was wiped, while their processes are not: supervisors work in the
// driver's directory of tasks, and what runs below them has the task's mark in
// its environment.
func (o orphans) list(recorded map[driver.TaskID]bool) ([]driver.Handle, error) {
	all, err := proctree.All()
	if err != nil {
		return nil, err
	}
	var handles []driver.Handle
	for _, p := range all {
		dir, ours := o.supervises(p)
		if !ours || !strings.HasSuffix(dir, deletedDir) {
			continue
		}
		below, err := proctree.Descendants(p.PID)
		if err != nil {
			continue // it has ended
		}
		for _, child := range below {
			id := taskOf(child.PID)
			if id == "" || recorded[id] {
				continue
			}
			recorded[id] = true
			handles = append(handles, newHandle(id, &supervisor.State{Version: supervisor.RecordVersion, TaskID: string(id)}))
		}
	}
	return handles, nil
}

// supervises reports whether a process is a supervisor of this driver, or of
// one that had the same directory before, and the directory that it works in.
func (o orphans) supervises(p proctree.Process) (dir string, ours bool) {
	if p.PID == os.Getpid() || p.Dead() {
		return "", false
	}
	dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.PID), "cwd"))
	if err != nil || strings.TrimSuffix(dir, deletedDir) != filepath.Clean(o.dir) {
		return "", false
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline"))
	return dir, err == nil && strings.Contains(string(line), supervisor.Argument)
}

// taskOf is the task whose mark a process carries, "" for none.
func taskOf(pid int) driver.TaskID {
	mark, ok := proctree.Env(pid, supervisor.MarkerEnv)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(mark, ":")
	if id := driver.TaskID(name); driver.ValidTaskID(id) {
		return id
	}
	return ""
}

// end ends supervisors whose directory is gone and that have nothing to
// supervise any more: they cannot write down what became of their task, and
// nobody will ask them.
func (o orphans) end() {
	all, err := proctree.All()
	if err != nil {
		return
	}
	for _, p := range all {
		dir, ours := o.supervises(p)
		if !ours || !strings.HasSuffix(dir, deletedDir) {
			continue
		}
		if below, err := proctree.Descendants(p.PID); err == nil && len(below) == 0 {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // gone meanwhile is as good
		}
	}
}
