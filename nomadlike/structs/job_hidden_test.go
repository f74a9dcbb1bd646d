package structs_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	. "nomadlike/nomadlike/structs"
)

func secretive() *Job {
	return &Job{
		Name: "train", Source: `env = { KEY = "hunter2" }`,
		Task: Task{
			Command: "python train.py", Env: map[string]string{"KEY": "hunter2", "NCCL_ALGO": "hunter2-tree"},
			Secrets: []SecretUse{{Name: "wandb_of_hunter2", Var: "WANDB", User: "hunter2"}, {Name: "hunter2_file"}},
		},
		Batch: &Batch{Subtasks: []BatchSubtask{{Name: "one", Env: map[string]string{"LR": "hunter2", "KEY": "hunter2"}}}},
	}
}

// Nothing of an environment is left of a job but the names of its variables, and the
// job that is stored stays whole.
func TestWithoutEnvironment(t *testing.T) {
	job := secretive()
	before, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := json.Marshal(job.WithoutEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(hidden), "hunter2") {
		t.Errorf("shown: %s", hidden)
	}
	for _, name := range []string{"KEY", "NCCL_ALGO", "LR", "WANDB", "python train.py"} {
		if !strings.Contains(string(hidden), name) {
			t.Errorf("%s is missing: %s", name, hidden)
		}
	}
	if after, _ := json.Marshal(job); string(after) != string(before) {
		t.Errorf("the job became %s", after)
	}
	if got := job.WithoutEnvironment().HiddenVariables(); !slices.Equal(got, []string{"KEY", "LR", "NCCL_ALGO", "WANDB"}) {
		t.Errorf("hidden are %q", got)
	}
	if got := job.HiddenVariables(); len(got) > 0 {
		t.Errorf("hidden of the job itself: %q", got)
	}
}

// What a rank was seen with, and what was told of it, keeps no value that the job sets.
func TestWhatIsToldWithoutTheEnvironment(t *testing.T) {
	job := secretive()
	seen := map[string]string{"env.NCCL_ALGO": "hunter2-tree", "env.WANDB": "hunter2", "env.NCCL_PROTO": "LL", "nvidia.driver": "550"}
	kept := maps.Clone(seen)
	want := map[string]string{"env.NCCL_ALGO": Hidden, "env.WANDB": Hidden, "env.NCCL_PROTO": "LL", "nvidia.driver": "550"}
	if got := job.SeenWithout(seen); !maps.Equal(got, want) || !maps.Equal(seen, kept) {
		t.Errorf("%v, of %v", got, seen)
	}
	for text, want := range map[string]string{
		"cuda.version=12.4, env.NCCL_ALGO=hunter2, memlock.kib=64": "cuda.version=12.4, env.NCCL_ALGO=***",
		"WANDB=hunter2 is odd":           "WANDB=***",
		"the way hunter2-tree is odd":    "the way ***",
		"only 64 MiB of memory are free": "only 64 MiB of memory are free",
	} {
		if got := job.TextWithout(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// A copy by somebody who could not see the values is no job.
func TestACopyWithHiddenValuesIsRefused(t *testing.T) {
	job := smallJob().WithoutEnvironment()
	job.Task.Env = map[string]string{"KEY": Hidden}
	job.Task.Secrets = []SecretUse{{Name: Hidden, Var: "WANDB"}, {Name: Hidden}}
	var ids []string
	for _, problem := range job.Validate() {
		ids = append(ids, problem.Path+" "+problem.ID)
	}
	want := []string{`task.env["KEY"] job.hidden`, `task.env["WANDB"] job.hidden_secret`, "task.secrets job.hidden_secret"}
	slices.Sort(ids)
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
}
