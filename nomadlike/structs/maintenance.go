package structs

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of maintenance windows.
const (
	MaintenanceMax       = 64                             // windows that have not ended
	MaintenanceReasonMax = 256                            // bytes: every node of a window carries it
	MaintenanceAheadMax  = Duration(366 * 24 * time.Hour) // from now to the start
	MaintenanceLengthMax = Duration(90 * 24 * time.Hour)  // from start to end
	MaintenanceRunway    = Duration(1 * time.Hour)        // see NodeMaintenance.Bars
	maintenanceForever   = time.Duration(1<<63 - 1)       // a run that nothing ends
)

// Maintenance is a window of time in which nodes take no work, because somebody
// works on them: what Slurm calls a reservation with the flag MAINT. It goes by
// itself once its end has passed. Written by operators.
//
//	ahead ──Start──► begun ──End──► gone
//	  │                │
//	  └────removed─────┘
//
// Nodes, Pool and All exclude each other. A pool means the nodes that are in it at
// the time, as All means all.
type Maintenance struct {
	ID          string   `json:"id"`
	Nodes       []string `json:"nodes,omitempty"` // names, sorted
	Pool        string   `json:"pool,omitempty"`
	All         bool     `json:"all,omitempty"`
	Start       UnixNano `json:"start"`
	End         UnixNano `json:"end"`
	Reason      string   `json:"reason,omitempty"`       // the operator's words
	KeepRunning bool     `json:"keep_running,omitempty"` // what runs at the start goes on; else it is stopped as a drain stops it
	Begun       bool     `json:"begun,omitempty"`        // its start has passed, and its nodes are closed
	By          string   `json:"by,omitempty"`
	At          UnixNano `json:"at,omitempty"` // when it was made
	CreateIndex uint64   `json:"create_index,omitempty"`
	ModifyIndex uint64   `json:"modify_index,omitempty"`
}

// NodeMaintenance is a window as a node of it carries it. state.Apply writes it
// to Node.Maintenance, so that whoever sees a node sees when it is closed.
type NodeMaintenance struct {
	ID          string   `json:"id"`
	Start       UnixNano `json:"start"`
	End         UnixNano `json:"end"`
	Reason      string   `json:"reason,omitempty"`
	KeepRunning bool     `json:"keep_running,omitempty"`
	Begun       bool     `json:"begun,omitempty"`
}

// MaintenancePut makes a window, or replaces one that has not ended. What has
// begun keeps its start.
type MaintenancePut struct {
	Maintenance Maintenance `json:"maintenance"`
}

// MaintenanceStep takes a window further. Begin closes its nodes, and stops what
// runs there unless KeepRunning; repeated, it stops what has come since. Over
// removes a window whose end has passed, and Remove one at any time.
type MaintenanceStep struct {
	ID   string             `json:"id"`
	Step MaintenanceStepped `json:"step"`
}

// MaintenanceStepped is a step of a window.
type MaintenanceStepped string

// The steps of a window.
const (
	MaintenanceBegin  MaintenanceStepped = "begin"  // the leader's sweep: its start has passed
	MaintenanceOver   MaintenanceStepped = "over"   // the leader's sweep: its end has passed
	MaintenanceRemove MaintenanceStepped = "remove" // an operator
)

// Covers reports whether a node belongs to the window.
func (m *Maintenance) Covers(node *Node) bool {
	switch {
	case m.All:
		return true
	case m.Pool != "":
		return m.Pool == node.PoolName()
	}
	_, found := slices.BinarySearch(m.Nodes, node.Name)
	return found
}

// MaintenanceOf returns the windows that cover a node, by start, as the node is to
// carry them; nil when there are none.
func MaintenanceOf(node *Node, windows []Maintenance) []NodeMaintenance {
	var own []NodeMaintenance
	for i := range windows {
		if m := &windows[i]; m.Covers(node) {
			own = append(own, NodeMaintenance{
				ID: m.ID, Start: m.Start, End: m.End, Reason: m.Reason, KeepRunning: m.KeepRunning, Begun: m.Begun,
			})
		}
	}
	return own
}

// SortMaintenance orders windows by start, then by id.
func SortMaintenance(windows []Maintenance) {
	slices.SortFunc(windows, func(a, b Maintenance) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
}

// Maintained returns the window that the node is in now, nil when it is in none.
func (n *Node) Maintained() *NodeMaintenance {
	for i := range n.Maintenance {
		if n.Maintenance[i].Begun {
			return &n.Maintenance[i]
		}
	}
	return nil
}

// MaintenanceAgainst returns the first window that keeps the node from taking a job
// at a time, nil when none does.
func (n *Node) MaintenanceAgainst(job *Job, at UnixNano) *NodeMaintenance {
	for i := range n.Maintenance {
		if w := &n.Maintenance[i]; w.Bars(job, at) {
			return w
		}
	}
	return nil
}

// OpensTo returns the first time, from a time on, at which no window keeps the node
// from taking a job.
func (n *Node) OpensTo(job *Job, from UnixNano) UnixNano {
	for w := n.MaintenanceAgainst(job, from); w != nil; w = n.MaintenanceAgainst(job, from) {
		from = w.End // later than before: a window that bars has not ended
	}
	return from
}

// Bars reports whether a job that starts at a time could run into the window. One
// with a time limit could if the limit ends after the start of the window. One
// without could run for any time; but if it keeps checkpoints, and the window stops
// what runs, it loses little, and is barred from MaintenanceRunway before the start
// on only.
func (w *NodeMaintenance) Bars(job *Job, at UnixNano) bool {
	from, to := w.Closed(job)
	return from <= at && at < to
}

// Closed is from when on, and until when, the window bars a job.
func (w *NodeMaintenance) Closed(job *Job) (from, to UnixNano) {
	return w.Start - UnixNano(job.MaintenanceSpan(w.KeepRunning)) + 1, w.End
}

// MaintenanceSpan is how long a job is counted as running from its start on, as far
// as windows are concerned; the largest Duration for one that may run for any time.
func (j *Job) MaintenanceSpan(keepRunning bool) time.Duration {
	switch {
	case j.TimeLimit > 0:
		return j.TimeLimit.Std()
	case j.Checkpoint != nil && !keepRunning:
		return MaintenanceRunway.Std()
	}
	return maintenanceForever
}
