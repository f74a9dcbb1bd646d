package command

import (
	"strings"
	"testing"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// What became of an output is said with its place, its cause and the command that helps.
func TestOutputLines(t *testing.T) {
	env := &Env{Language: messages.English}
	job := &structs.Job{Name: "train", OutputKeep: &structs.OutputKeep{As: "model", Path: "best one"}}
	out := api.JobOutput{Attempt: 1, Path: "run7", Storage: "nas", Kind: "model", Name: "resnet"}
	type told struct {
		api.JobOutput
		When string
	}
	for _, c := range []struct {
		state string
		alter func(*told)
		batch bool
		want  string
	}{
		{state: api.OutputWaiting, want: "becomes a version of model resnet, but not yet"},
		{state: api.OutputKept, alter: func(o *told) { o.Version = 3 }, want: "model resnet, version 3|run7 in storage nas"},
		{state: api.OutputUnkept, want: "did not become a version of model resnet, because the job did not succeed|run7 in storage nas|" +
			"it stays there: `nomadlike model add resnet from 0123 'best one'` makes a version of it, `nomadlike job download 0123 outputs DIR` copies it here"},
		{state: api.OutputRefused, batch: true, alter: func(o *told) {
			o.Subjob, o.Step, o.Kind, o.Storage, o.Node = 2, 5, "dataset", "", "n1"
			o.Cause = structs.NewReason("objects.take_empty")
		}, want: "s2: checkpoint of step 5, attempt 1: did not become a version of dataset resnet: there is no file in what the job wrote|" +
			"run7 in the first storage for outputs of node n1|" +
			"it stays there: `nomadlike data add -kind dataset -subjob 2 -checkpoint 5 resnet from 0123` makes a version of it, `nomadlike job download -subjob 2 0123 outputs DIR` copies it here"},
		{state: api.OutputRefused, alter: func(o *told) {
			o.Path, o.When = "run7/a", structs.KeepOnCheckpoint
		}, want: "did not become a version of model resnet|run7/a in storage nas|" +
			"it stays there: `nomadlike model add resnet from 0123 a` makes a version of it, `nomadlike job download 0123 outputs DIR` copies it here"},
		{state: api.OutputLies, want: "run7 in storage nas"},
		{state: api.OutputUnkept, alter: func(o *told) { o.Path = "" }, want: ""},
	} {
		one, of, keep := told{JobOutput: out}, *job, *job.OutputKeep
		if one.State = c.state; c.alter != nil {
			c.alter(&one)
		}
		keep.When, of.OutputKeep, of.Output = one.When, &keep, "run7"
		if of.ID = "0123"; c.batch {
			of.Batch = &structs.Batch{Count: 3}
		}
		if got := strings.Join(env.outputLines(&of, &one.JobOutput), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.state, got, c.want)
		}
	}
}
