package httpapi

import (
	"cmp"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// reasonLengthMax bounds the words of a stop.
const reasonLengthMax = 1000 // bytes

// reasonFits bounds what people say about their wishes.
func reasonFits(words string) error {
	if len(words) > reasonLengthMax {
		return structs.NewError(structs.CodeTooLarge, "agent.text_too_long", "field", "reason", "max", reasonLengthMax)
	}
	return nil
}

func (h *jobHandlers) pause(r *front.Request, job *structs.Job, body *api.JobControlRequest) (*api.Changed, error) {
	return h.control(r, job, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Paused: true})
}

func (h *jobHandlers) resume(r *front.Request, job *structs.Job, body *api.JobControlRequest) (*api.Changed, error) {
	return h.control(r, job, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Continue: true})
}

func (h *jobHandlers) throttle(r *front.Request, job *structs.Job, body *api.ThrottleRequest) (*api.Changed, error) {
	busy := cmp.Or(body.Busy, structs.ThrottleBusyDefault)
	if err := structs.ThrottleProblem(busy, body.Idle); err != nil {
		return nil, err
	}
	return h.control(r, job, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Busy: busy, Idle: body.Idle})
}

func (h *jobHandlers) control(r *front.Request, job *structs.Job, order structs.JobControl) (*api.Changed, error) {
	if err := reasonFits(order.Reason); err != nil {
		return nil, err
	}
	order.JobID = job.ID
	return h.change(r, structs.CommandJobControl, order)
}

func (h *jobHandlers) finish(r *front.Request, job *structs.Job, body *api.JobControlRequest) (*api.Changed, error) {
	if err := reasonFits(body.Reason); err != nil {
		return nil, err
	}
	return h.change(r, structs.CommandJobFinish, structs.JobFinish{JobID: job.ID, Subjob: body.Subjob, Reason: body.Reason})
}

func (h *jobHandlers) stop(r *front.Request, job *structs.Job, body *api.JobStopRequest) (*api.Changed, error) {
	if err := reasonFits(body.Reason); err != nil {
		return nil, err
	}
	return h.change(r, structs.CommandJobStop, structs.JobStop{JobID: job.ID, Subjob: body.Subjob, Reason: body.Reason, Release: body.Release})
}

func (h *jobHandlers) delete(r *front.Request, job *structs.Job) (*api.Changed, error) {
	return h.change(r, structs.CommandJobDelete, structs.JobDelete{JobID: job.ID})
}

func (h *jobHandlers) prioritize(r *front.Request, job *structs.Job, body *api.JobPriorityRequest) (*api.Changed, error) {
	priority := body.Priority
	if err := mayPrioritize(r, priority, r.Object); err != nil {
		return nil, err
	}
	return h.change(r, structs.CommandJobPriority, structs.JobPriority{JobID: job.ID, Priority: priority})
}

// mayPrioritize checks a priority and whether the caller may give it.
func mayPrioritize(r *front.Request, priority structs.Priority, object auth.Object) error {
	switch priority {
	case structs.PriorityNormal, structs.PriorityUrgent:
		return nil
	case structs.PriorityCritical:
		return r.May(auth.VerbPriorityTop, object)
	}
	return structs.NewError(structs.CodeInvalid, "agent.priority_unknown", "value", priority)
}

// move puts a queued job in another place; the log keeps who did it.
func (h *jobHandlers) move(r *front.Request, job *structs.Job, body *api.QueueMoveRequest) (*api.Changed, error) {
	move := structs.QueueMove{JobID: job.ID, Last: body.Last}
	if body.Before != "" {
		if body.Last {
			return nil, structs.NewError(structs.CodeInvalid, "agent.move_both")
		}
		// Whoever may move jobs may read them all.
		before, err := findJob(r, body.Before, h.store.Snapshot())
		if err != nil {
			return nil, err
		}
		move.Before = before.ID
	}
	return h.change(r, structs.CommandQueueMove, move)
}

func (h *jobHandlers) limitTime(r *front.Request, job *structs.Job, body *api.TimeLimitRequest) (*api.Changed, error) {
	limit := body.TimeLimit
	if limit < 0 || limit > structs.SpanMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.time_limit",
			"value", structs.FormatDuration(limit), "max", structs.FormatDuration(structs.SpanMax))
	}
	if settings := r.Settings(h.store.Snapshot()); settings != nil && settings.Ceilings.TimeLimit > 0 && (limit == 0 || limit > settings.Ceilings.TimeLimit) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.time_limit_cluster", "value", structs.FormatDuration(limit),
			"max", structs.FormatDuration(settings.Ceilings.TimeLimit), "by", settings.CeilingsBy)
	}
	if pool := r.Pool(h.store.Snapshot(), poolOf(job.Placement.Pool)); pool != nil && pool.Ceilings.TimeLimit > 0 && (limit == 0 || limit > pool.Ceilings.TimeLimit) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.time_limit_ceiling", "value", structs.FormatDuration(limit),
			"pool", pool.Name, "max", structs.FormatDuration(pool.Ceilings.TimeLimit), "by", cmp.Or(pool.CeilingsBy, "?"))
	}
	if project := r.Project(h.store.Snapshot(), job.Project); project != nil && project.Ceilings.TimeLimit > 0 && (limit == 0 || limit > project.Ceilings.TimeLimit) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.time_limit_project", "value", structs.FormatDuration(limit),
			"project", project.Name, "max", structs.FormatDuration(project.Ceilings.TimeLimit), "by", project.BoundsBy)
	}
	return h.change(r, structs.CommandJobTimeLimit, structs.JobTimeLimit{JobID: job.ID, TimeLimit: limit})
}
