package command

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func shareVerbs() []verb {
	return []verb{
		{path: "job share", args: "JOB", setup: jobShare},
		{path: "node share", setup: nodeShare},
	}
}

// jobShare makes a link that shows one job to whoever has it, or lists those
// that there are.
func jobShare(set *flag.FlagSet) func(*Env, []string) error {
	return sharing(set, true, func(ctx context.Context, client *api.Client, job string, request api.ShareRequest) (*api.NewShare, error) {
		return client.ShareJob(ctx, job, request)
	}, func(ctx context.Context, client *api.Client, job string) (*api.ShareList, error) {
		return client.JobShares(ctx, job)
	})
}

// nodeShare does the same for the wall of cards.
func nodeShare(set *flag.FlagSet) func(*Env, []string) error {
	return sharing(set, false, func(ctx context.Context, client *api.Client, _ string, request api.ShareRequest) (*api.NewShare, error) {
		return client.ShareWall(ctx, request)
	}, func(ctx context.Context, client *api.Client, _ string) (*api.ShareList, error) {
		return client.WallShares(ctx)
	})
}

func sharing(set *flag.FlagSet, ofJob bool, create func(context.Context, *api.Client, string, api.ShareRequest) (*api.NewShare, error), list func(context.Context, *api.Client, string) (*api.ShareList, error)) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	request := api.ShareRequest{}
	set.StringVar(&request.Name, "name", "", "cli.flag.share_name")
	ttl := declareSpan(set, "ttl", api.ShareTTLDefault, "cli.flag.share_ttl")
	listed := set.Bool("list", false, "cli.flag.share_list")
	return func(env *Env, args []string) error {
		job := ""
		err := none(args)
		if ofJob {
			job, err = one(args, "JOB")
		}
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if *listed {
			shares, err := list(env.Context, client, job)
			if err != nil {
				return err
			}
			return env.show(output, all(shares.Shares), func() { env.printShares(shares.Shares) })
		}
		request.TTL = ttl.value
		made, err := create(env.Context, client, job, request)
		if err != nil {
			return err
		}
		return env.show(output, made, func() {
			fmt.Fprintln(env.Stdout, strings.TrimSuffix(client.Address(), "/")+made.Path)
			fmt.Fprintln(env.Stderr, env.text("cli.share.made", "id", made.Token.ID, "until", when(made.Token.ExpiresAt)))
		})
	}
}

func (env *Env) printShares(shares []structs.Token) {
	if len(shares) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.share.none"))
		return
	}
	table := newTable(env.Stdout, "ID", env.text("cli.col.name"), env.text("cli.col.user"), env.text("cli.col.created"), env.text("cli.col.expires"))
	for i := range shares {
		share := &shares[i]
		table.row(share.ID, safe(share.Name), safe(share.User), when(share.CreatedAt), when(share.ExpiresAt))
	}
	table.print()
}
