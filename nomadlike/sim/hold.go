package sim

import (
	"time"

	"nomadlike/nomadlike/structs"
)

// This file plays debug holds and registered checkpoints on the machines, and
// looks in true time at what they must not do.

// held is a failed rank that people may enter: it truly holds what it had.
type held struct {
	attempt uint64
	ending  bool
}

// Paces of what is said again until it is heard.
const (
	sayEvery = time.Second
	sayMax   = 60
)

// hold takes the servers' word on debug holds.
func (m *machine) hold(message *structs.Assignments) {
	wanted := make(map[string]bool)
	for i := range message.Set {
		a := message.Set[i].Alloc
		if a.Hold == nil {
			if m.held[a.ID] != nil {
				m.letGo(a.ID)
			}
			continue
		}
		wanted[a.ID] = true
		if m.held[a.ID] == nil {
			m.held[a.ID] = &held{attempt: a.Attempt}
			m.w.note("hold %s on %s", a.ID, m.name)
			m.w.checkRoom(m)
			id, h := a.ID, m.held[a.ID]
			m.w.after(a.Hold.For.Std(), func() {
				if m.held[id] == h {
					m.letGo(id)
				}
			})
		}
		if a.Hold.Over {
			m.letGo(a.ID)
		}
	}
	for _, id := range sortedKeys(m.held) {
		if message.Full && !wanted[id] {
			m.letGo(id)
		}
	}
}

// inventory is what the node says that it still has: processes and holds.
func (m *machine) inventory() []structs.InventoryItem {
	items := m.table.Inventory()
	for _, id := range sortedKeys(m.held) {
		items = append(items, structs.InventoryItem{AllocID: id, Attempt: m.held[id].attempt})
	}
	return items
}

// letGo ends a hold and tells the servers, in this order.
func (m *machine) letGo(id string) {
	h := m.held[id]
	if h == nil || h.ending {
		return
	}
	h.ending = true
	gone := func() {
		if m.held[id] == h {
			delete(m.held, id)
		}
	}
	delay := m.w.span(time.Millisecond, 200*time.Millisecond)
	if m.w.config.Break == PlantHastyRelease {
		m.sayOver(id, 0)
		m.w.after(20*time.Second, gone)
		return
	}
	m.w.after(delay, func() { gone(); m.sayOver(id, 0) })
}

// sayOver reports that a hold is over until the servers know.
func (m *machine) sayOver(id string, tries int) {
	a := m.w.log.state().Alloc(id)
	if a == nil || a.Hold == nil || tries > sayMax || !m.powered {
		return
	}
	if m.reachable() && m.link.live {
		m.tell(structs.AllocNote{AllocID: id, Attempt: a.Attempt, Hold: &structs.HoldNote{Over: true}})
	}
	m.w.after(sayEvery, func() { m.sayOver(id, tries+1) })
}

// tell proposes a note.
func (m *machine) tell(note structs.AllocNote) {
	note.Seq, note.At = uint64(m.w.now)+1, m.w.wall()
	m.w.log.propose(structs.CommandAllocReports, m.id, &structs.AllocReports{NodeID: m.id, Notes: []structs.AllocNote{note}}, func(structs.ApplyResult, error) {})
}

// save lets a rank register checkpoints for as long as it runs. Some words are
// very late, some are said twice. The step names the attempt that truly saved.
func (m *machine) save(id string, p *process, epoch uint64) {
	m.w.after(m.w.span(300*time.Millisecond, 5*time.Second), func() {
		if m.processes[id] != p {
			return
		}
		note := structs.AllocNote{AllocID: id, Attempt: epoch, Checkpoint: &structs.SavedCheckpoint{Path: "/checkpoint", Step: int64(epoch), SavedAt: m.w.wall()}}
		delay := m.w.span(time.Millisecond, 50*time.Millisecond)
		if m.w.flaky(0.3) {
			delay = m.w.span(time.Second, 30*time.Second)
		}
		m.w.after(delay, func() {
			if !m.reachable() {
				return // it is lost: there will be others
			}
			if m.w.config.Break == PlantForgottenEpoch {
				note = m.asNewest(note)
			}
			m.tell(note)
			if m.w.chance(0.2) {
				m.tell(note)
			}
		})
		m.save(id, p, epoch)
	})
}

