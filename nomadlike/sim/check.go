package sim

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// invariantsEvery is how often the whole state is checked, in log entries.
const invariantsEvery = 10

// standing is how a subjob stood.
type standing struct {
	attempt uint64
	state   structs.JobState
}

// checkCommitted looks at the state after an entry: I2 and I10 over time, I1, I2,
// I5 to I7, I9, I10 by the state's own checker, and I4.
func (w *Cluster) checkCommitted(index uint64) {
	snapshot := w.log.state()
	w.checkTime(snapshot)
	w.checkRanges(snapshot)
	if index%invariantsEvery != 0 {
		return
	}
	for _, problem := range state.CheckInvariants(snapshot) {
		w.fail("at index %d: %s", index, problem)
	}
	w.checkPromises(snapshot)
	w.checkSubjobs(snapshot)
	w.checkWindows(snapshot)
}

// checkTime is what two states tell together. I2: the number of the newest
// attempt never falls, and rises by one. I10: what has ended has ended; nobody
// resumes here.
func (w *Cluster) checkTime(snapshot *state.Snapshot) {
	for view := range snapshot.Jobs() {
		for s := range snapshot.Subjobs(view.Job.ID) {
			key, now := attemptOf{job: s.JobID, subjob: s.Index}, standing{s.Attempt, s.State}
			before, known := w.stood[key]
			w.stood[key] = now
			if !known || before == now {
				continue
			}
			if now.attempt < before.attempt || now.attempt > before.attempt+1 {
				w.fail("I2: %s/%d comes to attempt %d after %d", s.JobID, s.Index, now.attempt, before.attempt)
			}
			if now.attempt > before.attempt {
				w.noteGrowth(snapshot, s)
				w.checkPlaced(snapshot, s)
			}
			if before.state.Terminal() {
				w.fail("I10: %s/%d ended as %s and is %s", s.JobID, s.Index, before.state, now.state)
			}
		}
	}
}

// checkSubjobs looks at what only the true history can tell of subjobs: I1, I19.
func (w *Cluster) checkSubjobs(snapshot *state.Snapshot) {
	for view := range snapshot.Jobs() {
		for s := range snapshot.Subjobs(view.Job.ID) {
			w.checkSaved(s)
			w.checkCharged(s)
		}
	}
}

// checkPromises is I4: an acknowledged job is in every later state.
func (w *Cluster) checkPromises(snapshot *state.Snapshot) {
	for _, id := range sortedKeys(w.people.promised) {
		if _, ok := snapshot.Job(id); !ok {
			w.fail("I4: job %s was acknowledged and is not in the state", id)
		}
	}
}

// checkStart is I9 in true time: a rank starts only when its whole attempt is
// committed and every rank of it was prepared once.
func (w *Cluster) checkStart(m *machine, id string) {
	snapshot := w.log.state()
	a := snapshot.Alloc(id)
	if a == nil {
		w.fail("I9: %s starts on %s and is not in the state", id, m.name)
		return
	}
	if a.NodeID != m.id {
		w.fail("I9: %s starts on %s, the plan says %s", id, m.name, a.NodeName)
	}
	if !a.Released {
		w.fail("I9: rank %d of job %s attempt %d starts on %s before the barrier", a.Rank, a.JobName, a.Attempt, m.name)
	}
	view, ok := snapshot.Job(a.JobID)
	if !ok {
		w.fail("I9: %s starts and its job is not in the state", id)
		return
	}
	w.checkSize(view.Job, a, len(slices.Collect(snapshot.Gang(a.JobID, a.Subjob, a.Attempt))))
	if view.Job.Fencing == structs.FencingStrict {
		w.checkAlone(a)
	}
	// On one machine an old attempt must be gone before the next begins.
	for other := range m.processes {
		b := snapshot.Alloc(other)
		if b != nil && b.JobID == a.JobID && b.Subjob == a.Subjob && b.Attempt != a.Attempt {
			w.fail("I3: attempts %d and %d of job %s run on %s together", b.Attempt, a.Attempt, a.JobName, m.name)
		}
	}
}

// checkAlone is I3 in true time: while a strict job starts, nothing of an older
// attempt runs on any machine.
func (w *Cluster) checkAlone(a *structs.Allocation) {
	snapshot := w.log.state()
	for _, m := range w.nodes {
		for id := range m.processes {
			b := snapshot.Alloc(id)
			if b != nil && b.JobID == a.JobID && b.Subjob == a.Subjob && b.Attempt < a.Attempt {
				w.fail("I3: attempt %d of strict job %s starts while attempt %d runs on %s", a.Attempt, a.JobName, b.Attempt, m.name)
			}
		}
	}
}

