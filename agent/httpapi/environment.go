package httpapi

import (
	"maps"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// seesEnvironment reports whether the caller may see the environment of a job: the
// policy says so, and so does the caller's token.
func seesEnvironment(r *front.Request, job *structs.Job) bool {
	return (r.Caller.Token == nil || auth.Covers(r.Caller.Token, auth.VerbEnv)) &&
		auth.Allowed(r.Caller.Principal, auth.VerbEnv, jobObject(job)).Allow
}

// shown is a job as the caller may see it: without its environment, the names of its
// secrets and its source when those are not the caller's to read.
func shown(r *front.Request, job *structs.Job) *structs.Job {
	if seesEnvironment(r, job) {
		return job
	}
	return job.WithoutEnvironment()
}

// shownAlloc is a rank of a job as the caller may see it.
func shownAlloc(r *front.Request, job *structs.Job, alloc *structs.Allocation) *structs.Allocation {
	if len(alloc.Seen) == 0 || seesEnvironment(r, job) {
		return alloc
	}
	hidden := *alloc
	hidden.Seen = job.SeenWithout(alloc.Seen)
	return &hidden
}

// shownEvent is an event of a job as the caller may see it: some tell what a rank's
// environment holds. Of a job that is forgotten, nil, nobody knows what it set.
func shownEvent(r *front.Request, now *state.Snapshot, job *structs.Job, event *structs.Event) *structs.Event {
	switch event.ID {
	case "event.attempt.ending", "event.job.requeued":
		return spokenEnd(now, event)
	case structs.EventEnvironment, structs.EventEnvironmentFound, structs.EventEnvironmentDiffers:
	default:
		return event
	}
	if job != nil && seesEnvironment(r, job) {
		return event
	}
	hidden := *event
	hidden.Params = maps.Clone(event.Params)
	for _, name := range []string{"seen", "differs", "text", "text_zh"} {
		text, told := hidden.Params[name]
		switch {
		case !told:
		case job == nil:
			hidden.Params[name] = structs.Hidden
		default:
			hidden.Params[name] = job.TextWithout(text)
		}
	}
	return &hidden
}

// spokenEnd is the event of an attempt's end as it reads: nothing was lost where a rank
// was slow and its gang goes on elsewhere.
func spokenEnd(now *state.Snapshot, event *structs.Event) *structs.Event {
	if !now.Attempt(event.JobID, event.Subjob, event.Attempt).MovedForSpeed() {
		return event
	}
	spoken := *event
	switch event.ID {
	case "event.attempt.ending":
		spoken.ID = "event.attempt.ending_slow"
	case "event.job.requeued":
		spoken.ID = "event.job.requeued_slow"
	}
	return &spoken
}
