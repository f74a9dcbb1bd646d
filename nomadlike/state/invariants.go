package state

import (
	"fmt"
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// CheckInvariants reports everything in a state that must never be, in words; an
// empty list is a sound state. Numbers are those of the reliability notes:
//
//	I1, I2  reports count for the newest attempt only; at most one attempt of a
//	        subjob is alive, and numbers rise without gaps
//	I3      no attempt of a strict job begins while an older one may still run
//	I5      one job for each idempotency key
//	I6      no device is held twice; what was lost stays held in quarantine
//	I7      what allocations hold is summed right and within what nodes offer
//	I8      what projects hold and how many urgent jobs they have is summed right
//	I9      an attempt has all its ranks, and no rank starts before the barrier
//	I10     subjobs, attempts and allocations stand where the drawn machines let them
//	I17     ledgers are in order, bounded, and never below zero
//	I18     a nomination of nodes is known on both sides, and its victims name it
//
// It walks every row: for tests and simulation, not for production.
func CheckInvariants(s *Snapshot) []string {
	c := &checker{snapshot: s}
	c.jobs()
	c.attempts()
	c.nodes()
	c.projects()
	c.waiting()
	c.nominations()
	c.history()
	c.bounds()
	return c.found
}

type checker struct {
	snapshot *Snapshot
	found    []string
	live     int // subjobs that have not ended
	allJobs  int
	allNodes int
}

func (c *checker) fail(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// jobs checks names, keys and the sums over subjobs.
func (c *checker) jobs() {
	live := make(map[string]string)
	keys := make(map[string]string)
	for view := range c.snapshot.Jobs() {
		job := view.Job
		c.allJobs++
		if !view.Status.State.Terminal() {
			name := job.Project + "/" + job.Name
			if other, taken := live[name]; taken {
				c.fail("I10: jobs %s and %s are both alive as %s", other, job.ID, name)
			}
			live[name] = job.ID
		}
		if job.IdempotencyKey != "" {
			key := idempotencyKey(job.User, job.IdempotencyKey)
			if other, taken := keys[key]; taken {
				c.fail("I5: jobs %s and %s have the same idempotency key", other, job.ID)
			}
			keys[key] = job.ID
		}
		c.subjobs(view)
	}
}

func (c *checker) subjobs(view JobView) {
	var counts Counts
	next, turns := 0, 0
	for subjob := range c.snapshot.Subjobs(view.Job.ID) {
		if subjob.Index != next {
			c.fail("I10: job %s has subjob %d where %d should be", view.Job.ID, subjob.Index, next)
		}
		next++
		if n := counts.of(subjob.State); n != nil {
			*n++
		} else {
			c.fail("I10: subjob %s/%d is in the unknown state %q", subjob.JobID, subjob.Index, subjob.State)
		}
		if !subjob.State.Terminal() {
			c.live++
		}
		if subjob.Turn {
			turns++
		}
		c.subjob(view.Job, subjob)
	}
	if next != view.Job.SubjobCount() {
		c.fail("I10: job %s has %d subjobs instead of %d", view.Job.ID, next, view.Job.SubjobCount())
	}
	most := view.Job.Parallel()
	if turns != view.Status.Turns || turns > 0 && view.Status.Released() < most {
		c.fail("I24: of job %s %d subjobs wait for their turn, %d are counted, %d of %d have theirs", view.Job.ID, turns, view.Status.Turns, view.Status.Released(), most)
	}
	if counts != view.Status.Counts || counts.State() != view.Status.State {
		c.fail("I10: job %s stands at %v %s, its subjobs at %v", view.Job.ID, view.Status.Counts, view.Status.State, counts)
	}
}

// subjob checks that the newest attempt stands where the subjob says.
func (c *checker) subjob(job *structs.Job, subjob *structs.Subjob) {
	where := fmt.Sprintf("subjob %s/%d (%s, attempt %d)", subjob.JobID, subjob.Index, subjob.State, subjob.Attempt)
	if subjob.Held() && subjob.State != structs.JobQueued {
		c.fail("I24: %s is held", where)
	}
	for _, id := range subjob.Pending {
		if other, ok := c.snapshot.Job(id); !ok || other.Status.State.Terminal() {
			c.fail("I24: %s waits for job %s, which is over", where, id)
		}
	}
	if subjob.Attempt == 0 {
		if subjob.State != structs.JobQueued && subjob.State != structs.JobStopped && subjob.State != structs.JobExpired {
			c.fail("I10: %s has no attempt", where)
		}
		return
	}
	attempt := c.snapshot.Attempt(subjob.JobID, subjob.Index, subjob.Attempt)
	if attempt == nil {
		c.fail("I2: %s: its newest attempt is missing", where)
		return
	}
	legal := map[structs.JobState][]structs.AttemptState{
		structs.JobStarting: {structs.AttemptPreparing, structs.AttemptReleased},
		structs.JobRunning:  {structs.AttemptRunning},
		structs.JobPaused:   {structs.AttemptRunning},
		structs.JobStopping: {structs.AttemptEnding},
	}[subjob.State]
	if legal == nil {
		legal = []structs.AttemptState{structs.AttemptEnded}
	}
	if !slices.Contains(legal, attempt.State) {
		c.fail("I10: %s has its attempt %s", where, attempt.State)
	}
	if (subjob.State == structs.JobStopping) != (subjob.StopIntended != "") {
		c.fail("I10: %s is meant to become %q", where, subjob.StopIntended)
	}
	c.control(where, subjob, attempt)
	if subjob.Restarts > job.MaxRestarts() {
		c.fail("I10: %s restarted %d times of %d", where, subjob.Restarts, job.MaxRestarts())
	}
	if subjob.State != structs.JobQueued && subjob.NoPassingAt != 0 {
		c.fail("I10: %s is not to be passed, and does not wait", where)
	}
	if subjob.State == structs.JobQueued && subjob.Wait != nil && subjob.Wait.ID == "" {
		c.fail("I10: %s waits for a reason without words", where)
	}
}

// control checks that every rank was told what the subjob was, and that the
// subjob says it is paused when all of them stand still.
func (c *checker) control(where string, subjob *structs.Subjob, attempt *structs.Attempt) {
	live := subjob.State == structs.JobStarting || subjob.State == structs.JobRunning || subjob.State == structs.JobPaused
	if (attempt.PausedAt != 0) != (subjob.State == structs.JobPaused) {
		c.fail("I10: %s has its attempt paused since %d", where, attempt.PausedAt)
	}
	if subjob.Control.Pauses() && subjob.State != structs.JobRunning && subjob.State != structs.JobPaused {
		c.fail("I10: %s is to be paused", where)
	}
	if !live {
		return
	}
	follow := 0
	for alloc := range c.snapshot.Gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		switch {
		case alloc.Status.Terminal():
			follow++
		case (alloc.Control == nil) != (subjob.Control == nil) || alloc.Control != nil && *alloc.Control != *subjob.Control:
			c.fail("I10: %s was told %v, its rank %d %v", where, subjob.Control, alloc.Rank, alloc.Control)
		case obeys(alloc):
			follow++
		}
	}
	if subjob.State != structs.JobStarting && subjob.Control != nil && follow == len(attempt.Allocs) &&
		subjob.Control.Paused != (subjob.State == structs.JobPaused) {
		c.fail("I10: %s and all its ranks follow %+v", where, *subjob.Control)
	}
}

// attempts checks numbers, gangs and barriers.
func (c *checker) attempts() {
	var before *structs.Attempt
	for row := range each[*attemptRow](c.snapshot.db, tableAttempts, indexID, nil) {
		attempt := row.Attempt
		where := fmt.Sprintf("attempt %s/%d/%d (%s)", attempt.JobID, attempt.Subjob, attempt.Number, attempt.State)
		expected := uint64(1)
		if before != nil && before.JobID == attempt.JobID && before.Subjob == attempt.Subjob {
			expected = before.Number + 1
			if before.State != structs.AttemptEnded {
				c.fail("I2: %s began while the one before is %s", where, before.State)
			}
		}
		subjob := c.snapshot.Subjob(attempt.JobID, attempt.Subjob)
		afterGap := subjob != nil && attempt.Number > expected && subjob.AttemptsFrom >= expected // of a restore
		if attempt.Number != expected && !afterGap {
			c.fail("I2: %s should be number %d", where, expected)
		}
		last := before
		before = attempt
		view, ok := c.snapshot.Job(attempt.JobID)
		if !ok {
			c.fail("I10: %s has no job", where)
			continue
		}
		c.gang(where, view.Job, row)
		if last != nil && last.JobID == attempt.JobID && last.Subjob == attempt.Subjob && attempt.State != structs.AttemptEnded &&
			view.Job.Fencing == structs.FencingStrict {
			for alloc := range c.snapshot.Gang(last.JobID, last.Subjob, last.Number) {
				if mayStillRun(alloc) {
					c.fail("I3: %s began while rank %d of the one before may still run", where, alloc.Rank)
				}
			}
		}
	}
}

// gang checks that an attempt is whole and that its counters are right.
func (c *checker) gang(where string, job *structs.Job, row *attemptRow) {
	attempt := row.Attempt
	if n := len(attempt.Allocs); n < job.RanksOf(job.NodesMin()) || n > job.RanksOf(job.Nodes) {
		c.fail("I9: %s has %d ranks instead of %d to %d", where, n, job.RanksOf(job.NodesMin()), job.RanksOf(job.Nodes))
	}
	if attempt.By != nil && attempt.Outcome != structs.OutcomePreempted && attempt.Outcome != structs.OutcomeLost {
		c.fail("I18: %s made room for %v and is %s", where, *attempt.By, attempt.Outcome)
	}
	counted := attemptRow{Attempt: attempt}
	rank, working := 0, false // whether any rank before the parameter servers runs
	for alloc := range c.snapshot.Gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.Rank != rank || rank >= len(attempt.Allocs) || attempt.Allocs[rank] != alloc.ID {
			c.fail("I9: %s has allocation %s as rank %d", where, alloc.ID, alloc.Rank)
		}
		rank++
		counted.count(alloc, +1)
		started := alloc.Status == structs.AllocRunning || alloc.Status == structs.AllocComplete
		if started && !alloc.Released {
			c.fail("I9: %s: rank %d is %s before the barrier opened", where, alloc.Rank, alloc.Status)
		}
		if alloc.Released && job.NeedsBarrier() && attempt.ReleasedAt == 0 {
			c.fail("I9: %s: rank %d is released before the barrier opened", where, alloc.Rank)
		}
		working = working || !job.IsServer(alloc.Rank) && !alloc.Status.Terminal()
		if !alloc.Status.Terminal() && alloc.Desired == structs.DesiredRun && !(job.IsServer(alloc.Rank) && working) &&
			(attempt.State == structs.AttemptEnding || attempt.State == structs.AttemptEnded) {
			c.fail("I1: %s: rank %d may still run", where, alloc.Rank)
		}
		if attempt.State == structs.AttemptEnded && !alloc.Status.Terminal() {
			c.fail("I2: %s: rank %d is %s", where, alloc.Rank, alloc.Status)
		}
	}
	if rank != len(attempt.Allocs) {
		c.fail("I9: %s keeps %d of its %d ranks", where, rank, len(attempt.Allocs))
	}
	if attempt.RunningAt != 0 && attempt.State == structs.AttemptRunning {
		counted.Due = dueAt(job, attempt)
	} else {
		counted.Due = row.Due // not looked at
	}
	if counted != *row {
		c.fail("I10: %s counts %d/%d/%d/%d/%d, its ranks %d/%d/%d/%d/%d", where,
			row.Prepared, row.Running, row.Complete, row.Terminal, row.Obeyed,
			counted.Prepared, counted.Running, counted.Complete, counted.Terminal, counted.Obeyed)
	}
}

