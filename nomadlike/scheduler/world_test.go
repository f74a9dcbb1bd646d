package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// world is a small cluster for tests: what state.Apply does with plans and
// ends of jobs, written down as plainly as possible. It is the Snapshot too.
type world struct {
	index       uint64
	now         structs.UnixNano
	seed        uint64
	jobs        map[string]*structs.Job
	subjobs     map[subjobID]*structs.Subjob
	attempts    map[subjobID]*structs.Attempt // that have not ended
	nodes       map[string]*structs.Node
	pools       map[string]*structs.Pool
	projects    map[string]*structs.Project
	ledgers     map[string][]structs.Ledger
	allocs      []*structs.Allocation // that hold resources, in order of placement
	nominations map[string]string     // node -> subjob key
	touched     map[string]uint64     // kind + key -> index of the newest change
	shuffle     *rand.Rand            // when set, lists come in random order
	fulls       int
	plain       bool // its jobs differ in size and time alone
}

type subjobID struct {
	job   string
	index int
}

func (id subjobID) key() string { return structs.SubjobKey(id.job, id.index) }

func newWorld() *world {
	return &world{
		now: structs.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), seed: 1,
		jobs: map[string]*structs.Job{}, subjobs: map[subjobID]*structs.Subjob{}, attempts: map[subjobID]*structs.Attempt{},
		nodes: map[string]*structs.Node{}, pools: map[string]*structs.Pool{}, projects: map[string]*structs.Project{},
		ledgers: map[string][]structs.Ledger{}, nominations: map[string]string{}, touched: map[string]uint64{},
	}
}

// touch notes a change of a thing.
func (w *world) touch(kind, key string) {
	w.index++
	w.touched[kind+key] = w.index
}

func (w *world) touchJob(id subjobID) { w.touch("j", id.key()) }

func (w *world) Index() uint64 { return w.index }

func (w *world) Changes(since uint64) structs.Changes {
	changes := structs.Changes{Full: since == 0}
	if changes.Full {
		w.fulls++
	}
	late := func(kind, key string) bool { return since == 0 || w.touched[kind+key] > since }
	for _, id := range w.mixed(slices.Sorted(maps.Keys(w.nodes))) {
		if late("n", id) {
			changes.Nodes = append(changes.Nodes, structs.NodeChange{ID: id, Node: w.nodes[id], Usage: w.usage(id)})
		}
	}
	for key, index := range w.touched {
		if id, ok := cutKind(key, "n"); ok && index > since && since > 0 && w.nodes[id] == nil {
			changes.Nodes = append(changes.Nodes, structs.NodeChange{ID: id})
		}
	}
	ids := slices.SortedFunc(maps.Keys(w.subjobs), compareIDs)
	if w.shuffle != nil {
		w.shuffle.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	for _, id := range ids {
		s := w.subjobs[id]
		if since == 0 && s.State.Terminal() || !late("j", id.key()) {
			continue
		}
		c := structs.SubjobChange{JobID: id.job, Index: id.index, Job: w.jobs[id.job], Subjob: s, Attempt: w.attempts[id]}
		for _, a := range w.allocs {
			if a.JobID == id.job && a.Subjob == id.index {
				c.Allocs = append(c.Allocs, a)
			}
		}
		changes.Subjobs = append(changes.Subjobs, c)
	}
	for _, name := range w.mixed(slices.Sorted(maps.Keys(w.pools))) {
		if late("p", name) {
			changes.Pools = append(changes.Pools, structs.PoolChange{Name: name, Pool: w.pools[name]})
		}
	}
	for _, name := range w.mixed(w.projectNames()) {
		if late("q", name) {
			changes.Projects = append(changes.Projects, structs.ProjectChange{Name: name, Project: w.projects[name], Usage: w.ProjectUsage(name)})
		}
	}
	return changes
}

func cutKind(key, kind string) (string, bool) { return key[1:], key[:1] == kind }

func compareIDs(a, b subjobID) int {
	return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.index, b.index))
}

