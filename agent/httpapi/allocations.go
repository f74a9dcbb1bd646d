package httpapi

import (
	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// allocationHandlers answers about ranks, and connects callers with what runs.
type allocationHandlers struct {
	*core
	calls  *nodeCalls
	images *imageHandlers
	keys   Authority // of hosts of ssh
}

func (h *allocationHandlers) read(r *front.Request, _ *structs.Allocation) (*structs.Allocation, error) {
	snapshot, err := h.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			if alloc := now.Alloc(r.ID); alloc != nil {
				return alloc.ModifyIndex
			}
			return now.Index()
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchAlloc(r.ID) },
	})
	if err != nil {
		return nil, err
	}
	alloc := snapshot.Alloc(r.ID)
	if alloc == nil {
		return nil, auth.NotFound(auth.ObjectJob, r.ID)
	}
	if view, ok := snapshot.Job(alloc.JobID); ok {
		alloc = shownAlloc(r, view.Job, alloc)
	}
	return alloc, nil
}
