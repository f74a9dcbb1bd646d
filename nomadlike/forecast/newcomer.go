package forecast

import (
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// newcomerID names a job that has no id yet. No admitted job can have it.
const newcomerID = "·forecast·"

// Job looks into the future of a board and forecasts a job that is not
// submitted yet. See Futures.Job.
func Job(in Input, job *structs.Job, now structs.UnixNano, seed uint64) Answer {
	return Look(in, now, seed).Job(job)
}

// admitted returns a job as it would be in the queue. The job is not changed.
func (f *Futures) admitted(job *structs.Job) (*structs.Job, *structs.Subjob) {
	own := *job
	if own.ID == "" {
		own.ID = newcomerID
	}
	if own.SubmittedAt == 0 {
		own.SubmittedAt = f.now
	}
	return &own, own.Trial(0, f.now, math.MaxUint64)
}

// probe is what the scheduler would do with a job at now.
type probe struct {
	gang     *structs.GangPlan // nil: it does not start now
	starts   int               // subjobs that do
	wait     *structs.WaitReason
	pool     string
	position int
	span     time.Duration // that the scheduler reckons with; 0: not known
}

// try lets a board, settled at now, serve one more job with so many subjobs.
func (f *Futures) try(job *structs.Job, subjob *structs.Subjob, subjobs int) probe {
	b := f.base.Clone()
	settings := b.Settings()
	settings.Quiet, settings.Alone = false, false
	b.SetSettings(settings)
	b.Submit(job, subjob)
	for i := 1; i < subjobs; i++ {
		other := *subjob
		other.Index = i
		b.Submit(job, &other)
	}
	var got probe
	for q := range b.Queued() {
		if q.Subjob == subjob {
			got.pool, got.position = q.Pool, q.Position
			if q.Expected {
				got.span = q.Span.Std()
			}
			break
		}
	}
	for range settleMax {
		plan := b.Pass(f.now, f.seed)
		found := false
		for i := range plan.Gangs {
			g := &plan.Gangs[i]
			if g.JobID != subjob.JobID {
				continue
			}
			found = true
			got.starts++
			if g.Subjob == subjob.Index {
				got.gang = g
			}
		}
		if !found || got.starts == subjobs {
			break
		}
	}
	got.wait = b.Explain(subjob.JobID, subjob.Index) // of one with nodes nominated for it, too
	return got
}

// immediate reports whether the job starts without waiting for anybody: it has
// room, or it ends all who stand in its way.
func (f *Futures) immediate(job *structs.Job, got *probe) bool {
	switch {
	case got.gang == nil:
		return false
	case job.VIP == nil || !got.gang.Nominate:
		return true
	}
	// Of a VIP job's machines, some may be waited for.
	for i := range got.gang.Placements {
		id := got.gang.Placements[i].NodeID
		if _, usage := f.base.Node(id); usage != nil && usage.NominatedFor != "" || f.usedByEnded(id) {
			return false
		}
		for k := range f.members {
			g := &f.members[k].gang
			if slices.Contains(g.Nodes, id) && !ends(got.gang, f.members[k].subjob) {
				return false
			}
		}
	}
	return true
}

// usedByEnded reports whether more uses a node than what runs there, such as an
// allocation that has failed and is held for people to look at: nobody ends that.
func (f *Futures) usedByEnded(id string) bool {
	_, usage := f.base.Node(id)
	if usage == nil || usage.Allocs == 0 {
		return false
	}
	left := usage.Allocs
	for r := range f.base.Running() {
		for _, node := range r.Nodes {
			if node == id {
				left--
			}
		}
	}
	return left > 0
}

// ends reports whether a gang ends a subjob.
func ends(g *structs.GangPlan, subjob *structs.Subjob) bool {
	return slices.ContainsFunc(g.Victims, func(v structs.AttemptKey) bool {
		return v.JobID == subjob.JobID && v.Subjob == subjob.Index
	})
}

// Job forecasts a job that is not submitted yet: complete and valid, with its
// defaults filled in. Its ID may be empty, and must not be that of a job on the
// board otherwise.
func (f *Futures) Job(job *structs.Job) Answer {
	job, subjob := f.admitted(job)
	count := max(1, job.SubjobCount())
	got := f.try(job, subjob, min(count, SubjobsMax))
	a := Answer{Pool: got.pool, Position: got.position, Spec: -1, Subjobs: count, Room: got.starts}
	if got.gang != nil {
		a.Spec, a.Victims = got.gang.Spec, f.victims(got.gang.Victims)
	}
	if job.VIP != nil && got.gang != nil && got.gang.Nominate {
		a.Victims = f.victims(f.killed(job, got.gang))
	}
	a.When, a.Features, a.Specs = f.answers(job, subjob, &got)
	if a.Verdict != VerdictNow {
		a.Wait = got.wait
	}
	a.Runtime = f.runtime(job, subjob)
	a.Helps = f.helps(job, subjob, soonestSpec(a.Specs), a.When, &got)
	return a
}

// answers forecasts a job that was probed, as a whole and under each of its
// alternatives as if it were the only one.
func (f *Futures) answers(job *structs.Job, subjob *structs.Subjob, got *probe) (When, []float64, []SpecAnswer) {
	rows := make([]SpecAnswer, len(job.Resources))
	samples := make([][]sample, len(rows))
	for i := range rows {
		one := *got
		if len(rows) > 1 {
			single := *job
			single.Resources = job.Resources[i : i+1]
			one = f.try(&single, subjob, 1)
		}
		rows[i] = SpecAnswer{Spec: i, Label: job.Resources[i].Label}
		rows[i].When, samples[i] = f.whenOf(job, subjob, i, &one)
		if rows[i].Verdict == VerdictNow {
			rows[i].Nodes = len(one.gang.Placements)
		} else if rows[i].Wait = one.wait; len(rows) == 1 {
			got.wait = one.wait
		}
	}
	m := member{job: job, subjob: subjob, pool: got.pool, position: got.position, span: got.span}
	first := earliest(samples)
	about := f.about(&m, first)
	switch {
	case len(rows) == 1:
		return rows[0].When, about.Features, rows
	case f.immediate(job, got):
		return f.soon(got), about.Features, rows
	case len(first) == 0: // none ever starts
		got.wait = rows[0].Wait
		return When{Verdict: verdictOf(got.wait)}, about.Features, rows
	}
	return f.answer(first, about), about.Features, rows
}

// soonestSpec is the alternative with the earliest start, the first when none
// has any.
func soonestSpec(rows []SpecAnswer) int {
	best := 0
	for i := range rows {
		if rows[i].P50 != 0 && (rows[best].P50 == 0 || rows[i].P50 < rows[best].P50) {
			best = i
		}
	}
	return best
}

// earliest is the earlier start of several in each future.
func earliest(samples [][]sample) []sample {
	var first []sample
	for _, list := range samples {
		if list == nil {
			continue // never
		}
		if first == nil {
			first = slices.Clone(list)
			continue
		}
		for k := range list {
			if list[k].compare(first[k]) < 0 {
				first[k] = list[k]
			}
		}
	}
	return first
}

// whenOf forecasts the start under one alternative; samples are empty when it
// never starts.
func (f *Futures) whenOf(job *structs.Job, subjob *structs.Subjob, spec int, got *probe) (When, []sample) {
	switch {
	case f.immediate(job, got):
		w := f.soon(got)
		return w, slices.Repeat([]sample{{at: w.P50}}, len(f.futures))
	case hopeless(got.wait):
		return When{Verdict: verdictOf(got.wait)}, nil
	}
	var samples []sample
	if job.VIP != nil {
		samples = f.machines(job, subjob, got)
	} else {
		samples = f.newcomerOf(job, subjob, spec, got).samples(1)
	}
	if !slices.ContainsFunc(samples, func(s sample) bool { return !s.end }) {
		b := f.lonely(func(int) bool { return false })
		b.Submit(job, subjob)
		settle(b, f.now, f.seed)
		if wait := b.Explain(subjob.JobID, subjob.Index); hopeless(wait) {
			got.wait = wait
			return When{Verdict: verdictOf(wait)}, nil
		}
	}
	m := member{job: job, subjob: subjob, pool: got.pool, position: got.position, span: got.span}
	about := f.about(&m, samples)
	return f.answer(slices.Clone(samples), about), samples
}

// soon is the start of a job that starts at once, but for the time that its
// victims take to leave.
func (f *Futures) soon(got *probe) When {
	w := nowAt(f.now)
	longest := time.Duration(0)
	for _, v := range got.gang.Victims {
		if at, ok := f.found[keyOf(v.JobID, v.Subjob)]; ok {
			longest = max(longest, grace(f.members[at].job))
		}
	}
	longest = min(longest, HorizonMax)
	w.P50, w.P90 = f.now.Add(longest/2), f.now.Add(longest-longest/10)
	w.Point = w.P50
	return w
}

// killed lists the gangs that a VIP job ends on its machines, at once or when it
// can have them all.
func (f *Futures) killed(job *structs.Job, promised *structs.GangPlan) []structs.AttemptKey {
	var keys []structs.AttemptKey
	for i := range f.members {
		m := &f.members[i]
		if ends(promised, m.subjob) || f.kills(job, m) {
			keys = append(keys, structs.AttemptKey{JobID: m.subjob.JobID, Subjob: m.subjob.Index, Number: m.gang.Attempt})
		}
	}
	return keys
}

// asks reports since when a VIP job may stop a member on one of its machines for want
// of an answer of its owner, as far as that is known; never: it waits for it.
func (f *Futures) asks(job *structs.Job, subjob *structs.Subjob, m *member) structs.UnixNano {
	if job.VIP.Ask == nil || m.job.VIP != nil || !slices.ContainsFunc(m.gang.Nodes, func(id string) bool {
		node, _ := f.base.Node(id)
		return node != nil && job.VIP.Asks(node)
	}) {
		return never
	}
	if c := subjob.ConsentOf(structs.AttemptKey{JobID: m.subjob.JobID, Subjob: m.subjob.Index, Number: m.gang.Attempt}); c != nil {
		switch {
		case c.Allows(job.VIP.Ask, f.now):
			return f.now
		case c.Answer == structs.ConsentNo || job.VIP.Ask.Silence != structs.BusyKill:
			return never
		}
		return c.Until
	}
	if job.VIP.Ask.Silence == structs.BusyKill {
		return f.now.Add(job.VIP.Ask.For.Std())
	}
	return never
}

// kills reports whether a VIP job that kills last ends a member on one of its machines.
func (f *Futures) kills(job *structs.Job, m *member) bool {
	return job.KillsLast && m.job.VIP == nil && slices.ContainsFunc(m.gang.Nodes, func(id string) bool {
		node, _ := f.base.Node(id)
		return node != nil && slices.ContainsFunc(job.VIP.Machines, func(v structs.VIPMachine) bool {
			return v.Busy == structs.BusyKill && (v.Node == node.ID || v.Node == node.Name)
		})
	})
}

// machines samples the start of a VIP job that waits for some of its machines:
// when the last of those for whom it waits, or for which they were nominated before,
// leaves, and those whom it ends then have stopped. Nobody new comes.
func (f *Futures) machines(job *structs.Job, subjob *structs.Subjob, got *probe) []sample {
	chosen := make(map[int32]bool)
	g := f.view()
	for at := range g.sites {
		if node := g.sites[at].node; node != nil && len(chosen) < job.Nodes && job.VIP.Chooses(node) {
			chosen[int32(at)] = true
		}
	}
	blocked := false
	for at := range chosen {
		blocked = blocked || f.usedByEnded(g.sites[at].node.ID)
	}
	samples := make([]sample, len(f.futures))
	for k := range samples {
		if blocked { // until somebody lets go of it
			samples[k] = sample{at: f.horizon, open: true, end: true}
			continue
		}
		u := &f.futures[k]
		s, stops := sample{at: f.now}, time.Duration(0)
		for i := range u.occupancies {
			h := &u.occupancies[i]
			m := &f.members[h.member]
			if h.placed != nil && !(m.subjob.Nomination != nil && int(h.member) < f.queued) {
				continue
			}
			if !slices.ContainsFunc(g.of(k, u, int32(i)), func(p part) bool { return chosen[p.at] }) {
				continue
			}
			leaves := h.to
			if got.gang != nil && (ends(got.gang, m.subjob) || f.kills(job, m)) {
				stops = max(stops, time.Duration(unit(mix(mix(f.seed, uint64(k)), m.identity()))*float64(grace(m.job))))
				continue
			}
			if at := f.asks(job, subjob, m); at < leaves {
				stops = max(stops, time.Duration(unit(mix(mix(f.seed, uint64(k)), m.identity()))*float64(grace(m.job))))
				leaves = at
			}
			if leaves > f.horizon {
				s = sample{at: f.horizon, open: true, end: leaves == never}
				break
			}
			s.at = max(s.at, leaves)
		}
		if !s.open {
			s.at = min(f.opensTo(job, chosen, s.at.Add(stops)), f.horizon)
		}
		samples[k] = s
	}
	return samples
}

// victims describes gangs that would be ended.
func (f *Futures) victims(keys []structs.AttemptKey) []Victim {
	victims := make([]Victim, 0, len(keys))
	for _, key := range keys {
		at, known := f.found[keyOf(key.JobID, key.Subjob)]
		if !known {
			continue
		}
		m := &f.members[at]
		v := Victim{
			JobID: key.JobID, JobName: m.job.Name, Project: m.job.Project, User: m.job.User, Subjob: key.Subjob, Attempt: key.Number,
			Priority: m.job.Priority, Preemptible: m.job.Preemptible, Nodes: slices.Clone(m.gang.Nodes), Since: m.gang.RunningAt,
			CheckpointAt: m.gang.CheckpointAt, Grace: structs.Duration(grace(m.job)),
		}
		if since := max(m.gang.RunningAt, m.gang.CheckpointAt); since > 0 && since < f.now {
			v.Lost = structs.Duration(f.now.Sub(since))
		}
		victims = append(victims, v)
	}
	return victims
}

// runtime is how long a job will run over all futures; nil: nobody knows.
func (f *Futures) runtime(job *structs.Job, subjob *structs.Subjob) *Span {
	count := len(f.futures)
	own := chances(f.seed, []member{{job: job, subjob: subjob}}, count)
	spans := make([]time.Duration, 0, count)
	for i := range count {
		span, known := f.times.Draw(mix(f.seed, uint64(i))).Runtime(job, 0, own[i], 0)
		if !known {
			return nil
		}
		spans = append(spans, min(max(span, 0), HorizonMax))
	}
	slices.Sort(spans)
	return &Span{P50: structs.Duration(rank(spans, 0.5)), P90: structs.Duration(rank(spans, 0.9))}
}
