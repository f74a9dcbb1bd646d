package state

import (
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestKeyReused: a key brings back the job that it made, and no other one under
// its name.
func TestKeyReused(t *testing.T) {
	s := New()
	index := uint64(0)
	submit := func(change func(*structs.Job)) structs.ApplyResult {
		t.Helper()
		index++
		job := testJob("one", 1)
		job.ID, job.IdempotencyKey, job.SubmittedAt = "id-"+decimal(index), "k", structs.UnixNano(index)
		if change != nil {
			change(job)
		}
		return s.Apply(index, encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: job}))
	}
	first := submit(nil)
	if first.Err != nil || first.JobID == "" {
		t.Fatalf("%+v", first)
	}
	if again := submit(nil); again.Err != nil || again.JobID != first.JobID {
		t.Errorf("the same again: %+v", again)
	}
	for name, change := range map[string]func(*structs.Job){
		"two":             func(j *structs.Job) { j.Name = "two" }, // another name
		"another project": func(j *structs.Job) { j.Project = "vision" },
		"another command": func(j *structs.Job) { j.Task.Command = "false" },
	} {
		if got := submit(change); got.Err == nil || got.Err.Code != structs.CodeConflict || got.Err.ID != "state.key_reused" || got.Err.Params["name"] != "one" ||
			got.Err.Params["wanted"] == "" || name == "two" && got.Err.Params["wanted"] != "two" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
