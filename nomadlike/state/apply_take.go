package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"nomadlike/nomadlike/structs"
)

// TakeID is the id under which a version is made of what one attempt of a job wrote: so
// the same is begun once.
func TakeID(take *structs.DataTake) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		"nomadlike take 1", take.JobID, decimal(take.Subjob), decimal(take.Attempt), decimal(uint64(take.Step)), take.Path,
	}, "\n")))
	return "take-" + hex.EncodeToString(sum[:12])
}

// keepOutput begins a version of what a job wrote, where the job asks for it. The caller
// holds the newest attempt of the subjob: one that was fenced off never comes here.
func (tx *txn) keepOutput(job *structs.Job, take structs.DataTake) {
	keep := job.OutputKeep
	object := structs.DataObject{
		Project: job.Project, Kind: keep.As, Name: job.KeptName(), Owner: job.User, Storage: keep.Storage, Access: structs.DataProject,
	}
	if job.Access == structs.AccessNone {
		object.Access = structs.DataPrivate
	}
	body := structs.DataBegin{Object: object, UploadID: TakeID(&take), JobID: take.JobID, Attempt: take.Attempt, Take: &take}
	_, refusal := tx.beginVersion(&body, job.User)
	if refusal != nil {
		tx.tellKept(job.ID, take.Subjob, take.Attempt, "event.job.output_refused", object.Ref(), 0, &structs.Reason{ID: refusal.ID, Params: refusal.Params})
	}
}

// tellKept tells in the history of a job what became of its output.
func (tx *txn) tellKept(jobID string, subjob int, attempt uint64, id string, object structs.DataID, version int, cause *structs.Reason) {
	job, ok := tx.job(jobID)
	if !ok {
		return
	}
	event := jobEvent(id, job, nil)
	event.Subjob, event.Attempt, event.Cause = subjob, attempt, cause
	if cause != nil {
		event.Severity = severityWarn
	}
	tx.tell(event, "job", job.Name, "kind", object.Kind, "name", object.Name, "version", decimal(version))
}

// takeOrigin is what a version of what a job wrote says of its making; the job is the
// object's own project's, and its user may write to the object.
func (tx *txn) takeOrigin(object *structs.DataObject, body *structs.DataBegin, by string) (*structs.DataOrigin, *structs.Error) {
	take := body.Take
	refused := func(id string, params ...any) (*structs.DataOrigin, *structs.Error) {
		return nil, structs.NewError(structs.CodeConflict, id, append([]any{"kind", object.Kind, "name", object.Name}, params...)...)
	}
	job, ok := tx.job(take.JobID)
	switch {
	case !ok:
		return nil, structs.NewError(structs.CodeNotFound, "state.job_unknown", "job", take.JobID)
	case job.Output == "":
		return refused("state.take_no_output", "job", job.Name)
	case job.Project != object.Project:
		return refused("state.take_project", "job", job.Name, "project", job.Project)
	case object.Access == structs.DataPrivate && object.Owner != by:
		return refused("state.take_private")
	}
	subjob, ok := tx.subjob(take.JobID, take.Subjob)
	if !ok || take.Attempt == 0 || take.Attempt > subjob.Attempt {
		return nil, structs.NewError(structs.CodeNotFound, "state.take_attempt", "job", job.Name, "attempt", take.Attempt)
	}
	origin := structs.OriginOf(job, take.Subjob, take.Attempt)
	origin.Path, origin.Step = take.Path, take.Step
	origin.Failed = subjob.State != structs.JobSucceeded
	for _, alloc := range tx.gang(take.JobID, take.Subjob, take.Attempt) {
		if alloc.Rank == 0 || origin.NodeID == "" {
			origin.NodeID = alloc.NodeID
		}
	}
	return origin, nil
}

// checkTake refuses what is no request for what a job wrote.
func checkTake(body *structs.DataBegin) *structs.Error {
	take := body.Take
	switch {
	case take == nil:
		return nil
	case body.Source != "", body.Files != 0, body.Bytes != 0, body.JobID != take.JobID, body.Attempt != take.Attempt,
		!validKey(take.JobID), take.Subjob < 0, take.Step < 0, take.Path != "" && !structs.BelowPath(take.Path):
		return structs.NewError(structs.CodeInvalid, "state.data_malformed", "field", "take")
	}
	return nil
}

// keepCheckpoint begins a version of a checkpoint that was registered, where the job
// asks for it.
func (tx *txn) keepCheckpoint(job *structs.Job, subjob int, made *structs.SavedCheckpoint) {
	if job.OutputKeep == nil || job.OutputKeep.When != structs.KeepOnCheckpoint {
		return
	}
	take := structs.DataTake{JobID: job.ID, Subjob: subjob, Attempt: made.Attempt, Step: made.Step}
	below, ok := structs.BelowOutput(made.Path)
	if take.Path = job.KeptPath(subjob, below); !ok {
		tx.tellKept(job.ID, subjob, made.Attempt, "event.job.output_refused",
			structs.DataID{Project: job.Project, Kind: job.OutputKeep.As, Name: job.KeptName()}, 0,
			structs.NewReason("state.take_outside", "path", made.Path))
		return
	}
	tx.keepOutput(job, take)
}

// keepSuccess begins a version of all that a job wrote, where the job asks for it.
func (tx *txn) keepSuccess(job *structs.Job, subjob *structs.Subjob) {
	if keep := job.OutputKeep; keep != nil && cmp.Or(keep.When, structs.KeepOnSuccess) == structs.KeepOnSuccess {
		tx.keepOutput(job, structs.DataTake{JobID: job.ID, Subjob: subjob.Index, Attempt: subjob.Attempt, Path: job.KeptPath(subjob.Index, keep.Path)})
	}
}
