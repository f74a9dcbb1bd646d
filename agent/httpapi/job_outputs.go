package httpapi

import (
	"cmp"
	"path"
	"slices"
	"strconv"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// outputs tells what became of what a job wrote; may reports whether the caller may read
// an object. Of one that they may not, they hear what the job's own history says. Pure.
func outputs(snapshot *state.Snapshot, job *structs.Job, may func(*structs.DataObject) bool) (list []api.JobOutput, counts map[string]int) {
	if job.Output == "" {
		return nil, nil
	}
	t := outputTeller{snapshot: snapshot, job: job}
	if job.OutputKeep != nil {
		t.events, _ = snapshot.JobEvents(job.ID)
		if object := snapshot.Data(t.keptAs()); object != nil && may(object) {
			t.object = object
		}
	}
	counts = make(map[string]int)
	for subjob := range snapshot.Subjobs(job.ID) {
		list = append(list, t.of(subjob)...)
	}
	for i := range list {
		counts[list[i].State]++
	}
	if len(list) > api.OutputsMax {
		slices.SortStableFunc(list, func(a, b api.JobOutput) int { return cmp.Compare(outputRank(a.State), outputRank(b.State)) })
		list = list[:api.OutputsMax]
	}
	for i := range list { // of those that are shown only: a batch may have a hundred thousand
		list[i].Node = t.node(&list[i])
	}
	return list, counts
}

// outputRank is first for what somebody has to do something about.
func outputRank(state string) int {
	return slices.Index([]string{api.OutputRefused, api.OutputUnkept, api.OutputMaking, api.OutputRemoved, api.OutputWaiting, api.OutputKept, api.OutputLies}, state)
}

// outputTeller tells of the outputs of one job.
type outputTeller struct {
	snapshot *state.Snapshot
	job      *structs.Job
	object   *structs.DataObject // nil: there is none that the caller may read
	events   []*structs.Event
}

func (t *outputTeller) keptAs() structs.DataID {
	return structs.DataID{Project: t.job.Project, Kind: t.job.OutputKeep.As, Name: t.job.KeptName()}
}

// of tells of one subjob: of each checkpoint that it registered where those are kept.
func (t *outputTeller) of(subjob *structs.Subjob) []api.JobOutput {
	keep := t.job.OutputKeep
	out := t.place(subjob, subjob.Attempt)
	if keep == nil {
		if out.State = api.OutputLies; subjob.Attempt == 0 {
			return nil
		}
		return []api.JobOutput{out}
	}
	if out.Kind, out.Name = keep.As, t.job.KeptName(); keep.When != structs.KeepOnCheckpoint {
		switch {
		case subjob.State == structs.JobSucceeded:
			t.settle(&out, structs.DataTake{JobID: t.job.ID, Subjob: subjob.Index, Attempt: subjob.Attempt, Path: t.job.KeptPath(subjob.Index, keep.Path)})
		case subjob.State.Terminal():
			out.State = api.OutputUnkept
		default:
			out.State = api.OutputWaiting
		}
		return []api.JobOutput{out}
	}
	var list []api.JobOutput
	for i := range subjob.Checkpoints {
		saved := &subjob.Checkpoints[i]
		if saved.JobID != t.job.ID { // of the job that it goes on from
			continue
		}
		one := t.place(subjob, saved.Attempt)
		one.Kind, one.Name, one.Step = out.Kind, out.Name, saved.Step
		below, ok := structs.BelowOutput(saved.Path)
		if !ok {
			one.State, one.Path, one.Cause = api.OutputRefused, "", structs.NewReason("state.take_outside", "path", saved.Path)
			list = append(list, one)
			continue
		}
		one.Path = path.Join(one.Path, below)
		t.settle(&one, structs.DataTake{JobID: t.job.ID, Subjob: subjob.Index, Attempt: saved.Attempt, Step: saved.Step, Path: t.job.KeptPath(subjob.Index, below)})
		list = append(list, one)
	}
	if len(list) == 0 {
		if out.State = api.OutputWaiting; subjob.State.Terminal() {
			out.State, out.Cause = api.OutputUnkept, structs.NewReason("agent.output_no_checkpoint")
		}
		return []api.JobOutput{out}
	}
	return list
}

// place says where an attempt wrote.
func (t *outputTeller) place(subjob *structs.Subjob, attempt uint64) api.JobOutput {
	out := api.JobOutput{Subjob: subjob.Index, Attempt: attempt}
	if attempt == 0 {
		return out
	}
	out.Path, out.Storage = t.job.OfAttempt(attempt).OutputOf(subjob.Index), t.job.OutputStorage
	return out
}

// node is that of rank 0 of the attempt which wrote an output.
func (t *outputTeller) node(out *api.JobOutput) string {
	for alloc := range t.snapshot.Gang(t.job.ID, out.Subjob, out.Attempt) {
		if alloc.Rank == 0 {
			return alloc.NodeName
		}
	}
	return ""
}

// settle tells how far the version is that was begun of an output.
func (t *outputTeller) settle(out *api.JobOutput, take structs.DataTake) {
	if t.object != nil {
		if v := t.object.Upload(state.TakeID(&take)); v != nil {
			if out.State, out.Version = api.OutputKept, v.Number; !v.Usable() {
				out.State = api.OutputMaking
				if len(server.TakingNodes(t.snapshot, v.Origin, t.object.Kind, t.object.Storage)) == 0 {
					out.Cause = structs.NewReason("agent.output_waits", "storage", t.object.Storage)
				}
			}
			return
		}
	}
	kept := ""
	for _, e := range slices.Backward(t.events) { // checkpoints of one attempt are not told apart there
		if e.Subjob != take.Subjob || e.Attempt != take.Attempt || e.Params["kind"] != out.Kind || e.Params["name"] != out.Name {
			continue
		}
		if e.ID == "event.job.output_refused" {
			out.State, out.Cause = api.OutputRefused, e.Cause
			return
		}
		if e.ID == "event.job.output_kept" && kept == "" {
			kept = e.Params["version"]
		}
	}
	switch number, err := strconv.Atoi(kept); {
	case err != nil:
		out.State, out.Cause = api.OutputRefused, structs.NewReason("agent.output_given_up")
	case t.object != nil:
		out.State, out.Version = api.OutputRemoved, number
	default:
		out.State, out.Version = api.OutputKept, number
	}
}

// dataOutputs lists the newest jobs that were to make a version of an object, and have
// not: of those that may says the caller may see. Pure.
func dataOutputs(snapshot *state.Snapshot, object *structs.DataObject, may func(*structs.Job) bool) []api.DataOutputJob {
	list := []api.DataOutputJob{}
	for view := range snapshot.Jobs() {
		job := view.Job
		if job.OutputKeep == nil || (structs.DataID{Project: job.Project, Kind: job.OutputKeep.As, Name: job.KeptName()}) != object.Ref() || !may(job) {
			continue
		}
		all, _ := outputs(snapshot, job, func(*structs.DataObject) bool { return true })
		for i := range all {
			if one := &all[i]; one.State == api.OutputRefused || one.State == api.OutputUnkept || one.State == api.OutputMaking {
				list = append(list, api.DataOutputJob{ID: job.ID, Name: job.Name, User: job.User, Project: job.Project, Output: *one})
			}
		}
	}
	slices.Reverse(list) // newest first
	return list[:min(len(list), api.DataOutputJobsMax)]
}
