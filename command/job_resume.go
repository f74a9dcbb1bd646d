package command

import (
	"bufio"
	"flag"
	"fmt"
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

// confirmedJob gives the job to submit when the person agrees: by the file that
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
	if !yes && !env.agrees(detail, job, step) {
		return nil, structs.NewError(structs.CodeInvalid, "cli.resume.refused")
	}
	return job, nil
}

// agrees shows what would run from where, and asks.
func (env *Env) agrees(detail *api.JobDetail, job *structs.Job, step int64) bool {
	if len(detail.Subjobs) > 0 {
		for _, saved := range detail.Subjobs[0].Checkpoints {
			if newest := detail.Subjobs[0].Newest(); step == 0 && saved == *newest || step != 0 && saved.Step == step {
				fmt.Fprintln(env.Stdout, env.text("cli.resume.target", "name", safe(job.Name), "path", safe(saved.Path),
					"step", saved.Step, "attempt", saved.Attempt, "at", when(saved.SavedAt)))
			}
		}
	}
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
