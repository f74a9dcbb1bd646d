package sim

import (
	"fmt"
	"slices"
	"time"

	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// This file plays operators who plan windows of maintenance, and looks at what these
// promise (I33): nothing starts on a node that could run into a window of it, what runs
// there is stopped at the start unless it may go on, and nodes take work again.

// Every windowsEvery-th history has windows, so many as windowsMax at most.
const (
	windowsEvery = 2
	windowsMax   = 3
	tellAgain    = time.Second
)

// window is what an operator was promised. While it is being changed it promises
// nothing.
type window struct {
	structs.Maintenance
	known  bool          // acknowledged as it stands
	since  time.Duration // when it was
	ending bool          // somebody ends it early
}

// planWindows lets operators plan windows over the busy time, from dice of their own:
// what else happens in a history does not depend on how they fall.
func (w *Cluster) planWindows() {
	if w.config.Seed%windowsEvery != 0 || w.config.Calm {
		return
	}
	// Windows are in the cluster's record, which the first leader makes.
	command, err := wire.EncodeCommand(structs.CommandClusterInit, w.wall(), "leader", &structs.ClusterInit{Cluster: structs.Cluster{ID: "sim"}})
	if err != nil {
		w.fail("found the cluster: %v", err)
		return
	}
	w.log.commit(command)
	for i := range 1 + w.operators.IntN(windowsMax) {
		at := time.Duration(w.operators.Int64N(int64(w.config.Busy * 3 / 4)))
		w.after(at, func() { w.planWindow(fmt.Sprintf("window-%d", i)) })
	}
}

func (w *Cluster) within(low, high time.Duration) time.Duration {
	return low + time.Duration(w.operators.Int64N(int64(high-low)))
}

// planWindow makes a window, and lets the operator think again of some.
func (w *Cluster) planWindow(id string) {
	m := &window{Maintenance: structs.Maintenance{ID: id, Reason: "firmware", KeepRunning: w.operators.IntN(2) == 0}}
	switch first := w.operators.IntN(len(w.nodes)); w.operators.IntN(6) {
	case 0:
		m.All = true
	case 1:
		m.Pool = structs.PoolDefault
	default:
		for i := range 1 + w.operators.IntN(2) {
			m.Nodes = append(m.Nodes, w.nodes[(first+i)%len(w.nodes)].name)
		}
		slices.Sort(m.Nodes)
	}
	m.Start = w.wall().Add(w.within(0, 15*time.Second))
	m.End = m.Start.Add(w.within(2*time.Second, 20*time.Second))
	w.windows = append(w.windows, m)
	w.putWindow(m)
	switch w.operators.IntN(4) {
	case 0:
		w.after(w.within(time.Second, 20*time.Second), func() { w.endWindow(m) })
	case 1:
		w.after(w.within(time.Second, 20*time.Second), func() { w.moveWindow(m) })
	}
}

// putWindow proposes a window until somebody says that it is taken.
func (w *Cluster) putWindow(m *window) {
	m.known = false
	sent := m.Maintenance
	if w.config.Break == PlantLateWindow {
		sent.Start, sent.End = sent.Start.Add(20*time.Second), sent.End.Add(20*time.Second)
	}
	w.log.propose(structs.CommandMaintenancePut, "op", &structs.MaintenancePut{Maintenance: sent}, func(result structs.ApplyResult, err error) {
		switch {
		case m.ending:
		case err != nil:
			w.after(tellAgain, func() { w.putWindow(m) })
		case result.Err != nil:
			w.fail("window %s refused: %v", m.ID, result.Err)
		default:
			m.known, m.since = true, w.now
		}
	})
}

// moveWindow moves a window that has not begun, or lets one that has last longer.
func (w *Cluster) moveWindow(m *window) {
	if !m.known || m.ending || w.wall() >= m.End {
		return
	}
	if w.wall() < m.Start {
		m.Start = m.Start.Add(w.within(0, 5*time.Second))
	}
	m.End = max(m.End, m.Start).Add(w.within(time.Second, 5*time.Second))
	w.putWindow(m)
}

// endWindow ends a window now, or calls it off.
func (w *Cluster) endWindow(m *window) {
	m.ending, m.known = true, false
	w.log.propose(structs.CommandMaintenanceStep, "op", &structs.MaintenanceStep{ID: m.ID, Step: structs.MaintenanceRemove}, func(_ structs.ApplyResult, err error) {
		if err != nil {
			w.after(tellAgain, func() { w.endWindow(m) })
		}
	})
}

// sweepWindows begins windows and takes away those that are over, as the servers do.
func (l *leader) sweepWindows(snapshot *state.Snapshot) {
	for _, step := range server.DueMaintenance(snapshot, l.w.wall()) {
		if l.w.config.Break == PlantIdleSweep && step.Step == structs.MaintenanceBegin {
			continue
		}
		l.w.log.propose(structs.CommandMaintenanceStep, "leader", step, func(structs.ApplyResult, error) {})
	}
}

// closes reports whether a window is promised to a machine.
func (m *window) closes(name string) bool {
	return m.known && (m.All || m.Pool == structs.PoolDefault || slices.Contains(m.Nodes, name))
}

// crossing reports whether a job that starts at a time could still run when the window
// begins, or would start in it. Jobs that keep checkpoints lose little when they are
// stopped: they need an hour.
func (m *window) crossing(job *structs.Job, at structs.UnixNano) bool {
	left := m.Start.Sub(at) // until the window begins
	switch {
	case at >= m.End:
		return false
	case left <= 0:
		return true
	case job.TimeLimit > 0:
		return job.TimeLimit.Std() > left
	case job.Checkpoint != nil && !m.KeepRunning:
		return left < time.Hour
	}
	return true
}

// checkPlaced is I33 for a new attempt: none of its nodes has a window that it could
// run into.
func (w *Cluster) checkPlaced(snapshot *state.Snapshot, s *structs.Subjob) {
	view, ok := snapshot.Job(s.JobID)
	if !ok || len(w.windows) == 0 {
		return
	}
	for a := range snapshot.Gang(s.JobID, s.Index, s.Attempt) {
		for _, m := range w.windows {
			if m.closes(w.leader.machine(a.NodeID).name) && m.crossing(view.Job, a.PlacedAt) {
				w.fail("I33: job %s attempt %d starts on %s at %s, and could run into the window from %s to %s",
					a.JobName, a.Attempt, a.NodeName, a.PlacedAt.Sub(origin), m.Start.Sub(origin), m.End.Sub(origin))
			}
		}
	}
}

// windowWithin is how long the servers may take to begin a window, and to notice its end:
// a sweep, or some of them while proposals are lost and leaders change.
const windowWithin = 12 * time.Second

// checkWindows is I33 for time: a window that has begun has stopped what runs there,
// unless it may go on, and one that is over is gone.
func (w *Cluster) checkWindows(snapshot *state.Snapshot) {
	for _, m := range w.windows {
		if !m.known || w.now-m.since < windowWithin {
			continue
		}
		at := w.wall()
		if at > m.End.Add(windowWithin) && slices.ContainsFunc(snapshot.Maintenance(), func(other structs.Maintenance) bool { return other.ID == m.ID }) {
			w.fail("I33: the window %s was over at %s and still closes its nodes", m.ID, m.End.Sub(origin))
			m.known = false
		}
		if m.KeepRunning || at < m.Start.Add(windowWithin) || at >= m.End {
			continue
		}
		for _, node := range w.nodes {
			if !m.closes(node.name) {
				continue
			}
			for a := range snapshot.Occupants(node.id) {
				if a.Desired == structs.DesiredRun && !a.Status.Terminal() {
					w.fail("I33: job %s attempt %d runs on %s, whose window began at %s, and nobody stops it", a.JobName, a.Attempt, node.name, m.Start.Sub(origin))
					m.known = false
				}
			}
		}
	}
}
