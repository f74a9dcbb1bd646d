package command

import (
	"context"
	"flag"
	"fmt"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// connectFor connects for a verb that takes one or more jobs.
func (env *Env) connectFor(connection connectionFlags, jobs []string) (*api.Client, error) {
	if len(jobs) == 0 {
		return nil, usagef("cli.missing_argument", "argument", "JOB")
	}
	return env.connect(connection)
}

// each does something to several jobs. One that fails keeps no other from its
// turn: it is said, and the command ends with an error.
func (env *Env) each(jobs []string, do func(id string) error) error {
	if len(jobs) == 1 {
		return do(jobs[0])
	}
	failed := 0
	for _, id := range jobs {
		if err := do(id); err != nil {
			if env.Context.Err() != nil {
				return err
			}
			failed++
			env.reportError(err)
		}
	}
	if failed > 0 {
		return &exitError{code: ExitError}
	}
	return nil
}

func jobStop(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	reason := set.String("reason", "", "cli.flag.reason")
	subjob := set.Int("subjob", -1, "cli.flag.subjob")
	wait := set.Bool("wait", false, "cli.flag.wait_stop")
	return func(env *Env, args []string) error {
		client, err := env.connectFor(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		request := api.JobStopRequest{Reason: *reason}
		if *subjob >= 0 {
			request.Subjob = subjob
		}
		return env.each(args, func(id string) error {
			if _, err := client.StopJob(env.Context, id, request); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.text("cli.job.stopping", "job", safe(id)))
			if !*wait {
				return nil
			}
			state, err := awaitEnd(env.Context, client, id, *subjob)
			if err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.stateText(env.Stdout, state))
			return nil
		})
	}
}

// jobRelease ends the debug holds of failed jobs, or takes their devices.
func jobRelease(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	reason := set.String("reason", "", "cli.flag.reason")
	subjob := set.Int("subjob", -1, "cli.flag.subjob")
	devices := set.Bool("devices", false, "cli.flag.release_devices")
	return func(env *Env, args []string) error {
		client, err := env.connectFor(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		request := api.JobStopRequest{Reason: *reason, Release: structs.ReleaseHold}
		said := "cli.job.released"
		if *devices {
			request.Release, said = structs.ReleaseDevices, "cli.job.released_devices"
		}
		if *subjob >= 0 {
			request.Subjob = subjob
		}
		return env.each(args, func(id string) error {
			if _, err := client.StopJob(env.Context, id, request); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.text(said, "job", safe(id)))
			return nil
		})
	}
}

// awaitEnd waits until nothing of a job, or of one of its subjobs, runs.
func awaitEnd(ctx context.Context, client *api.Client, id string, subjob int) (structs.JobState, error) {
	query := &api.Query{Wait: watchFor}
	for {
		detail, meta, err := client.Job(ctx, id, query)
		if err != nil {
			return "", err
		}
		state := detail.State
		if subjob >= 0 {
			one, err := subjobOf(ctx, client, detail.Job.ID, subjob)
			if err != nil {
				return "", err
			}
			state = one.State
		}
		if state.Terminal() {
			return state, nil
		}
		query.Index = meta.Index
	}
}

// subjobOf finds one subjob of a job.
func subjobOf(ctx context.Context, client *api.Client, jobID string, index int) (structs.Subjob, error) {
	query := &api.Query{Limit: api.PageSizeMax}
	for {
		page, _, err := client.Subjobs(ctx, jobID, query)
		if err != nil {
			return structs.Subjob{}, err
		}
		for _, subjob := range page.Subjobs {
			if subjob.Index == index {
				return subjob, nil
			}
		}
		if page.Next == "" {
			return structs.Subjob{}, structs.NewError(structs.CodeNotFound, "cli.no_subjob", "subjob", index)
		}
		query.After = page.Next
	}
}

func jobDelete(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		client, err := env.connectFor(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		return env.each(args, func(id string) error {
			if _, err := client.DeleteJob(env.Context, id); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.text("cli.job.deleted", "job", safe(id)))
			return nil
		})
	}
}
