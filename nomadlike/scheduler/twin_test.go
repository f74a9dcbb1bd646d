package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// twin is a pass written slowly and plainly: no groups, no memory of earlier
// passes, what is free summed anew for every question. It makes the gangs only,
// without VIP jobs, preemption and growth. Which of several fitting nodes a gang
// gets is the floor's choice here as there; package placement has its own twin.
type twin struct {
	world             *world
	now               structs.UnixNano
	settings          Settings
	seed              uint64
	started           map[subjobID]*structs.GangPlan
	order             []subjobID // of started
	reservations      []*twinReservation
	strictAt          map[subjobID]structs.UnixNano // fixed by this pass
	gangs             []structs.GangPlan
	filling           map[string]bool                  // pools whose reservations are made: the shortest go first
	quotaReservations map[string]*twinQuotaReservation // by project
}

// twinReservation is a reservation.
type twinReservation struct {
	id      subjobID
	pool    string
	spec    structs.Resources
	job     *structs.Job
	at      structs.UnixNano
	bounded bool // by limits alone
	strict  bool

	expected structs.UnixNano
	sure     structs.UnixNano           // by limits, of a bounded one
	due      structs.UnixNano           // promised
	spare    map[string]capacity.Amount // by node
}

// twinQuotaReservation is quota that is reserved for a gang of a project.
type twinQuotaReservation struct {
	id     subjobID
	at     structs.UnixNano
	strict bool
	spare  map[int]int64 // by quota
}

func runTwin(w *world, settings Settings, seed uint64) *twin {
	t := &twin{
		world: w, now: w.now, settings: settings, seed: seed,
		started: map[subjobID]*structs.GangPlan{}, strictAt: map[subjobID]structs.UnixNano{}, filling: map[string]bool{}, quotaReservations: map[string]*twinQuotaReservation{},
	}
	var left []subjobID
	for _, s := range w.queued() {
		if s.NotBefore <= w.now && s.Nomination == nil && len(s.Pending) == 0 {
			left = append(left, subjobID{s.JobID, s.Index})
		}
	}
	unpassed, closed, futile := map[string]bool{}, map[string]bool{}, map[string]bool{}
	blocked, nodes := map[string]int{}, map[string]int{}
	for len(left) > 0 {
		id := t.first(left)
		left = slices.DeleteFunc(left, func(x subjobID) bool { return x == id })
		pool := poolOf(w.jobs[id.job])
		if unpassed[pool] || t.place(id) || !t.able(id) {
			continue
		}
		_, why := t.try(id)
		switch {
		case why == faultQuota && !closed[pool]:
			t.awaitQuota(id)
		case why == faultQuota || why == faultQuotaReserved:
		case settings.Passing == NoPassing:
			unpassed[pool] = true
		case !closed[pool]:
			n := t.reserve(id, blocked[pool], nodes[pool])
			if n > 0 {
				blocked[pool]++
				nodes[pool] += n
			} else {
				futile[pool] = true
			}
			if closed[pool] = blocked[pool] > 0 && (blocked[pool] == settings.reservationsMax() || futile[pool] || t.lone(pool, nodes[pool])); !closed[pool] {
				break
			}
			rest := slices.DeleteFunc(slices.Clone(left), func(x subjobID) bool { return poolOf(w.jobs[x.job]) != pool })
			slices.SortFunc(rest, func(a, b subjobID) int { return t.compare(a, b, pool) })
			for _, x := range rest {
				if t.able(x) && t.starved(x) {
					t.awaitQuota(x)
				}
			}
			t.filling[pool] = !t.isFair(pool)
		}
	}
	return t
}

// lone reports whether all that wait in a pool could use what is reserved for the first, which
// leaves no room for another reservation.
func (t *twin) lone(pool string, nodes int) bool {
	first := slices.IndexFunc(t.reservations, func(k *twinReservation) bool { return k.pool == pool })
	k := t.reservations[first]
	if 2*(nodes+1) <= len(t.ableOn(k.job, k.spec)) {
		return false
	}
	node := slices.Min(slices.Collect(maps.Keys(k.spare)))
	return !slices.ContainsFunc(t.world.queued(), func(s *structs.Subjob) bool {
		id := subjobID{s.JobID, s.Index}
		job := t.world.jobs[id.job]
		if s.NotBefore > t.now || s.Nomination != nil || t.started[id] != nil || poolOf(job) != pool || !t.able(id) {
			return false
		}
		return !slices.ContainsFunc(job.Resources, func(spec structs.Resources) bool {
			return t.ableAs(job, spec) && slices.Contains(t.ableOn(job, spec), node)
		})
	})
}

