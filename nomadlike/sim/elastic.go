package sim

import (
	"slices"
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// This file plays jobs that give torchrun a range of nodes, and looks at what the
// servers make of the range: a gang starts with what is free within it, goes on
// without a rank as long as enough are left, and starts anew on more nodes.

// Every rangeEvery-th job has a range, from the rangeFirst-th on: one or two of a
// usual cluster. They run for minutes, and a cluster takes as long as its last job.
const (
	rangeEvery = 20
	rangeFirst = 7
)

// stretch makes a job one with a range: of large ranks, so that it starts beside
// others with fewer than it asked for, and long enough to be worth growing. Its
// limit is what the scheduler reckons with.
func (p *people) stretch(wish *wish) {
	job := wish.job
	job.Distributed.Mode = structs.ModePyTorch
	job.Nodes = 3 + p.w.rng.IntN(3)
	job.Distributed.MinNodes = 1 + p.w.rng.IntN(job.Nodes-1)
	job.Resources[0].CPU = float64(9+p.w.rng.IntN(7)) / 4
	job.TimeLimit = structs.Duration(24 * time.Hour)
	wish.runs = p.w.span(65*time.Second, 90*time.Second)
}

// sent is a job as it is proposed.
func (p *people) sent(job *structs.Job) *structs.Job {
	if p.w.config.Break != PlantForgottenRange || !job.TorchRange() {
		return job
	}
	copied := *job
	copied.Distributed.MinNodes = 1
	return &copied
}

// asksFor is a job as its user asked for it: what became of it on the way is what
// the checkers are for.
func (w *Cluster) asksFor(admitted *structs.Job) *structs.Job {
	if wish := w.people.promised[admitted.ID]; wish != nil {
		return wish.job
	}
	return admitted
}

// checkSize is I9 for the number of ranks: all that the job asks for, or what its
// range allows.
func (w *Cluster) checkSize(admitted *structs.Job, a *structs.Allocation, ranks int) {
	if job := w.asksFor(admitted); ranks < job.NodesMin() || ranks > job.Nodes {
		w.fail("I9: job %s attempt %d has %d ranks of %d to %d", a.JobName, a.Attempt, ranks, job.NodesMin(), job.Nodes)
	}
}

// checkRanges is I9 for gangs that go on without some of their ranks: enough are
// left, and rank 0, at which they meet, is one of them.
func (w *Cluster) checkRanges(snapshot *state.Snapshot) {
	for attempt := range snapshot.LiveAttempts() {
		view, ok := snapshot.Job(attempt.JobID)
		if !ok || attempt.State != structs.AttemptRunning || !view.Job.TorchRange() {
			continue
		}
		left, first := 0, false
		for a := range snapshot.Gang(attempt.JobID, attempt.Subjob, attempt.Number) {
			if !a.Status.Terminal() || a.Status == structs.AllocComplete {
				left++
				first = first || a.Rank == 0
			}
		}
		if job := w.asksFor(view.Job); left < job.NodesMin() || !first {
			w.fail("I9: job %s attempt %d goes on with %d ranks of %d to %d, rank 0 among them: %v",
				job.Name, attempt.Number, left, job.NodesMin(), job.Nodes, first)
		}
		if attempt.RanksLeft() < view.Job.Nodes {
			w.small[attemptOf{attempt.JobID, attempt.Subjob, attempt.Number}] = attempt.RanksLeft()
		}
	}
}

// Paces of the look at gangs that could grow.
const (
	growthEvery  = time.Second
	growthSettle = time.Minute     // that a gang runs between two changes of its size
	growthWithin = 5 * time.Second // of there being room
)

// watchGrowth is I11 for ranges: once all is healed, a gang with fewer nodes than
// it asked for does not stay so while there is room that nobody waits for.
func (w *Cluster) watchGrowth() {
	w.after(growthEvery, w.watchGrowth)
	if !w.healed {
		return
	}
	snapshot := w.log.state()
	could := make(map[attemptOf]time.Duration)
	for attempt := range snapshot.LiveAttempts() {
		if !w.couldGrow(snapshot, attempt) {
			continue
		}
		key := attemptOf{attempt.JobID, attempt.Subjob, attempt.Number}
		since, known := w.could[key]
		if !known {
			since = w.now
		}
		if w.now-since > growthWithin && w.now-since <= growthWithin+growthEvery {
			w.fail("I11: job %s attempt %d stays with %d nodes for %s, and there is room for more", attempt.JobID, attempt.Number, attempt.RanksLeft(), w.now-since)
		}
		could[key] = since
	}
	w.could = could
}

// couldGrow reports whether there surely is room for one more node: a machine that
// the gang is not on has what one of its ranks asks for, and nothing waits.
func (w *Cluster) couldGrow(snapshot *state.Snapshot, attempt *structs.Attempt) bool {
	view, ok := snapshot.Job(attempt.JobID)
	if !ok || !view.Job.TorchRange() || attempt.State != structs.AttemptRunning || attempt.RanksLeft() >= view.Job.Nodes {
		return false
	}
	subjob := snapshot.Subjob(attempt.JobID, attempt.Subjob)
	if subjob == nil || subjob.State != structs.JobRunning || w.wall().Sub(attempt.RunningAt) < growthSettle {
		return false
	}
	for _, s := range snapshot.Queue() {
		if s.Wait == nil || !s.Wait.Never {
			return false
		}
	}
	var taken []string
	for a := range snapshot.Gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if !a.Status.Terminal() {
			taken = append(taken, a.NodeID)
		}
	}
	if len(taken) < attempt.RanksLeft() {
		return false // the others are done, or failed by themselves
	}
	return slices.ContainsFunc(w.nodes, func(m *machine) bool {
		return !slices.Contains(taken, m.id) && m.hasRoom(snapshot, view.Job.Resources[0])
	})
}

// hasRoom reports whether a machine that the servers count on has room for a rank.
func (m *machine) hasRoom(snapshot *state.Snapshot, spec structs.Resources) bool {
	node := snapshot.Node(m.id)
	if node == nil || node.Status != structs.NodeReady {
		return false
	}
	cpu, memory := structs.MilliCPU(node.Capacity.CPU), node.Capacity.Memory
	for a := range snapshot.AllocsOfNode(m.id) {
		if a.OccupiesNode() {
			cpu -= structs.MilliCPU(a.Spec.CPU)
			memory -= a.Spec.Memory
		}
	}
	return cpu >= structs.MilliCPU(spec.CPU) && memory >= spec.Memory
}

// noteGrowth counts the gangs that came back larger.
func (w *Cluster) noteGrowth(snapshot *state.Snapshot, s *structs.Subjob) {
	before, known := w.small[attemptOf{s.JobID, s.Index, s.Attempt - 1}]
	if attempt := snapshot.Attempt(s.JobID, s.Index, s.Attempt); known && attempt != nil && len(attempt.Allocs) > before {
		w.outcome.Grown++
	}
}
