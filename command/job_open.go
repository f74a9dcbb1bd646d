package command

import (
	"flag"
	"fmt"
	"time"
)

func jobOpen(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	rank := set.Int("rank", 0, "cli.flag.open_rank")
	subjob := set.Int("subjob", 0, "cli.flag.subjob")
	return func(env *Env, args []string) error {
		if len(args) != 2 {
			return usagef("cli.missing_argument", "argument", "JOB PORT")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		alloc, err := runningRank(env.Context, client, args[0], *subjob, *rank)
		if err != nil {
			return err
		}
		page, err := client.TaskPage(env.Context, alloc.ID, args[1])
		if err != nil {
			return err
		}
		return env.show(output, page, func() {
			fmt.Fprintln(env.Stdout, page.Address)
			fmt.Fprintln(env.Stderr, env.text("cli.open.once", "seconds", int(time.Until(page.ExpiresAt.Time()).Round(time.Second)/time.Second),
				"port", page.Port, "rank", alloc.Rank, "job", safe(alloc.JobName)))
		})
	}
}
