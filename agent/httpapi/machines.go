package httpapi

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// machines lists the machines for the picker of VIP jobs: those that hold nothing
// first, then those where least would be lost. Jobs that the caller may not read are
// there without a name.
func (h *nodeHandlers) machines(r *front.Request) (*api.MachineList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	pool := q.Text("pool")
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchNodes))
	if err != nil {
		return nil, err
	}
	shown, err := h.futures.ForecastSnapshot(r.Context(), 0, "")
	if err != nil {
		return nil, err
	}
	p := &picker{r: r, snapshot: snapshot, now: structs.At(h.now()), ends: endsOf(shown), devices: make(map[structs.AttemptKey]int)}
	out := api.MachineList{Machines: []api.Machine{}}
	for node, usage := range snapshot.Nodes() {
		if pool == "" || poolOf(node.Pool) == pool {
			out.Machines = append(out.Machines, p.machineOf(node, usage))
		}
	}
	slices.SortFunc(out.Machines, byCost)
	return &out, nil
}

// picker describes machines to one caller.
type picker struct {
	r        *front.Request
	snapshot *state.Snapshot
	now      structs.UnixNano
	ends     map[string][2]structs.UnixNano // of gangs that run, by SubjobKey
	devices  map[structs.AttemptKey]int     // of whole gangs that were counted
}

// byCost orders machines: free ones first, and last those that a VIP job has or is
// nominated for; between them by what would be lost, then by the cards in use.
func byCost(a, b api.Machine) int {
	rank := func(m *api.Machine) int {
		switch {
		case m.Free:
			return 0
		case m.NominatedFor != nil || slices.ContainsFunc(m.Work, func(w api.MachineWork) bool { return w.VIP }):
			return 2
		}
		return 1
	}
	cards := func(m *api.Machine) (used int) {
		for i := range m.Work {
			used += m.Work[i].Devices
		}
		return used
	}
	return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Cost, b.Cost), cmp.Compare(cards(&a), cards(&b)),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

// costOf sums up what would be lost if work were ended now; what is ending loses
// nothing more.
func costOf(work []api.MachineWork) (lost structs.Duration) {
	for i := range work {
		if w := &work[i]; !w.Ending {
			lost += w.Lost * structs.Duration(max(1, w.GangDevices))
		}
	}
	return lost
}

// endsOf is when gangs that run end by a forecast: the two times of each, by
// SubjobKey.
func endsOf(shown *server.ForecastSnapshot) map[string][2]structs.UnixNano {
	ends := make(map[string][2]structs.UnixNano)
	timeline := shown.Timeline(structs.Duration(1), nil) // what runs now, and no more
	for i := range timeline.Rows {
		for _, bar := range timeline.Rows[i].Bars {
			if bar.Kind == outlook.BarRunning && bar.JobID != "" {
				ends[structs.SubjobKey(bar.JobID, bar.Subjob)] = [2]structs.UnixNano{bar.P50, bar.P90}
			}
		}
	}
	return ends
}

func (p *picker) machineOf(node *structs.Node, usage *structs.Usage) api.Machine {
	machine := api.Machine{
		ID: node.ID, Name: node.Name, Pool: poolOf(node.Pool), Status: node.Status, Eligibility: node.Eligibility,
		Free: node.Schedulable() && (usage == nil || usage.Allocs == 0 && usage.NominatedFor == ""),
		CPU:  node.Capacity.CPU, Memory: node.Capacity.Memory, Devices: addDevices(nil, node, usage), Work: []api.MachineWork{},
	}
	if usage == nil {
		return machine
	}
	machine.CPUUsed, machine.MemoryUsed = usage.CPU, usage.Memory
	if usage.NominatedFor != "" {
		jobID, subjob := splitSubjobKey(usage.NominatedFor)
		ref := visibleRef(p.r, p.snapshot, jobID, subjob)
		machine.NominatedFor = &ref
	}
	listed := make(map[structs.AttemptKey]int)
	for alloc := range p.snapshot.Occupants(node.ID) {
		key := structs.AttemptKey{JobID: alloc.JobID, Subjob: alloc.Subjob, Number: alloc.Attempt}
		if at, known := listed[key]; known { // another rank of the same gang
			machine.Work[at].Devices += len(alloc.Devices)
			continue
		}
		listed[key] = len(machine.Work)
		machine.Work = append(machine.Work, p.workOf(alloc, key))
	}
	machine.Cost = costOf(machine.Work)
	return machine
}

// splitSubjobKey is the other way of structs.SubjobKey.
func splitSubjobKey(key string) (jobID string, subjob int) {
	jobID, number, _ := strings.Cut(key, "/")
	subjob, err := strconv.Atoi(number)
	if err != nil {
		return jobID, 0 // keys are made by SubjobKey
	}
	return jobID, subjob
}

// visibleRef names a job that the caller may read, and otherwise says no more
// than that there is one.
func visibleRef(r *front.Request, snapshot *state.Snapshot, jobID string, subjob int) api.JobRef {
	if view, ok := snapshot.Job(jobID); !ok || !mayRead(r, view.Job) {
		return api.JobRef{}
	}
	return jobRef(snapshot, jobID, subjob)
}

// workOf describes the gang of an allocation, and what ending it would cost.
func (p *picker) workOf(alloc *structs.Allocation, key structs.AttemptKey) api.MachineWork {
	work := api.MachineWork{
		Job: visibleRef(p.r, p.snapshot, alloc.JobID, alloc.Subjob), Attempt: alloc.Attempt, Devices: len(alloc.Devices),
		Since: alloc.PlacedAt, Ending: alloc.Desired == structs.DesiredStop, GangDevices: p.devicesOf(key),
	}
	view, ok := p.snapshot.Job(alloc.JobID)
	attempt := p.snapshot.Attempt(alloc.JobID, alloc.Subjob, alloc.Attempt)
	if !ok || attempt == nil {
		return work
	}
	work.Nodes, work.Priority, work.Preemptible = view.Job.NodesOf(len(attempt.Allocs)), view.Job.Priority, view.Job.Preemptible
	work.VIP, work.CheckpointAt, work.RunningAt = view.Job.VIP != nil, attempt.CheckpointAt, attempt.RunningAt
	if since := max(attempt.RunningAt, attempt.CheckpointAt); since > 0 && since < p.now {
		work.Lost = structs.Duration(p.now.Sub(since))
	}
	if subjob := p.snapshot.Subjob(alloc.JobID, alloc.Subjob); subjob != nil {
		if saved := subjob.Newest(); saved != nil {
			work.Step = saved.Step
		}
	}
	times := p.ends[structs.SubjobKey(alloc.JobID, alloc.Subjob)]
	work.P50, work.P90 = times[0], times[1]
	if view.Job.TimeLimit > 0 && attempt.RunningAt != 0 {
		work.EndsBy = attempt.RunningAt.Add(view.Job.TimeLimit.Std())
	}
	return work
}

// devicesOf counts the devices of a whole gang, once.
func (p *picker) devicesOf(key structs.AttemptKey) int {
	count, known := p.devices[key]
	if !known {
		for alloc := range p.snapshot.Gang(key.JobID, key.Subjob, key.Number) {
			count += len(alloc.Devices)
		}
		p.devices[key] = count
	}
	return count
}
