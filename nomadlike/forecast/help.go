package forecast

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// A change is proposed when its P50 is earlier by both, or when there was no
// start before.
const (
	helpAtLeast = time.Minute
	helpShare   = 0.1 // of the wait
)

// Bounds on what is tried for one job.
const (
	modelsTried = 4
	poolsTried  = 6
)

// helper looks for changes of one job.
type helper struct {
	*Futures
	job    *structs.Job // with one alternative
	subjob *structs.Subjob
	probe  *probe
	asIs   *newcomer
	before When
	list   []Help
}

// Helps proposes changes of a queued job that would start the subjob sooner,
// the most useful first, as Answer.Helps does for one that is not submitted.
// None when it does not wait, or starts now.
func (f *Futures) Helps(jobID string, subjob int) []Help {
	at, ok := f.found[keyOf(jobID, subjob)]
	if !ok || int(at) >= f.queued || f.members[at].now || f.members[at].subjob.Nomination != nil {
		return nil
	}
	m := &f.members[at]
	before, _ := f.when(int(at))
	return f.helps(m.job, m.subjob, 0, before, &probe{wait: m.wait, pool: m.pool, position: m.place, span: m.span})
}

// helps proposes changes of a job under its alternative spec.
func (f *Futures) helps(job *structs.Job, subjob *structs.Subjob, spec int, before When, got *probe) []Help {
	if before.Verdict == VerdictNow || job.VIP != nil || spec < 0 || spec >= len(job.Resources) {
		return nil
	}
	single := *job
	single.Resources = job.Resources[spec : spec+1]
	h := helper{Futures: f, job: &single, subjob: subjob, probe: got, before: before, asIs: f.newcomerOf(&single, subjob, 0, got)}
	h.timeLimit()
	h.nodes()
	h.spread()
	h.driver()
	h.anywhere()
	h.withoutRDMA()
	h.resources()
	h.pools()
	h.models()
	h.priority()
	h.two()
	slices.SortStableFunc(h.list, func(a, b Help) int { return cmp.Compare(a.P50, b.P50) })
	return h.list[:min(len(h.list), HelpsMax)]
}

// offer proposes a change when it is of use, and reports whether it is.
func (h *helper) offer(help Help, n *newcomer) bool {
	samples := n.samples(0)
	at := func(s sample) bool { return s.open || s.at > h.now }
	if !slices.ContainsFunc(samples, at) { // it seems to start now: the scheduler knows
		got := h.try(n.job, h.subjob, 1)
		if h.immediate(n.job, &got) {
			help.When = h.soon(&got)
			return h.accept(help)
		}
		samples = n.samples(1)
	}
	m := member{job: n.job, subjob: h.subjob, pool: n.pool, position: n.place, span: n.span}
	help.When = h.answer(samples, h.about(&m, samples))
	return h.accept(help)
}

func (h *helper) accept(help Help) bool {
	switch {
	case help.Verdict != VerdictNow && (help.Verdict != VerdictLater || help.Beyond == BeyondP50):
		return false
	case h.before.P90 != 0 && h.before.Beyond == BeyondNone && (help.Beyond != BeyondNone || help.P90 > h.before.P90):
		return false // as likely as not sooner, and perhaps much later
	case h.before.P50 != 0:
		gain := h.before.P50.Sub(help.P50)
		if gain < helpAtLeast || float64(gain) < helpShare*float64(h.before.P50.Sub(h.now)) {
			return false
		}
		help.Sooner = structs.Duration(gain.Round(time.Second))
	}
	h.list = append(h.list, help)
	return true
}

