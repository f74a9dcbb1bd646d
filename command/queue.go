package command

import (
	"context"
	"flag"
	"fmt"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func queueVerbs() []verb {
	return []verb{
		{path: "queue move", args: "JOB", setup: queueMove},
		{path: "job parallel", args: "JOB COUNT|all", setup: jobParallel},
		{path: "job trials", args: "JOB", setup: jobTrials},
		{path: "job limit", args: "JOB DURATION|none", setup: jobLimit},
	}
}

func queueMove(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	to := api.QueueMoveRequest{}
	set.StringVar(&to.Before, "before", "", "cli.flag.before")
	set.BoolVar(&to.Last, "last", false, "cli.flag.last")
	first := set.Bool("first", false, "cli.flag.first")
	return func(env *Env, args []string) error {
		id, err := one(args, "JOB")
		if err != nil {
			return err
		}
		chosen := 0
		for _, given := range []bool{to.Before != "", to.Last, *first} {
			if given {
				chosen++
			}
		}
		if chosen != 1 {
			return usagef("cli.queue.move_where")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.MoveJob(env.Context, id, to); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.queue.moved", "job", safe(id)))
		return nil
	}
}

func jobLimit(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	yes := set.Bool("yes", false, "cli.flag.yes")
	return func(env *Env, args []string) error {
		if err := two(args, "JOB DURATION|none"); err != nil {
			return err
		}
		limit := structs.Duration(0)
		if args[1] != "none" {
			var err error
			if limit, err = structs.ParseDuration(args[1]); err != nil || limit <= 0 {
				return usagef("cli.job.bad_limit", "value", safe(args[1]))
			}
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if elapsed, err := elapsedOf(env.Context, client, args[0]); err != nil {
			return err
		} else if limit != 0 && elapsed >= limit {
			if err := env.confirm(*yes, env.text("cli.job.limit_over", "job", safe(args[0]), "elapsed", roughly(elapsed.Std()))); err != nil {
				return err
			}
		}
		if _, err := client.SetTimeLimit(env.Context, args[0], limit); err != nil {
			return err
		}
		if limit == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.job.limit_lifted", "job", safe(args[0])))
			return nil
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.limit_set", "job", safe(args[0]), "limit", structs.FormatDuration(limit)))
		return nil
	}
}

// elapsedOf reports for how long the attempt of a job has run that began first: a
// time limit below that ends it. 0: nothing of the job runs.
func elapsedOf(ctx context.Context, client *api.Client, id string) (structs.Duration, error) {
	found, _, err := client.Attempts(ctx, id, nil)
	if err != nil {
		return 0, err
	}
	now, elapsed := structs.At(time.Now()), structs.Duration(0)
	for i := range found.Attempts {
		if a := &found.Attempts[i]; a.State == structs.AttemptRunning && a.RunningAt != 0 {
			elapsed = max(elapsed, structs.Duration(now.Sub(a.RunningAt)))
		}
	}
	return elapsed, nil
}
