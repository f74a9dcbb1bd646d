package httpapi

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// machines lists the machines for the picker of VIP jobs: those that hold
// nothing first. Jobs that the caller may not read are there without a name.
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
	out := api.MachineList{Machines: []api.Machine{}}
	for node, usage := range snapshot.Nodes() {
		if pool == "" || poolOf(node.Pool) == pool {
			out.Machines = append(out.Machines, machineOf(r, snapshot, node, usage))
		}
	}
	slices.SortFunc(out.Machines, func(a, b api.Machine) int {
		if a.Free != b.Free {
			if a.Free {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return &out, nil
}

func machineOf(r *front.Request, snapshot *state.Snapshot, node *structs.Node, usage *structs.Usage) api.Machine {
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
		ref := visibleRef(r, snapshot, jobID, subjob)
		machine.NominatedFor = &ref
	}
	for alloc := range snapshot.Occupants(node.ID) {
		machine.Work = append(machine.Work, machineWork(r, snapshot, alloc))
	}
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

func machineWork(r *front.Request, snapshot *state.Snapshot, alloc *structs.Allocation) api.MachineWork {
	work := api.MachineWork{
		Job: visibleRef(r, snapshot, alloc.JobID, alloc.Subjob), Attempt: alloc.Attempt, Devices: len(alloc.Devices),
		Since: alloc.PlacedAt, Ending: alloc.Desired == structs.DesiredStop,
	}
	view, ok := snapshot.Job(alloc.JobID)
	attempt := snapshot.Attempt(alloc.JobID, alloc.Subjob, alloc.Attempt)
	if !ok || attempt == nil {
		return work
	}
	work.Nodes, work.Priority, work.Preemptible = view.Job.NodesOf(len(attempt.Allocs)), view.Job.Priority, view.Job.Preemptible
	work.VIP, work.CheckpointAt = view.Job.VIP != nil, attempt.CheckpointAt
	if view.Job.TimeLimit > 0 && attempt.RunningAt != 0 {
		work.EndsBy = attempt.RunningAt.Add(view.Job.TimeLimit.Std())
	}
	return work
}