// nodes tries fewer nodes: as many as have room now, as many as the cluster
// has for it at all, and half of what it asks for. A job that saves checkpoints
// may as well begin on fewer.
func (h *helper) nodes() {
	if h.asIs.least < 2 {
		return
	}
	room, able := h.asIs.counts()
	counts := []int{min(able, h.asIs.least-1), h.asIs.least / 2, room}
	slices.SortFunc(counts, func(a, b int) int { return cmp.Compare(b, a) })
	offered := 0
	for _, count := range slices.Compact(counts) {
		if count < 1 || count >= h.asIs.least || offered == 2 {
			continue
		}
		n := *h.asIs
		n.least = count
		job := *h.job
		var help Help
		if job.Checkpoint != nil {
			elastic := structs.Elastic{By: structs.ElasticByRestart}
			if rule := job.ElasticRule(); rule != nil {
				elastic = *rule
			}
			elastic.MinNodes = count
			job.Elastic = &elastic
			help = Help{Reason: *structs.NewReason("forecast.help_elastic", "nodes", job.Nodes, "min_nodes", count), Kind: HelpElastic, MinNodes: count}
		} else {
			help = Help{Reason: *structs.NewReason("forecast.help_nodes", "nodes", count, "was", job.Nodes), Kind: HelpNodes, Nodes: count}
			job.Nodes = count
		}
		n.job = &job
		if h.offer(help, &n) {
			offered++
		}
	}
}

// counts reports on how many nodes a rank has room now, and could have any.
func (n *newcomer) counts() (room, able int) {
	g := n.view()
	for at := range n.tests {
		t := &n.tests[at]
		if !t.able {
			continue
		}
		s := &g.sites[at]
		full := true
		for _, a := range t.asks {
			full = full && bits.OnesCount64(a.of) >= a.count
		}
		if full && t.need.FitsBeside(s.node.FreeBeside(nil)) {
			able++
		}
		if s.nominatedFor == "" && n.open(n.job, s.node) && t.need.FitsBeside(s.free.Amount) && fits(t.asks, s.free.devices) {
			room++
		}
	}
	return room, able
}

// timeLimit tries shorter limits: the longest that fit before windows of maintenance,
// and else some that let the job fit before the starts that others keep. Only limits
// that such jobs seldom need are proposed.
func (h *helper) timeLimit() {
	limit := h.job.TimeLimit.Std()
	least := time.Duration(0)
	if span := h.runtime(h.job, h.subjob); span != nil && (limit == 0 || span.P90 < h.job.TimeLimit) {
		least = span.P90.Std()
	}
	for _, b := range h.beforeWindows() {
		if b.limit < least || limit > 0 && b.limit >= limit {
			continue
		}
		reason := structs.NewReason("forecast.help_time_limit_window",
			"limit", structs.FormatDuration(structs.Duration(b.limit)), "start", b.start.Time().Truncate(time.Second).Format(time.RFC3339))
		if !h.limitTo(b.limit, reason) {
			continue
		}
		last := len(h.list) - 1
		if h.list[last].P90.Add(b.limit) <= b.start {
			return
		}
		h.list = h.list[:last] // it helps, but not by ending before the window
	}
	for _, part := range []time.Duration{2, 4, 8} {
		shorter := (limit / part).Round(time.Minute)
		if shorter < time.Minute || shorter < least || h.asIs.span > 0 && shorter >= h.asIs.span {
			continue
		}
		if h.limitTo(shorter, structs.NewReason("forecast.help_time_limit", "limit", structs.FormatDuration(structs.Duration(shorter)))) {
			return
		}
	}
}

// limitTo offers a time limit.
func (h *helper) limitTo(limit time.Duration, reason *structs.Reason) bool {
	job := *h.job
	job.TimeLimit = structs.Duration(limit)
	n := *h.asIs
	n.job, n.span = &job, limit
	if h.asIs.span > 0 {
		n.span = min(limit, h.asIs.span)
	}
	n.closings = n.closingsFor()
	return h.offer(Help{Reason: *reason, Kind: HelpTimeLimit, TimeLimit: job.TimeLimit}, &n)
}

// pools tries the other pools.
func (h *helper) pools() {
	if len(h.job.Placement.Nodes) > 0 {
		return
	}
	tried := 0
	for _, name := range h.poolNames() {
		record := h.base.Pool(name)
		if name == h.asIs.pool || tried == poolsTried || record != nil && !admits(record, h.job) {
			continue
		}
		job := *h.job
		job.Placement.Pool = name
		got := *h.probe
		got.pool, got.position = name, 1
		for i := range h.members[:h.queued] {
			if m := &h.members[i]; m.pool == name && m.job.Priority.Rank() >= job.Priority.Rank() {
				got.position = max(got.position, m.place+1)
			}
		}
		n := h.newcomerOf(&job, h.subjob, 0, &got)
		if _, able := n.counts(); able < n.least {
			continue
		}
		tried++
		h.offer(Help{Reason: *structs.NewReason("forecast.help_pool", "pool", name), Kind: HelpPool, Pool: name}, n)
	}
}