// killWithin is how long a connected node may take to kill what was given to
// others while it was lost.
const killWithin = 10 * time.Second

// checkOld is I12 for the attempts that a node lost: once it is back and
// knows, nothing of them may go on.
func (w *Cluster) checkOld(m *machine) {
	if w.now-m.link.since < killWithin || len(m.processes) == 0 {
		return
	}
	snapshot := w.log.state()
	for _, id := range sortedKeys(m.processes) {
		if a := snapshot.Alloc(id); a != nil && a.Status == structs.AllocLost && w.now-m.processes[id].started > killWithin {
			w.fail("I12: attempt %d of job %s was lost and still runs on %s", a.Attempt, a.JobName, m.name)
		}
	}
}

// checkPure is I14: the same input leads to the same plan.
func (w *Cluster) checkPure(input scheduler.Input, now structs.UnixNano, seed uint64, plan structs.Plan) {
	again := scheduler.Schedule(input, now, seed)
	if w.config.Break == PlantUnstableChoice && len(again.Gangs) > 0 {
		again.Gangs[0].Spec++
	}
	a, errA := wire.Marshal(plan)
	b, errB := wire.Marshal(again)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		w.fail("I14: the same input gave two plans")
	}
}

// rested reports whether everything that was asked for has ended or waits with
// a reason, and nothing runs.
func (w *Cluster) rested() bool {
	if w.people.number < w.config.Jobs {
		return false
	}
	for _, wish := range w.people.asked {
		if !wish.acked {
			return false
		}
	}
	for _, m := range w.nodes {
		if len(m.processes) > 0 || len(m.held) > 0 || len(m.link.outbox) > 0 || !m.link.live {
			return false
		}
	}
	return w.unrested() == ""
}

// unrested names a subjob that has neither ended nor a reason to wait.
func (w *Cluster) unrested() string {
	snapshot := w.log.state()
	for view := range snapshot.Jobs() {
		for s := range snapshot.Subjobs(view.Job.ID) {
			waits := s.State == structs.JobQueued && s.Wait != nil && s.Wait.Never
			if !s.State.Terminal() && !waits {
				return s.JobID + " is " + string(s.State) + w.standing(snapshot, s)
			}
		}
	}
	return ""
}

// standing reports how the ranks of a subjob's newest attempt stand, in the
// state and on their machines.
func (w *Cluster) standing(snapshot *state.Snapshot, s *structs.Subjob) string {
	text := ""
	for a := range snapshot.Gang(s.JobID, s.Index, s.Attempt) {
		text += fmt.Sprintf(" (attempt %d rank %d on %s: desired %s, %s", a.Attempt, a.Rank, a.NodeName, a.Desired, a.Status)
		for _, m := range w.nodes {
			if m.id != a.NodeID {
				continue
			}
			local, known := m.table.State(a.ID)
			text += fmt.Sprintf("; there %v %s, session %v", known, local.Phase, m.link.live)
		}
		text += ")"
	}
	return text
}

// finalChecks are those of a cluster at rest: I4, I11, I12, I13, I23.
func (w *Cluster) finalChecks() {
	if len(w.outcome.Problems) >= problemsMax {
		return
	}
	snapshot := w.log.state()
	for _, problem := range state.CheckInvariants(snapshot) {
		w.fail("at the end: %s", problem)
	}
	w.checkPromises(snapshot)
	w.checkSubjobs(snapshot)
	w.checkLogs()
	if who := w.unrested(); who != "" {
		w.fail("I11: job %s %s after the faults were healed", who, w.config.Settle)
	}
	for _, wish := range w.people.asked {
		if !wish.acked {
			w.fail("I11: the submission of %s was never acknowledged", wish.job.Name)
		}
	}
	for _, m := range w.nodes {
		for _, id := range sortedKeys(m.processes) {
			a := snapshot.Alloc(id)
			if a == nil || a.Status.Terminal() {
				w.fail("I12: %s still runs on %s", id, m.name)
			}
		}
		for _, id := range sortedKeys(m.held) {
			w.fail("I12: %s is still held on %s", id, m.name)
		}
	}
	for _, r := range w.log.replicas {
		if !r.down {
			w.log.applyUpTo(r, w.log.committed())
			w.log.compareNow(r)
		}
	}
	for view := range snapshot.Jobs() {
		w.outcome.Ended[view.Status.State]++
	}
}
