package device

import (
	"time"

	"nomadlike/nomadlike/structs"
)

// Reaping asks for devices to be cleaned of dead tasks.
type Reaping struct {
	IDs []string `json:"ids"`
	// Mine marks the processes of this agent's tasks, dead or alive. Others
	// are never ended: they are reported.
	Mine []Mark `json:"mine"`
	// Live marks the tasks that still run. They are never ended.
	Live []Mark `json:"live,omitempty"`
	// Limit bounds how long the ending may take; 0: ReapLimitDefault.
	Limit time.Duration `json:"limit,omitempty"`
}

// Mark recognises processes. A process is marked when any field that is set
// holds for it.
type Mark struct {
	// Cgroup is a path prefix, ending at a slash or the path's end, of the
	// process's cgroup in any hierarchy, for instance "/nomadlike".
	Cgroup string `json:"cgroup,omitempty"`
	// Env is the beginning of a variable in the environment that the process
	// was started with, for instance "NOMADLIKE_TASK_MARKER=".
	Env string `json:"env,omitempty"`
	// PID is a process, whose descendants count, too. 0: none.
	PID int `json:"pid,omitempty"`
}

// ReapReport says what a Reap has found.
type ReapReport struct {
	Devices []Reaped `json:"devices"` // in the order of the request
}

// Clean reports whether every device may be used.
func (r ReapReport) Clean() bool {
	for i := range r.Devices {
		if !r.Devices[i].Clean {
			return false
		}
	}
	return true
}

// Reaped is one device after a Reap.
type Reaped struct {
	ID         string    `json:"id"`
	Killed     []Process `json:"killed,omitempty"`  // of dead tasks, ended now
	Unkillable []Process `json:"stuck,omitempty"`   // of dead tasks, could not be ended
	Foreign    []Process `json:"foreign,omitempty"` // of nobody that this agent knows
	Live       []Process `json:"live,omitempty"`    // of tasks that still run
	// MemoryUsed is what the device still has in use, in bytes; -1: unknown.
	MemoryUsed int64 `json:"memory_used"`
	// Clean: a task may be started on it. An unkillable process, or memory that
	// belongs to nobody, makes the device unclean, and the plugin cordons it.
	Clean  bool            `json:"clean"`
	Reason *structs.Reason `json:"reason,omitempty"` // why it is not clean
}