func (w *world) projectNames() []string {
	names := map[string]bool{}
	for name := range w.projects {
		names[name] = true
	}
	for name := range w.ledgers {
		names[name] = true
	}
	for _, a := range w.allocs {
		names[a.Project] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (w *world) mixed(ids []string) []string {
	if w.shuffle != nil {
		w.shuffle.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	return ids
}

// usage sums what allocations hold on a node.
func (w *world) usage(nodeID string) *structs.Usage {
	u := &structs.Usage{NodeID: nodeID, Ports: map[int]string{}, Devices: map[string]string{}, NominatedFor: w.nominations[nodeID]}
	milli := int64(0)
	for _, a := range w.allocs {
		if a.NodeID != nodeID {
			continue
		}
		milli += structs.MilliCPU(a.Spec.CPU)
		u.Memory += a.Spec.Memory
		u.Allocs++
		for _, port := range a.Ports {
			u.Ports[port] = a.ID
		}
		for _, id := range a.Devices {
			u.Devices[id] = a.ID
		}
	}
	u.CPU = float64(milli) / 1000
	return u
}

// Node implements feasible.View.
func (w *world) Node(id string) (*structs.Node, *structs.Usage) { return w.nodes[id], w.usage(id) }

// Pool implements feasible.View.
func (w *world) Pool(name string) *structs.Pool { return w.pools[name] }

// Project implements feasible.View.
func (w *world) Project(name string) *structs.Project { return w.projects[name] }

// ProjectUsage implements feasible.View.
func (w *world) ProjectUsage(name string) *structs.ProjectUsage {
	u := &structs.ProjectUsage{Project: name, QuotaUsage: structs.QuotaUsage{}, Ledgers: w.ledgers[name]}
	for _, a := range w.allocs {
		if a.Project == name {
			u.QuotaUsage = u.QuotaUsage.Add(a.QuotaUsage)
		}
	}
	return u
}

func (w *world) addNode(n *structs.Node) {
	w.nodes[n.ID] = n
	w.touch("n", n.ID)
}

// setNode changes a copy of a node.
func (w *world) setNode(id string, change func(*structs.Node)) {
	n := *w.nodes[id]
	n.Devices = slices.Clone(n.Devices)
	change(&n)
	w.addNode(&n)
}

func (w *world) addPool(p *structs.Pool) {
	w.pools[p.Name] = p
	w.touch("p", p.Name)
}

func (w *world) addProject(p *structs.Project) {
	w.projects[p.Name] = p
	w.touch("q", p.Name)
}

func (w *world) submit(job *structs.Job) {
	w.index++
	w.jobs[job.ID] = job
	job.SubmittedAt = w.now
	for i := range job.SubjobCount() {
		id := subjobID{job.ID, i}
		w.subjobs[id] = &structs.Subjob{JobID: job.ID, Index: i, State: structs.JobQueued, QueuedAt: w.now, CreateIndex: w.index, Place: w.index << 20}
		if job.BeginAt > w.now {
			w.subjobs[id].NotBefore, w.subjobs[id].Wait = job.BeginAt, job.BeginWait()
		}
		for _, other := range job.AfterIDs() {
			if !w.over(other) {
				w.subjobs[id].Pending = append(w.subjobs[id].Pending, other)
			}
		}
		if len(w.subjobs[id].Pending) > 0 {
			w.subjobs[id].Wait = job.AfterWait(w.subjobs[id].Pending)
		}
		w.touched["j"+id.key()] = w.index
	}
}

// over reports whether a job has ended.
func (w *world) over(jobID string) bool {
	for i := range w.jobs[jobID].SubjobCount() {
		if !w.subjobs[subjobID{jobID, i}].State.Terminal() {
			return false
		}
	}
	return true
}

// release lets go of what waited for the end of a job.
func (w *world) release(jobID string) {
	for _, id := range slices.SortedFunc(maps.Keys(w.subjobs), compareIDs) {
		if !slices.Contains(w.subjobs[id].Pending, jobID) {
			continue
		}
		w.set(id, func(s *structs.Subjob) {
			s.Pending = slices.DeleteFunc(slices.Clone(s.Pending), func(other string) bool { return other == jobID })
			s.Wait = w.jobs[id.job].AfterWait(s.Pending)
			if s.Wait == nil && s.NotBefore > w.now {
				s.Wait = w.jobs[id.job].BeginWait()
			}
		})
	}
}

// set changes a copy of a subjob.
func (w *world) set(id subjobID, change func(*structs.Subjob)) {
	s := *w.subjobs[id]
	change(&s)
	w.subjobs[id] = &s
	w.touchJob(id)
}

// apply takes a plan as state.Apply would, and fails the test when a gang is
// refused: the scheduler must know every reason that Apply knows.
func (w *world) apply(t failer, plan structs.Plan) {
	t.Helper()
	for i := range plan.Gangs {
		if reason := w.take(&plan.Gangs[i]); reason != nil {
			t.Fatalf("gang %s/%d refused: %s %v", plan.Gangs[i].JobID, plan.Gangs[i].Subjob, reason.ID, reason.Params)
		}
	}
	for _, update := range plan.Waits {
		w.set(subjobID{update.JobID, update.Subjob}, func(s *structs.Subjob) {
			if update.Wait != nil {
				s.Wait = update.Wait
			}
			if s.NoPassingAt == 0 {
				s.NoPassingAt = update.NoPassingAt
			}
		})
	}
}

// take places or nominates one gang, or reports why not.
func (w *world) take(gang *structs.GangPlan) *structs.Reason {
	id := subjobID{gang.JobID, gang.Subjob}
	job, subjob := w.jobs[gang.JobID], w.subjobs[id]
	if len(gang.Victims) == 0 && !gang.Nominate {
		reason := feasible.GangProblem(job, subjob, gang, w)
		if reason == nil {
			reason = w.closedTo(job, gang)
		}
		if reason == nil {
			w.place(gang)
		}
		return reason
	}
	if reason := w.closedTo(job, gang); reason != nil {
		return reason
	}
	more := structs.QuotaUsage{}
	for rank, p := range gang.Placements {
		more = more.Add(structs.QuotaUsageOf(job.SpecOf(gang.Spec, rank, len(gang.Placements)), w.nodes[p.NodeID], p.Devices))
	}
	without := w.without(nil)
	for i, key := range gang.Victims {
		vid := subjobID{key.JobID, key.Subjob}
		if a := w.attempts[vid]; a == nil || a.Number != key.Number || a.EndingAt != 0 {
			return structs.NewReason("test.victim_gone", "job", key.JobID)
		}
		victim := feasible.Victim{Job: w.jobs[key.JobID], Consents: subjob.Consented(job, key, w.now)}
		for _, a := range w.allocs {
			if a.JobID == key.JobID && a.Subjob == key.Subjob {
				victim.Nodes = append(victim.Nodes, w.nodes[a.NodeID])
				victim.QuotaUsage = victim.QuotaUsage.Add(a.QuotaUsage)
			}
		}
		if reason := feasible.VictimProblem(job, more, victim, without); reason != nil {
			return reason
		}
		without = w.without(gang.Victims[:i+1])
	}
	if !gang.Nominate {
		queued := *subjob
		queued.State = structs.JobQueued // a running one changes its size
		if reason := feasible.GangProblem(job, &queued, gang, without); reason != nil {
			return reason
		}
	}
	for _, p := range gang.Placements {
		if nominee := w.nominations[p.NodeID]; nominee != "" && nominee != id.key() {
			return structs.NewReason("scheduler.node_claimed", "node", p.NodeID, "claim", nominee)
		}
	}
	for _, key := range gang.Victims {
		vid := subjobID{key.JobID, key.Subjob}
		a := *w.attempts[vid]
		a.EndingAt, a.State = w.now, structs.AttemptEnding
		w.attempts[vid] = &a
		w.set(vid, func(s *structs.Subjob) { s.State, s.StopIntended = structs.JobStopping, structs.JobQueued })
	}
	own := *gang
	own.Victims = nil
	w.set(id, func(s *structs.Subjob) {
		s.Nomination = &structs.Nomination{Gang: own, Victims: gang.Victims, Since: w.now}
	})
	for _, p := range gang.Placements {
		w.nominations[p.NodeID] = id.key()
		w.touch("n", p.NodeID)
	}
	return nil
}

// closedTo reports a window that a gang could run into if it started now.
func (w *world) closedTo(job *structs.Job, gang *structs.GangPlan) *structs.Reason {
	for _, p := range gang.Placements {
		if window := w.nodes[p.NodeID].MaintenanceAgainst(job, w.now); window != nil {
			return structs.NewReason("scheduler.refused_maintenance", "node", p.NodeID, "start", window.Start)
		}
	}
	return nil
}

// without is the world as if some attempts were gone.
func (w *world) without(keys []structs.AttemptKey) *world {
	less := *w
	less.allocs = slices.DeleteFunc(slices.Clone(w.allocs), func(a *structs.Allocation) bool {
		return slices.ContainsFunc(keys, func(k structs.AttemptKey) bool { return k.JobID == a.JobID && k.Subjob == a.Subjob })
	})
	return &less
}

// place makes the attempt of a gang.
func (w *world) place(gang *structs.GangPlan) {
	id := subjobID{gang.JobID, gang.Subjob}
	job := w.jobs[gang.JobID]
	w.set(id, func(s *structs.Subjob) {
		s.State, s.Attempt, s.Wait, s.Nomination, s.NoPassingAt = structs.JobRunning, gang.Attempt, nil, nil, 0
	})
	attempt := &structs.Attempt{
		JobID: id.job, Subjob: id.index, Number: gang.Attempt, State: structs.AttemptRunning, Spec: gang.Spec,
		PlacedAt: w.now, RunningAt: w.now,
	}
	placed := job.Spread(gang.Placements)
	for rank, p := range placed {
		spec := job.SpecOf(gang.Spec, rank, len(placed))
		a := &structs.Allocation{
			ID:    structs.AllocID(gang.JobID, gang.Subjob, gang.Attempt, rank),
			JobID: gang.JobID, Project: job.Project, Subjob: gang.Subjob, Attempt: gang.Attempt, Rank: rank, NodeID: p.NodeID,
			Spec: spec, Ports: p.Ports, Devices: p.Devices, QuotaUsage: structs.QuotaUsageOf(spec, w.nodes[p.NodeID], p.Devices),
			Pool: w.nodes[p.NodeID].PoolName(), PlacedAt: w.now,
		}
		attempt.Allocs = append(attempt.Allocs, a.ID)
		w.allocs = append(w.allocs, a)
		if w.nominations[p.NodeID] == id.key() {
			delete(w.nominations, p.NodeID)
		}
		w.touch("n", p.NodeID)
	}
	w.attempts[id] = attempt
	w.touchJob(id)
	w.touch("q", job.Project)
}

// end frees what a running subjob uses and puts it into state; nominations that
// waited for it are placed.
func (w *world) end(jobID string, index int, state structs.JobState) {
	id := subjobID{jobID, index}
	w.allocs = slices.DeleteFunc(w.allocs, func(a *structs.Allocation) bool {
		mine := a.JobID == jobID && a.Subjob == index
		if mine {
			w.book(a)
			w.touch("n", a.NodeID)
		}
		return mine
	})
	delete(w.attempts, id)
	w.set(id, func(s *structs.Subjob) { s.State, s.QueuedAt, s.StopIntended = state, w.now, "" })
	w.touch("q", w.jobs[jobID].Project)
	if w.over(jobID) {
		w.release(jobID)
	}
	w.fulfil()
}

// endStopping ends the attempts that are being stopped.
func (w *world) endStopping() {
	for _, id := range slices.SortedFunc(maps.Keys(w.subjobs), compareIDs) {
		if s := w.subjobs[id]; s.State == structs.JobStopping {
			w.end(id.job, id.index, s.StopIntended)
		}
	}
}

// fulfil places the nominations whose nodes are free.
func (w *world) fulfil() {
	for _, id := range slices.SortedFunc(maps.Keys(w.subjobs), compareIDs) {
		s := w.subjobs[id]
		if s.Nomination == nil || s.State != structs.JobQueued {
			continue
		}
		gang := s.Nomination.Gang
		gang.Placements = slices.Clone(gang.Placements)
		job, fits := w.jobs[id.job], true
		for rank := range gang.Placements {
			p := &gang.Placements[rank]
			spec := job.SpecOf(gang.Spec, rank, len(gang.Placements))
			var ok bool
			p.Ports, ok = feasible.ChoosePorts(w.nodes[p.NodeID], w.usage(p.NodeID), job.PortRequests(spec, rank), 0)
			fits = fits && ok
			p.Devices, ok = feasible.ChooseDevices(w.nodes[p.NodeID], w.usage(p.NodeID), spec.Devices)
			fits = fits && ok
		}
		gang.Attempt = s.Attempt + 1
		if fits && feasible.GangProblem(job, s, &gang, w) == nil {
			w.place(&gang)
		}
	}
}

// book charges an allocation's time to its project, as state.Apply does.
func (w *world) book(a *structs.Allocation) {
	ledgers := slices.Clone(w.ledgers[a.Project])
	at := slices.IndexFunc(ledgers, func(l structs.Ledger) bool { return l.Pool == a.Pool })
	if at < 0 {
		at = len(ledgers)
		ledgers = append(ledgers, structs.Ledger{Pool: a.Pool})
	}
	ms := w.now.Sub(a.PlacedAt).Milliseconds()
	ledgers[at].Buckets = append(slices.Clone(ledgers[at].Buckets), structs.LedgerBucket{
		Hour: int64(w.now) / int64(time.Hour), DeviceMs: ms * int64(len(a.Devices)), MilliCPUMs: ms * structs.MilliCPU(a.Spec.CPU),
	})
	w.ledgers[a.Project] = ledgers
}

func (w *world) running() []*structs.Subjob {
	var running []*structs.Subjob
	for _, id := range slices.SortedFunc(maps.Keys(w.subjobs), compareIDs) {
		if s := w.subjobs[id]; s.State == structs.JobRunning {
			running = append(running, s)
		}
	}
	return running
}

func (w *world) queued() []*structs.Subjob {
	var queued []*structs.Subjob
	for _, id := range slices.SortedFunc(maps.Keys(w.subjobs), compareIDs) {
		if s := w.subjobs[id]; s.State == structs.JobQueued {
			queued = append(queued, s)
		}
	}
	return queued
}

// checkNodes asserts that no node gives more than it has and that ports and
// devices have one holder each.
func (w *world) checkNodes(t failer) {
	t.Helper()
	for id, node := range w.nodes {
		var cpu, memory int64
		ports, devices := map[int]bool{}, map[string]bool{}
		for _, a := range w.allocs {
			if a.NodeID != id {
				continue
			}
			cpu += structs.MilliCPU(a.Spec.CPU)
			memory += a.Spec.Memory
			for _, port := range a.Ports {
				if ports[port] {
					t.Fatalf("node %s: port %d has two holders", id, port)
				}
				ports[port] = true
			}
			for _, device := range a.Devices {
				if devices[device] {
					t.Fatalf("node %s: device %s has two holders", id, device)
				}
				devices[device] = true
			}
		}
		if cpu > structs.MilliCPU(node.Capacity.CPU) || memory > node.Capacity.Memory {
			t.Fatalf("node %s gives cpu %d of %v, memory %d of %d", id, cpu, node.Capacity.CPU, memory, node.Capacity.Memory)
		}
	}
}

// checkQuotas asserts that no project holds more than its maximum.
func (w *world) checkQuotas(t failer) {
	t.Helper()
	for name, project := range w.projects {
		held := w.ProjectUsage(name).QuotaUsage
		for _, quota := range project.Quotas {
			if most, bounded := quota.Most(); bounded && held.Of(quota) > most {
				t.Fatalf("project %s holds %d of %s, at most %d", name, held.Of(quota), quota.Kind, most)
			}
		}
	}
}

// checkGangs asserts that every running subjob has each of its ranks once, on
// nodes of their own.
func (w *world) checkGangs(t failer) {
	t.Helper()
	for _, s := range w.running() {
		ranks, nodes := map[int]bool{}, map[string]bool{}
		for _, a := range w.allocs {
			if a.JobID == s.JobID && a.Subjob == s.Index {
				ranks[a.Rank], nodes[a.NodeID] = true, true
			}
		}
		job := w.jobs[s.JobID]
		if workers := job.NodesOf(len(ranks)); workers < job.NodesMin() || workers > job.Nodes || len(nodes) != workers {
			t.Fatalf("%s/%d runs with ranks %v on nodes %v, want %d of each", s.JobID, s.Index, ranks, nodes, job.Nodes)
		}
	}
}

// testNode is a ready node with room for tests.
func testNode(name string, cpu float64, memory int64) *structs.Node {
	return &structs.Node{
		ID: "id-" + name, Name: name, Drivers: []string{"exec"}, Status: structs.NodeReady, Eligibility: structs.NodeEligible,
		Capacity: structs.Capacity{CPU: cpu, Memory: memory, PortMin: 20000, PortMax: 20099},
	}
}

// testJob is a training job of equal nodes.
func testJob(name string, nodes int, cpu float64, memory int64) *structs.Job {
	return &structs.Job{
		ID: "id-" + name, Name: name, Nodes: nodes, Priority: structs.PriorityNormal,
		Distributed: structs.Distributed{Mode: structs.ModeNone},
		Resources:   []structs.Resources{{CPU: cpu, Memory: memory}},
		Task:        structs.Task{Driver: "exec", Command: "true"},
	}
}

func testDevices(count int, kind, model string) []structs.Device {
	var devices []structs.Device
	for i := range count {
		devices = append(devices, structs.Device{
			ID: fmt.Sprintf("dev-%d", i), Index: i, Kind: kind, Model: model,
			Memory: 80 << 30, LinkGroup: fmt.Sprint(i / 4), Healthy: true,
		})
	}
	return devices
}

// failer is what testing.T and rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}