// nodes checks what is held: devices, ports and sums.
func (c *checker) nodes() {
	sums := make(map[string]*structs.Usage)
	for alloc := range c.snapshot.Allocs() {
		if !alloc.OccupiesNode() {
			continue
		}
		if alloc.Quarantined && alloc.Status != structs.AllocLost {
			c.fail("I6: allocation %s is in quarantine and %s", alloc.ID, alloc.Status)
		}
		sum := sums[alloc.NodeID]
		if sum == nil {
			sum = &structs.Usage{NodeID: alloc.NodeID, Ports: map[int]string{}, Devices: map[string]string{}}
			sums[alloc.NodeID] = sum
		}
		sum.Occupy(&alloc.Spec)
		for _, name := range slices.Sorted(maps.Keys(alloc.Ports)) {
			port := alloc.Ports[name]
			if other, held := sum.Ports[port]; held {
				c.fail("I7: node %s: port %d is held by %s and %s", alloc.NodeID, port, other, alloc.ID)
			}
			sum.Ports[port] = alloc.ID
		}
		for _, device := range alloc.Devices {
			if other, held := sum.Devices[device]; held {
				c.fail("I6: node %s: device %s is held by %s and %s", alloc.NodeID, device, other, alloc.ID)
			}
			sum.Devices[device] = alloc.ID
		}
	}
	windows := c.snapshot.Maintenance()
	if len(windows) > structs.MaintenanceMax {
		c.fail("bounds: %d windows of maintenance", len(windows))
	}
	for node, usage := range c.snapshot.Nodes() {
		c.allNodes++
		if own := structs.MaintenanceOf(node, windows); !slices.Equal(own, node.Maintenance) {
			c.fail("maintenance: node %s carries %+v, the windows that cover it are %+v", node.ID, node.Maintenance, own)
		}
		sum := sums[node.ID]
		if sum == nil {
			sum = &structs.Usage{NodeID: node.ID}
		}
		if usage == nil {
			c.fail("I7: node %s has no sums", node.ID)
			continue
		}
		if structs.MilliCPU(sum.CPU) != structs.MilliCPU(usage.CPU) || sum.Memory != usage.Memory || sum.Allocs != usage.Allocs ||
			!maps.Equal(sum.Ports, usage.Ports) || !maps.Equal(sum.Devices, usage.Devices) {
			c.fail("I7: node %s is said to hold %+v, its allocations hold %+v", node.ID, *usage, *sum)
		}
		if overCapacity(usage, node) != usage.Overcommitted {
			c.fail("I7: node %s holds %g cores and %d bytes of %g and %d", node.ID, usage.CPU, usage.Memory, node.Capacity.CPU, node.Capacity.Memory)
		}
	}
}

// bounds checks the rings and their counters.
func (c *checker) bounds() {
	meta := c.snapshot.meta()
	keys := 0
	for range each[*keyRow](c.snapshot.db, tableIdempotency, indexID, nil) {
		keys++
	}
	if keys != len(meta.keys) || keys > IdempotencyKeysMax {
		c.fail("bounds: %d keys are kept, listed are %d", keys, len(meta.keys))
	}
	if meta.Jobs != c.allJobs || meta.Live != c.live || meta.Nodes != c.allNodes {
		c.fail("bounds: %d jobs, %d live subjobs and %d nodes are counted, there are %d, %d and %d",
			meta.Jobs, meta.Live, meta.Nodes, c.allJobs, c.live, c.allNodes)
	}
	for i := 1; i < len(meta.ring); i++ {
		if !earlier(meta.ring[i-1], meta.ring[i]) {
			c.fail("I20: event %d of the ring does not follow the one before", i)
		}
	}
}
