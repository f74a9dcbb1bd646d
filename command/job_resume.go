package command

import (
	"bufio"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// jobResume submits an ended job again, as a new one that starts from its newest
// checkpoint. A person is shown what will run from where, and asked.
func jobResume(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	name := set.String("name", "", "cli.flag.resume_name")
	step := set.Int64("step", 0, "cli.flag.resume_step")
	edit := set.Bool("edit", false, "cli.flag.resume_edit")
	yes := set.Bool("yes", false, "cli.flag.resume_yes")
	return func(env *Env, args []string) error {
		client, detail, err := env.openJob(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		detail.Job.Name = firstOf(*name, detail.Job.Name)
		job, err := env.confirmedJob(detail, *step, *edit, *yes)
		if err != nil {
			return err
		}
		submitted, err := client.SubmitJob(env.Context, api.JobRequest{Job: job, Resume: detail.Job.ID, ResumeStep: *step}, "")
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.submitted", "name", submitted.Name, "id", submitted.JobID))
		return nil
	}
}

// confirmedJob returns the job to submit when the person agrees: by the file that
// they left in the editor, or by their answer.
func (env *Env) confirmedJob(detail *api.JobDetail, step int64, edit, yes bool) (*structs.Job, error) {
	source := jobspec.Write(detail.Job)
	if edit {
		var err error
		if source, err = env.edit(detail.Job.Name, source); err != nil {
			return nil, err
		}
	}
	job, _, diagnostics := jobspec.Parse("resume.hcl", source, jobspec.Options{})
	if err := diagnostics.Render(env.Stderr, env.style()); err != nil {
		return nil, err
	}
	if diagnostics.HasErrors() {
		return nil, &exitError{code: ExitError}
	}
	job.Source = string(source)
	if yes {
		return job, nil
	}
	saved, err := checkpointOf(detail, step)
	if err != nil {
		return nil, err
	}
	if !env.agrees(saved, job) {
		return nil, structs.NewError(structs.CodeInvalid, "cli.resume.refused")
	}
	return job, nil
}

// checkpointOf returns the checkpoint that a server would choose: the newest, or the
// last one of a step. Without one there is nothing to ask a person.
func checkpointOf(detail *api.JobDetail, step int64) (*structs.SavedCheckpoint, error) {
	if len(detail.Subjobs) == 0 || len(detail.Subjobs[0].Checkpoints) == 0 {
		return nil, structs.NewError(structs.CodeConflict, "agent.resume_nothing", "job", detail.Job.Name)
	}
	if step == 0 {
		return detail.Subjobs[0].Newest(), nil
	}
	var steps []string
	for _, saved := range slices.Backward(detail.Subjobs[0].Checkpoints) {
		if saved.Step == step {
			return &saved, nil
		}
		steps = append(steps, strconv.FormatInt(saved.Step, 10))
	}
	return nil, structs.NewError(structs.CodeNotFound, "agent.resume_step", "job", detail.Job.Name, "step", step, "steps", strings.Join(steps, ", "))
}

// agrees shows what would run from where, and asks.
func (env *Env) agrees(saved *structs.SavedCheckpoint, job *structs.Job) bool {
	fmt.Fprintln(env.Stdout, env.text("cli.resume.target", "name", safe(job.Name), "path", safe(saved.Path),
		"step", saved.Step, "attempt", saved.Attempt, "at", when(saved.SavedAt)))
	fmt.Fprintln(env.Stdout, env.text("cli.resume.command", "command", safe(job.Task.Command)))
	fmt.Fprint(env.Stdout, env.text("cli.resume.ask"))
	answer, err := bufio.NewReader(env.Stdin).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(env.Stdout)
		return false
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes", "是":
		return true
	}
	return false
}