func (t *twin) isFair(pool string) bool {
	record := t.world.pools[pool]
	return record != nil && record.Order == structs.OrderFair
}

// first picks the gang that is served next.
func (t *twin) first(left []subjobID) subjobID {
	heads := map[string]subjobID{}
	for _, id := range left {
		pool := poolOf(t.world.jobs[id.job])
		if head, ok := heads[pool]; !ok || t.compare(id, head, pool) < 0 {
			heads[pool] = id
		}
	}
	return slices.MinFunc(slices.Collect(maps.Values(heads)), func(a, b subjobID) int {
		return Compare(t.world.jobs[a.job], t.world.subjobs[a], t.world.jobs[b.job], t.world.subjobs[b])
	})
}

func (t *twin) compare(a, b subjobID, pool string) int {
	x, y := t.world.jobs[a.job], t.world.jobs[b.job]
	s, u := t.world.subjobs[a], t.world.subjobs[b]
	record, owners := t.world.pools[pool], t.anyGuarantee()
	fair := t.isFair(pool)
	if !fair && !owners && !t.filling[pool] || x.Priority != y.Priority || s.Moved && u.Moved {
		return Compare(x, s, y, u)
	}
	if s.Moved != u.Moved {
		return first(s.Moved)
	}
	if c, d := owners && t.borrows(x), owners && t.borrows(y); c != d {
		return first(d)
	}
	if t.filling[pool] {
		return cmp.Or(cmp.Compare(t.endOf(a), t.endOf(b)), Compare(x, s, y, u))
	}
	if !fair {
		return Compare(x, s, y, u)
	}
	weighted := func(job *structs.Job) float64 {
		return t.share(job.Project, record) + record.AgeWeight*hours(job.SubmittedAt)
	}
	return cmp.Or(cmp.Compare(weighted(x), weighted(y)), Compare(x, s, y, u))
}

func (t *twin) anyGuarantee() bool {
	for _, p := range t.world.projects {
		if slices.ContainsFunc(p.Quotas, func(q structs.Quota) bool { return q.Guaranteed > 0 }) {
			return true
		}
	}
	return false
}

// borrows reports whether a gang of the job goes beyond its project's guarantee.
func (t *twin) borrows(job *structs.Job) bool {
	record := t.world.projects[job.Project]
	if record == nil || len(job.Resources) == 0 || !slices.ContainsFunc(record.Quotas, func(q structs.Quota) bool { return q.Guaranteed > 0 }) {
		return true
	}
	return usedUp(record, t.projectUsage(job.Project), leastUsage(job.SpecAt(0), job.NodesMin()))
}

// share is what a project used of a pool, and holds now, in device-hours over
// its weight.
func (t *twin) share(project string, pool *structs.Pool) float64 {
	counted := t.now - t.now%structs.UnixNano(fairTick)
	half := pool.HalfLife.Std()
	if half == 0 {
		half = structs.HalfLifeDefault.Std()
	}
	used, running, held := 0.0, int64(0), int64(0)
	for _, ledger := range t.world.ledgers[project] {
		if ledger.Pool == pool.Name {
			used += decayed(ledger.Buckets, half, counted)
		}
	}
	gangs := map[subjobID][]*structs.Allocation{}
	for _, a := range t.world.allocs {
		if a.Project == project {
			id := subjobID{a.JobID, a.Subjob}
			gangs[id] = append(gangs[id], a)
		}
	}
	weigh := func(devices int, milli int64) float64 { return float64(devices) + float64(milli)/(1000*coresPerDevice) }
	for _, allocs := range gangs {
		if allocs[0].Pool != pool.Name {
			continue
		}
		devices, milli := 0, int64(0)
		for _, a := range allocs {
			devices += len(a.Devices)
			milli += structs.MilliCPU(a.Spec.CPU)
		}
		held += int64(weigh(devices, milli) * 1000)
		if ran := counted.Sub(allocs[0].PlacedAt); ran > 0 {
			running += int64(weigh(devices, milli) * decayedSpan(ran, half).Hours() * 3600e3)
		}
	}
	now := 0.0
	for _, id := range t.order {
		gang, job := t.started[id], t.world.jobs[id.job]
		if job.Project != project || t.world.nodes[gang.Placements[0].NodeID].PoolName() != pool.Name || poolOf(job) != pool.Name {
			continue
		}
		devices, milli := 0, int64(0)
		for rank, p := range gang.Placements {
			devices += len(p.Devices)
			milli += structs.MilliCPU(job.SpecOf(gang.Spec, rank, len(gang.Placements)).CPU)
		}
		now += weigh(devices, milli)
	}
	s := share{used: used + float64(running)/3600e3, inUse: float64(held)/1000 + now, weight: 1}
	if record := t.world.projects[project]; record != nil && record.Weight > 0 {
		s.weight = record.Weight
	}
	return s.weighted()
}

