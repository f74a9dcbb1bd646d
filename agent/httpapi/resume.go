package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// checkpointOf returns the checkpoint from which a new job is to go on: the newest
// that an ended job registered, or the one of a step. Whoever may not read that
// job does not learn that it exists.
func (h *submissionHandlers) checkpointOf(r *front.Request, id string, step int64) (*structs.SavedCheckpoint, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	view, ok := snapshot.Job(id)
	if !ok || !front.PlausibleID(id) || !auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(view.Job)).Allow {
		return nil, auth.NotFound(auth.ObjectJob, id)
	}
	r.RestsOn(structs.RestJob, view.Job.ID, view.Status.CreateIndex)
	job := view.Job
	subjob := snapshot.Subjob(job.ID, 0)
	switch {
	case job.Batched():
		return nil, structs.NewError(structs.CodeInvalid, "agent.resume_batch", "job", job.Name)
	case !job.Supports.Resumes():
		return nil, structs.NewError(structs.CodeConflict, "agent.resume_unsupported", "job", job.Name)
	case !view.Status.State.Terminal():
		return nil, structs.NewError(structs.CodeConflict, "agent.resume_live", "job", job.Name, "state", view.Status.State)
	case subjob == nil || len(subjob.Checkpoints) == 0:
		return nil, structs.NewError(structs.CodeConflict, "agent.resume_nothing", "job", job.Name)
	case step == 0:
		return subjob.Newest(), nil
	}
	var steps []string
	for _, saved := range slices.Backward(subjob.Checkpoints) {
		if saved.Step == step {
			return &saved, nil
		}
		steps = append(steps, strconv.FormatInt(saved.Step, 10))
	}
	return nil, structs.NewError(structs.CodeNotFound, "agent.resume_step", "job", job.Name, "step", step, "steps", strings.Join(steps, ", "))
}