// poolNames lists the pools that have nodes, by name.
func (f *Futures) poolNames() []string {
	var names []string
	for _, s := range f.view().sites {
		if s.node != nil && !slices.Contains(names, s.node.PoolName()) {
			names = append(names, s.node.PoolName())
		}
	}
	slices.Sort(names)
	return names
}

// admits reports whether a pool's ceilings let the job in.
func admits(pool *structs.Pool, job *structs.Job) bool {
	c := pool.Ceilings
	return (c.TimeLimit == 0 || job.TimeLimit > 0 && job.TimeLimit <= c.TimeLimit) &&
		(c.Nodes == 0 || job.NodesMin() <= c.Nodes) && (c.Devices == 0 || devicesOf(job) <= c.Devices)
}

// models tries other models of the device that the job asks for.
func (h *helper) models() {
	spec := h.job.Resources[0]
	if len(spec.Devices) != 1 || len(spec.Devices[0].IDs) > 0 {
		return
	}
	was := spec.Devices[0]
	name := was.Model
	if len(was.Models) > 0 {
		name = was.Models[0]
	}
	if name == "" {
		return
	}
	tried := 0
	for _, model := range h.deviceModels(was) {
		if tried == modelsTried {
			return
		}
		tried++
		other := was
		other.Model, other.Models = model, nil
		job := *h.job
		job.Resources = []structs.Resources{spec}
		job.Resources[0].Devices = []structs.DeviceRequest{other}
		n := h.newcomerOf(&job, h.subjob, 0, h.probe)
		h.offer(Help{Reason: *structs.NewReason("forecast.help_model", "model", model, "was", name), Kind: HelpSpec, Model: model}, n)
	}
}

// deviceModels lists the models of a kind on the nodes that a request does not
// mean, by name.
func (f *Futures) deviceModels(request structs.DeviceRequest) []string {
	var models []string
	for _, s := range f.view().sites {
		if s.node == nil {
			continue
		}
		for i := range s.node.Devices {
			if d := &s.node.Devices[i]; d.Kind == request.Kind && !d.Meets(request) && d.Memory >= request.Memory && !slices.Contains(models, d.Model) {
				models = append(models, d.Model)
			}
		}
	}
	slices.Sort(models)
	return models
}

// priority tries the urgent tier, whose jobs stand before normal ones and end
// preemptible ones.
func (h *helper) priority() {
	if h.job.Priority.Rank() >= structs.PriorityUrgent.Rank() || h.urgentFull() {
		return
	}
	job := *h.job
	job.Priority = structs.PriorityUrgent
	got := h.try(&job, h.subjob, 1)
	if h.immediate(&job, &got) {
		help := Help{
			Reason: *structs.NewReason("forecast.help_priority", "priority", job.Priority), Kind: HelpPriority, Priority: job.Priority,
			Victims: h.victims(got.gang.Victims),
		}
		if len(help.Victims) > 0 {
			help.Kind = HelpPreemptible
			help.Reason = *structs.NewReason("forecast.help_preempt", "priority", job.Priority, "jobs", help.Victims[0].JobName)
		}
		help.When = h.soon(&got)
		h.accept(help)
		return
	}
	if hopeless(got.wait) {
		return
	}
	n := h.newcomerOf(&job, h.subjob, 0, &got)
	samples := n.samples(1)
	m := member{job: n.job, subjob: h.subjob, pool: n.pool, position: n.place, span: n.span}
	help := Help{Reason: *structs.NewReason("forecast.help_priority", "priority", job.Priority), Kind: HelpPriority, Priority: job.Priority}
	help.When = h.answer(samples, h.about(&m, samples))
	h.accept(help)
}

// urgentFull reports whether the project may have no more urgent jobs.
func (h *helper) urgentFull() bool {
	record := h.base.Project(h.job.Project)
	if record == nil || record.UrgentLimit == nil {
		return false
	}
	usage := h.base.ProjectUsage(h.job.Project)
	return usage != nil && usage.Urgent >= *record.UrgentLimit || *record.UrgentLimit == 0
}