// floor is what is free now.
func (t *twin) floor() *placement.Floor {
	f := placement.NewFloor()
	for _, pool := range t.world.pools {
		f.PutPool(pool)
	}
	for _, id := range slices.Sorted(maps.Keys(t.world.nodes)) {
		f.Put(t.world.nodes[id], t.usage(id))
	}
	return f
}

func (t *twin) usage(node string) *structs.Usage {
	u := t.world.usage(node)
	milli := structs.MilliCPU(u.CPU)
	for id, gang := range t.started {
		for rank, p := range gang.Placements {
			if p.NodeID != node {
				continue
			}
			spec := t.world.jobs[id.job].SpecOf(gang.Spec, rank, len(gang.Placements))
			milli += structs.MilliCPU(spec.CPU)
			u.Memory += spec.Memory
			u.Allocs++
			for _, port := range p.Ports {
				u.Ports[port] = "x"
			}
			for _, device := range p.Devices {
				u.Devices[device] = "x"
			}
		}
	}
	u.CPU = float64(milli) / 1000
	return u
}

func (t *twin) projectUsage(project string) *structs.ProjectUsage {
	u := t.world.ProjectUsage(project)
	for id, gang := range t.started {
		if t.world.jobs[id.job].Project == project {
			u.QuotaUsage = u.QuotaUsage.Add(t.held(id, gang))
		}
	}
	return u
}

func (t *twin) held(id subjobID, gang *structs.GangPlan) structs.QuotaUsage {
	held := structs.QuotaUsage{}
	for rank, p := range gang.Placements {
		spec := t.world.jobs[id.job].SpecOf(gang.Spec, rank, len(gang.Placements))
		held = held.Add(structs.QuotaUsageOf(spec, t.world.nodes[p.NodeID], p.Devices))
	}
	return held
}

func (t *twin) sizes(job *structs.Job) []int {
	most := job.Nodes
	if pool := t.world.pools[job.Placement.Pool]; pool != nil && pool.Ceilings.Nodes > 0 && job.Placement.Pool != "" {
		if job.NodesMin() > pool.Ceilings.Nodes {
			return nil
		}
		if job.NodesMin() < job.Nodes {
			most = min(most, pool.Ceilings.Nodes)
		}
	}
	var sizes []int
	for size := most; size >= job.NodesMin(); size-- {
		sizes = append(sizes, size)
	}
	return sizes
}

// try returns the gang that would start now, or reports what is in the way.
func (t *twin) try(id subjobID) (*structs.GangPlan, fault) {
	job, s := t.world.jobs[id.job], t.world.subjobs[id]
	f := t.floor()
	why := faultQuota
	for spec := range job.Resources {
		able := t.ableAs(job, job.SpecAt(spec))
		one := t.leastFault(id, job.SpecAt(spec))
		if one == faultNone {
			one = faultRoom
			need := placement.NeedOf(job, spec)
			avoid := func(at int) bool {
				return t.isReserved(id, spec, f.At(at).ID) || f.At(at).MaintenanceAgainst(job, t.now) != nil
			}
			options := placement.Options{PortStart: portStart(id.job, id.index, s.Attempt+1, t.seed), Avoid: avoid}
			for _, size := range t.sizes(job) {
				placed, ok := f.Choose(&need, size, options)
				if !ok {
					continue
				}
				g := &structs.GangPlan{JobID: id.job, Subjob: id.index, Attempt: s.Attempt + 1, Spec: spec, Placements: placed}
				if one = t.quotaFault(id, t.held(id, g)); one == faultNone {
					return g, faultNone
				}
			}
		}
		if able {
			why = max(why, one)
		}
	}
	return nil, why
}

// leastFault reports what quota has against the least that a gang would hold.
func (t *twin) leastFault(id subjobID, spec structs.Resources) fault {
	return t.quotaFault(id, leastUsage(spec, t.world.jobs[id.job].NodesMin()))
}

