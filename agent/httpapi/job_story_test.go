package httpapi

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/faults"
	"nomadlike/nomadlike/structs"
)

// A job is compared with the last of its lineage that succeeded, with the job that is
// named, and with none that its reader may not see.
func TestJobDiff(t *testing.T) {
	h := newHarness(t)
	h.node("machine-1", 8)
	ended := func(client *api.Client, hcl string, status structs.AllocStatus) string {
		id := h.start(client, hcl)
		h.replica.SetNow(h.replica.Now().Add(time.Minute))
		h.report(id, status)
		return id
	}
	ann := h.as("user", "vision", "ann")
	olga := h.as("operator", "", "olga")
	task := func(env, command string) string {
		return `command = "` + command + `"` + "\n" + `env = { SECRET = "` + env + `" }`
	}
	inVision := `project = "vision"`
	old := ended(ann, named("train-1", task("one", "python t.py --lr 1"), inVision), structs.AllocComplete)
	good := ended(ann, named("train-2", task("two", "python t.py --lr 2"), inVision), structs.AllocComplete)
	ended(ann, named("other", task("x", "true"), inVision), structs.AllocComplete)
	failed := ended(ann, named("train-3", task("three", "python t.py --lr 3"), inVision), structs.AllocFailed)

	paths := func(diff *api.JobDiff) string {
		var list []string
		for _, one := range diff.Differences {
			list = append(list, one.Path+": "+one.Before+" > "+one.After)
		}
		return strings.Join(list, "; ")
	}
	diff, err := ann.JobDiff(t.Context(), "train-3", "")
	if err != nil {
		t.Fatal(err)
	}
	if diff.Before == nil || diff.Before.ID != good || diff.After.ID != failed || diff.After.State != structs.JobFailed || diff.Hidden {
		t.Errorf("compared %+v with %+v, hidden: %t", diff.After, diff.Before, diff.Hidden)
	}
	if got, want := paths(diff), `task.command --lr: 2 > 3; task.env["SECRET"]: two > three`; got != want {
		t.Errorf("differences %s, want %s", got, want)
	}
	if diff, err = ann.JobDiff(t.Context(), failed, old); err != nil || diff.Before.ID != old {
		t.Errorf("with a job that is named: %+v, %v", diff, err)
	}
	// An operator may read the jobs, but not their secrets.
	if diff, err = olga.JobDiff(t.Context(), failed, ""); err != nil || !diff.Hidden || paths(diff) != "task.command --lr: 2 > 3" {
		t.Errorf("an operator reads %s, hidden: %t, %v", paths(diff), diff.Hidden, err)
	}
	if diff, err = ann.JobDiff(t.Context(), "other", ""); err != nil || diff.Before != nil || len(diff.Differences) != 0 {
		t.Errorf("a job without a lineage: %+v, %v", diff, err)
	}
	// A stranger finds neither.
	eve := h.as("user", "speech", "eve")
	mine := ended(eve, named("train-3", "command = \"true\"", `project = "speech"`), structs.AllocFailed)
	if diff, err = eve.JobDiff(t.Context(), mine, ""); err != nil || diff.Before != nil {
		t.Errorf("compared with a job of another project: %+v, %v", diff, err)
	}
	if _, err = eve.JobDiff(t.Context(), mine, good); err == nil {
		t.Error("a stranger compares with a job that they may not read")
	}
	if _, err = eve.JobDiff(t.Context(), good, ""); err == nil {
		t.Error("a stranger reads of a job that they may not read")
	}
}

// The story of a failure is told to whoever may read the job.
func TestJobFaults(t *testing.T) {
	h := newHarness(t)
	h.node("machine-1", 8)
	ann := h.as("user", "vision", "ann")
	id := h.start(ann, named("train", "command = \"true\"", "project = \"vision\"\nrestart {\n max_restarts = 1\n}"))
	h.replica.SetNow(h.replica.Now().Add(time.Hour))
	h.report(id, structs.AllocFailed)
	h.replica.SetNow(h.replica.Now().Add(time.Minute))
	h.schedule()
	h.report(id, structs.AllocPrepared)
	h.report(id, structs.AllocRunning)
	found, err := ann.JobFaults(t.Context(), "train")
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Faults) != 1 || found.JobID != id {
		t.Fatalf("%+v", found)
	}
	fault := found.Faults[0]
	var stages []faults.Stage
	for _, moment := range fault.Moments {
		stages = append(stages, moment.Stage)
	}
	want := []faults.Stage{faults.StageFault, faults.StageNoticed, faults.StageAgreed, faults.StageStopped, faults.StagePlaced, faults.StageRunning, faults.StageStepped}
	if fault.Attempt != 1 || fault.Next != 2 || fault.Outcome != structs.OutcomeFailed || fault.Node != "machine-1" || !slices.Equal(stages, want) {
		t.Errorf("%+v: %v", fault, stages)
	}
	if fault.Loss.Nodes != 1 || fault.Loss.Devices != 0 || fault.Loss.Work.Std() != time.Hour || fault.Loss.Waiting.Std() != time.Minute || found.Lost != fault.Loss.Hours || found.Lost < 1 {
		t.Errorf("%+v, %v in all", fault.Loss, found.Lost)
	}
	eve := h.as("user", "speech", "eve")
	if _, err = eve.JobFaults(t.Context(), id); err == nil {
		t.Error("a stranger reads the story")
	}
}