// asNewest is a planted defect: what an old attempt saved is told as if the
// newest one had.
func (m *machine) asNewest(note structs.AllocNote) structs.AllocNote {
	snapshot := m.w.log.state()
	a := snapshot.Alloc(note.AllocID)
	if a == nil {
		return note
	}
	subjob := snapshot.Subjob(a.JobID, a.Subjob)
	if subjob == nil {
		return note
	}
	for newest := range snapshot.Gang(a.JobID, a.Subjob, subjob.Attempt) {
		if newest.NodeID == m.id {
			note.AllocID, note.Attempt = newest.ID, newest.Attempt
		}
	}
	return note
}

// checkRoom is I7 in true time: what runs and what is held on a machine fits it.
func (w *Cluster) checkRoom(m *machine) {
	snapshot := w.log.state()
	var cpu float64
	var memory int64
	add := func(id string) {
		if a := snapshot.Alloc(id); a != nil {
			cpu += a.Spec.CPU
			memory += a.Spec.Memory
		}
	}
	for _, id := range sortedKeys(m.processes) {
		add(id)
	}
	for _, id := range sortedKeys(m.held) {
		if m.processes[id] == nil {
			add(id)
		}
	}
	if most := m.node().Capacity; cpu > most.CPU+1e-9 || memory > most.Memory {
		w.fail("I7: %s has %g cores and %d bytes, and %g and %d run or are held there", m.name, most.CPU, most.Memory, cpu, memory)
	}
}

// checkSaved is I1: a checkpoint counts for the attempt that saved it, and those
// of older attempts are not heard after those of newer ones.
func (w *Cluster) checkSaved(s *structs.Subjob) {
	var last uint64
	for _, c := range s.Checkpoints {
		if uint64(c.Step) != c.Attempt {
			w.fail("I1: %s/%d has a checkpoint of attempt %d as one of attempt %d", s.JobID, s.Index, c.Step, c.Attempt)
		}
		if c.Attempt < last {
			w.fail("I1: %s/%d took a checkpoint of attempt %d after one of %d", s.JobID, s.Index, c.Attempt, last)
		}
		last = c.Attempt
	}
}

// checkWanted is I26: a task is stopped because somebody wants that, never
// because its agent or the servers are away; strict ones end with their lease.
func (w *Cluster) checkWanted(m *machine, id string) {
	snapshot := w.log.state()
	a := snapshot.Alloc(id)
	if a == nil || a.Desired != structs.DesiredRun || a.Status.Terminal() {
		return
	}
	if view, ok := snapshot.Job(a.JobID); ok && view.Job.Fencing != structs.FencingStrict {
		w.fail("I26: rank %d of job %s attempt %d is stopped on %s, and nobody asked for it", a.Rank, a.JobName, a.Attempt, m.name)
	}
}

// attemptOf names one attempt of a subjob.
type attemptOf struct {
	job     string
	subjob  int
	attempt uint64
}

// checkCharged is I19: a subjob is charged for attempts in which one of its own
// ranks failed, and for no others.
func (w *Cluster) checkCharged(s *structs.Subjob) {
	failed := 0
	for n := uint64(1); n <= s.Attempt; n++ {
		if w.people.failed[attemptOf{s.JobID, s.Index, n}] {
			failed++
		}
	}
	if s.Restarts > failed {
		w.fail("I19: %s/%d was charged for %d restarts and failed %d times by itself", s.JobID, s.Index, s.Restarts, failed)
	}
}
