package command

import (
	"flag"
	"fmt"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func queueVerbs() []verb {
	return []verb{
		{path: "queue move", args: "JOB", setup: queueMove},
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
