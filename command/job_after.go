package command

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// startFlags have a job wait for other jobs, or for a time, beside what its file says.
type startFlags struct {
	after listFlag
	begin *string
}

func declareStart(set *flag.FlagSet) *startFlags {
	flags := &startFlags{begin: set.String("begin", "", "cli.flag.begin")}
	set.Var(&flags.after, "after", "cli.flag.after")
	return flags
}

// change writes what the flags say into a job. JOB may have its project before a slash.
func (f *startFlags) change(job *structs.Job) error {
	if *f.begin != "" {
		job.Begin = *f.begin
	}
	for _, text := range f.after {
		name, when, said := strings.Cut(text, ":")
		after := structs.After{Job: name, When: structs.UntilSucceeded}
		if project, other, found := strings.Cut(name, "/"); found {
			after.Project, after.Job = project, other
		}
		if said {
			after.When = when
		}
		job.After = append(job.After, after)
	}
	for _, problem := range job.StartProblems() {
		return structs.NewError(structs.CodeInvalid, problem.ID, pairsOf(problem.Params)...)
	}
	return nil
}

func pairsOf(params map[string]string) []any {
	var pairs []any
	for name, value := range params { // into a map again: in any order
		pairs = append(pairs, name, value)
	}
	return pairs
}

// afterLines are what a job waits for, or waited, one line for each.
func (env *Env) afterLines(detail *api.JobDetail) []string {
	lines := make([]string, 0, len(detail.After))
	for i := range detail.After {
		a := &detail.After[i]
		id := "cli.job.after"
		switch {
		case detail.State == structs.JobQueued && !a.Waits:
			id = "cli.job.after_came"
		case a.Waits && a.State != "":
			id = "cli.job.after_now"
		}
		lines = append(lines, env.text(id, "job", safe(a.Called), "when", "until_"+a.When, "state", env.stateText(env.Stdout, a.State)))
	}
	return lines
}

// printStart shows what a job comes after, what comes after it, and its times.
func (env *Env) printStart(fields *table, detail *api.JobDetail) {
	for _, line := range env.afterLines(detail) {
		fields.row(env.text("cli.col.after"), line)
	}
	if len(detail.Followers) > 0 {
		names := make([]string, len(detail.Followers))
		for i := range detail.Followers {
			names[i] = safe(detail.Followers[i].Name)
		}
		fields.row(env.text("cli.col.followers"), strings.Join(slices.Compact(names), ", "))
	}
	if at := detail.Job.BeginAt; at != 0 && detail.State == structs.JobQueued {
		fields.row(env.text("cli.col.begins"), fmt.Sprintf("%s (%s)", when(at), safe(detail.Job.Begin)))
	}
	if at := detail.Job.DeadlineAt; at != 0 {
		fields.row(env.text("cli.col.deadline"), when(at))
	}
}
