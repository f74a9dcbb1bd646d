package httpapi

import (
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// ofJob answers jobs.figures: what the ranks of a job's newest attempt use
// now, asked of their nodes.
func (h *usageHandlers) ofJob(r *front.Request, job *structs.Job) (*api.JobUsage, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	index := int(q.Int("subjob", 0, structs.BatchCountMax))
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot := h.store.Snapshot()
	subjob := snapshot.Subjob(job.ID, index)
	if subjob == nil {
		return nil, structs.NewError(structs.CodeNotFound, "agent.subjob_unknown", "subjob", index)
	}
	out := api.JobUsage{JobID: job.ID, Subjob: index, Attempt: subjob.Attempt, Ranks: []api.RankUsage{}}
	var gang []*structs.Allocation
	var nodes []*structs.Node
	asked := map[string]bool{}
	for alloc := range snapshot.Gang(job.ID, index, subjob.Attempt) {
		if len(gang) == api.UsageRanksMax {
			out.More++
			continue
		}
		gang = append(gang, alloc)
		if node := snapshot.Node(alloc.NodeID); node != nil && !asked[node.ID] && !alloc.Status.Terminal() {
			asked[node.ID] = true
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(gang, func(a, b *structs.Allocation) int { return a.Rank - b.Rank })
	found := h.survey.ask(r.Context(), nodes)
	for _, alloc := range gang {
		out.Ranks = append(out.Ranks, rankUsage(alloc, snapshot.Node(alloc.NodeID), found[alloc.NodeID]))
	}
	return &out, nil
}

// rankUsage puts together what a rank may use and what was measured of it.
func rankUsage(alloc *structs.Allocation, node *structs.Node, found surveyed) api.RankUsage {
	out := api.RankUsage{
		AllocID: alloc.ID, Rank: alloc.Rank, NodeID: alloc.NodeID, Node: alloc.NodeName, Status: alloc.Status,
		CPU: alloc.Spec.CPU, Memory: alloc.Spec.Memory,
	}
	if figures, known := taskFigures(found.usage, alloc.ID); known {
		out.Measured, out.At = found.fresh, found.usage.At
		out.CPUBusy, out.CPUSeconds, out.MemoryUsed, out.Processes = figures.CPUCores, figures.CPUSeconds, figures.Memory, figures.Processes
	}
	if node == nil {
		return out
	}
	holds := alloc.OccupiesNode() // else what its cards measure is somebody else's
	for i := range node.Devices {
		d := &node.Devices[i]
		if !slices.Contains(alloc.Devices, d.ID) {
			continue
		}
		card := api.RankDevice{ID: d.ID, Index: d.Index, Model: d.Model, Healthy: d.Healthy}
		if found.usage != nil && holds {
			for k := range found.usage.Devices {
				if found.usage.Devices[k].ID == d.ID {
					card.Gauges = found.usage.Devices[k].Gauges
				}
			}
		}
		out.Devices = append(out.Devices, card)
	}
	return out
}
