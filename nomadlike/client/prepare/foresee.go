package prepare

import (
	"context"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/environment"
	"nomadlike/nomadlike/structs"
)

// foresee looks at what the command will see: in a task like its own, without
// the command. What is found changes nothing but the job's events.
func (r *Preparer) foresee(ctx context.Context, a *structs.Assignment, p *Prepared, notes []structs.Reason) {
	d, ok := r.Drivers[a.Job.Task.Driver]
	if !ok || a.Job.Checkpoint == nil || !a.Job.Checkpoint.Precheck {
		return
	}
	id := a.Alloc.ID
	task, end, err := r.Hooks.Stand(ctx, d, p.Spec)
	if err != nil {
		r.Log.Warn("environment is not checked before the start", logkey.AllocID, id, logkey.Error, err)
		return
	}
	defer end()
	p.Told = new(environment.Told)
	r.Environment.Take(ctx, &environment.Look{
		Assignment: a, Task: task, Unset: environment.UnsetVariables(p.Spec.Command, notes), Image: p.Image, Told: p.Told,
		Tell: func(told structs.Told) { r.Notes.Tell(id, a.Alloc.Attempt, told) },
	})
}