// quotaFault reports what quota has against a gang that would hold so much.
func (t *twin) quotaFault(id subjobID, held structs.QuotaUsage) fault {
	job := t.world.jobs[id.job]
	record := t.world.projects[job.Project]
	if structs.QuotaProblem(record, t.projectUsage(job.Project), held) != nil {
		return faultQuota
	}
	h := t.quotaReservations[job.Project]
	if h == nil || h.id == id || !h.strict && t.endOf(id) <= h.at {
		return faultNone
	}
	for i, quota := range record.Quotas {
		if spare, asked := h.spare[i]; asked && held.Of(quota) > spare {
			return faultQuotaReserved
		}
	}
	return faultNone
}

// starved reports whether quota is in the way of every alternative.
func (t *twin) starved(id subjobID) bool {
	job := t.world.jobs[id.job]
	for _, spec := range job.Resources {
		if t.ableAs(job, spec) && t.leastFault(id, spec) == faultNone {
			return false
		}
	}
	return true
}

// awaitQuota keeps quota for a gang that has too little of it.
func (t *twin) awaitQuota(id subjobID) {
	job := t.world.jobs[id.job]
	first := slices.IndexFunc(job.Resources, func(spec structs.Resources) bool { return t.ableAs(job, spec) })
	need := leastUsage(job.SpecAt(first), job.NodesMin())
	record := t.world.projects[job.Project]
	if t.settings.reservationsMax() == 0 && t.settings.Passing != NoPassing || structs.QuotaProblem(record, nil, need) != nil {
		return
	}
	at := never
	for _, end := range t.ends(job.Project) {
		if end != never && end < at && structs.QuotaProblem(record, t.usageAfter(job.Project, end), need) == nil {
			at = end
		}
	}
	late := t.world.subjobs[id].NoPassingAt
	strict := at == never || late != 0 && t.now > late || t.settings.Passing == NoPassing
	if t.quotaReservations[job.Project] == nil && !strict && late == 0 {
		t.strictAt[id] = at.Add(max(promiseSlack, at.Sub(t.now)/promiseSlip))
	}
	t.reserveQuota(id, need, at, strict)
}

// hold keeps need of the quota of a gang's project, unless another gang of it
// came before.
func (t *twin) reserveQuota(id subjobID, need structs.QuotaUsage, at structs.UnixNano, strict bool) {
	project := t.world.jobs[id.job].Project
	record := t.world.projects[project]
	if record == nil || t.quotaReservations[project] != nil {
		return
	}
	usage := t.projectUsage(project)
	if !strict {
		usage = t.usageAfter(project, at)
	}
	h := &twinQuotaReservation{id: id, at: at, strict: strict, spare: map[int]int64{}}
	for i, quota := range record.Quotas {
		if most, bounded := quota.Most(); bounded && need.Of(quota) > 0 {
			h.spare[i] = max(0, most-usage.QuotaUsage.Of(quota)-need.Of(quota))
		}
	}
	if len(h.spare) > 0 {
		t.quotaReservations[project] = h
	}
}

// ends reports when the gangs of a project end.
func (t *twin) ends(project string) map[subjobID]structs.UnixNano {
	ends := map[subjobID]structs.UnixNano{}
	for id := range t.world.attempts {
		if t.world.jobs[id.job].Project == project {
			ends[id] = t.endOf(id)
		}
	}
	for id := range t.started {
		if t.world.jobs[id.job].Project == project {
			ends[id] = t.endOf(id)
		}
	}
	return ends
}

// usageAfter is what a project uses when all have ended that do by a time.
func (t *twin) usageAfter(project string, at structs.UnixNano) *structs.ProjectUsage {
	ends := t.ends(project)
	u := &structs.ProjectUsage{QuotaUsage: structs.QuotaUsage{}}
	for _, a := range t.world.allocs {
		if a.Project == project && ends[subjobID{a.JobID, a.Subjob}] > at {
			u.QuotaUsage = u.QuotaUsage.Add(a.QuotaUsage)
		}
	}
	for id, gang := range t.started {
		if t.world.jobs[id.job].Project == project && ends[id] > at {
			u.QuotaUsage = u.QuotaUsage.Add(t.held(id, gang))
		}
	}
	return u
}

