package command

import (
	"flag"
	"fmt"

	"nomadlike/nomadlike/api"
)

// jobCommit keeps the container of a running rank as an image.
func jobCommit(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	rank := set.Int("rank", 0, "cli.flag.exec_rank")
	subjob := set.Int("subjob", 0, "cli.flag.subjob")
	comment := set.String("comment", "", "cli.flag.comment")
	push := set.String("push", "", "cli.flag.image_push")
	secret, mine := set.String("secret", "", "cli.flag.image_secret"), set.Bool("mine", false, "cli.flag.mine")
	return func(env *Env, args []string) error {
		client, err := env.openTwo(connection, args, "JOB NAME")
		if err != nil {
			return err
		}
		defer client.Close()
		alloc, err := runningRank(env.Context, client, args[0], *subjob, *rank)
		if err != nil {
			return err
		}
		made, err := client.CommitAllocation(env.Context, alloc.ID, api.CommitRequest{Name: args[1], Comment: *comment, Push: *push, Secret: *secret, Mine: *mine})
		if err != nil {
			return err
		}
		return env.show(output, made, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.job.committed", "image", safe(made.Image), "node", safe(alloc.NodeName), "size", size(made.Bytes)))
			if made.Pushed != "" {
				fmt.Fprintln(env.Stdout, env.text("cli.job.pushed", "image", safe(made.Pushed), "digest", safe(made.Digest)))
			}
		})
	}
}