func (t *twin) place(id subjobID) bool {
	gang, _ := t.try(id)
	if gang == nil {
		return false
	}
	if h := t.quotaReservations[t.world.jobs[id.job].Project]; h != nil && h.id != id && (h.strict || t.endOf(id) > h.at) {
		held := t.held(id, gang)
		for i, spare := range h.spare {
			h.spare[i] = max(0, spare-held.Of(t.world.projects[t.world.jobs[id.job].Project].Quotas[i]))
		}
	}
	t.started[id] = gang
	t.order = append(t.order, id)
	t.gangs = append(t.gangs, *gang)
	for rank, p := range gang.Placements {
		for _, k := range t.reservations {
			spare, mine := k.spare[p.NodeID]
			if mine && !t.passes(id, k) {
				k.spare[p.NodeID] = spare.Sub(t.rank(t.world.jobs[id.job].SpecAt(gang.Spec), p.NodeID))
			}
		}
		_ = rank
	}
	return true
}

func (t *twin) overQuota(id subjobID) bool {
	_, why := t.try(id)
	return why == faultQuota || why == faultQuotaReserved
}

// passes reports whether the gang would end before the reserved start.
func (t *twin) passes(id subjobID, k *twinReservation) bool {
	return !k.strict && t.endOf(id) <= k.at && (!k.bounded || t.endBy(id, true) <= k.at)
}

// isReserved reports whether a reservation keeps the gang off a node.
func (t *twin) isReserved(id subjobID, spec int, node string) bool {
	job := t.world.jobs[id.job]
	for _, k := range t.reservations {
		spare, mine := k.spare[node]
		if !mine || t.passes(id, k) {
			continue
		}
		take := t.rank(job.SpecAt(spec), node)
		if take.CPU > max(spare.CPU, 0) || take.Memory > max(spare.Memory, 0) ||
			take.Devices > max(spare.Devices, 0) && k.spec.DeviceCount() > 0 || !t.portsSpared(job, spec, k, node) {
			return true
		}
	}
	return false
}

func (t *twin) portsSpared(job *structs.Job, spec int, k *twinReservation, node string) bool {
	mine, its := k.job.PortRequests(k.spec, 0), job.PortRequests(job.SpecAt(spec), 0)
	c := t.world.nodes[node].Capacity
	if len(mine) == 0 || len(its) == 0 {
		return true
	}
	if d := dynamicPorts(mine); d > 0 && c.PortMax-c.PortMin+1-len(t.usage(node).Ports) < d+len(its) {
		return false
	}
	for _, m := range mine {
		for _, p := range its {
			if m.Static != 0 && (p.Static == m.Static || p.Static == 0 && m.Static >= c.PortMin && m.Static <= c.PortMax) {
				return false
			}
		}
	}
	return true
}

func (t *twin) rank(spec structs.Resources, node string) capacity.Amount {
	d := capacity.Amount{CPU: structs.MilliCPU(spec.CPU), Memory: max(spec.Memory, 0)}
	for _, r := range spec.Devices {
		if r.Count == structs.DevicesAll {
			d.Devices += int64(len(t.world.nodes[node].Devices))
		} else {
			d.Devices += int64(max(r.Count, 0))
		}
	}
	return d
}

// ableOn lists the ready nodes that could run a rank when empty.
func (t *twin) ableOn(job *structs.Job, spec structs.Resources) []string {
	var able []string
	for _, id := range slices.Sorted(maps.Keys(t.world.nodes)) {
		n := t.world.nodes[id]
		_, portsOK := feasible.ChoosePorts(n, nil, job.PortRequests(spec, 1), 0)
		_, devicesOK := feasible.ChooseDevices(n, nil, spec.Devices)
		if n.Schedulable() && feasible.NodeProblem(job, n) == nil && feasible.SpecProblem(job, spec, n) == nil &&
			feasible.PoolProblem(job, spec, n, t.world.pools[n.PoolName()]) == nil && feasible.RoomProblem(n, nil, spec) == nil && portsOK && devicesOK {
			able = append(able, id)
		}
	}
	return able
}

func (t *twin) headOn(job *structs.Job, spec structs.Resources, node string) bool {
	_, ok := feasible.ChoosePorts(t.world.nodes[node], nil, job.PortRequests(spec, 0), 0)
	return ok
}

// able reports whether the gang could start on the ready nodes if they were empty.
func (t *twin) able(id subjobID) bool {
	job := t.world.jobs[id.job]
	if len(t.sizes(job)) == 0 || job.Nodes < 1 {
		return false
	}
	return slices.ContainsFunc(job.Resources, func(spec structs.Resources) bool { return t.ableAs(job, spec) })
}

func (t *twin) ableAs(job *structs.Job, spec structs.Resources) bool {
	able := t.ableOn(job, spec)
	return len(able) >= job.NodesMin() && slices.ContainsFunc(able, func(node string) bool { return t.headOn(job, spec, node) })
}
