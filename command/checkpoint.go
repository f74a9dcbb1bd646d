//go:build linux && !cli

package command

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"nomadlike/nomadlike/client/checkpoint"
)

// checkpointWait is how long a task waits by default for the servers to know
// of its checkpoint.
const checkpointWait = 5 * time.Second

func checkpointVerbs() []verb {
	return []verb{{path: "checkpoint", args: "PATH", setup: registerCheckpoint}}
}

// registerCheckpoint is called inside a task: it tells the node's agent of a
// checkpoint. Servers that cannot be reached are no error: training goes on,
// and the agent tells them later.
func registerCheckpoint(set *flag.FlagSet) func(*Env, []string) error {
	step := set.Int64("step", 0, "cli.flag.checkpoint_step")
	wait := set.Duration("wait", checkpointWait, "cli.flag.checkpoint_wait")
	return func(env *Env, args []string) error {
		path, err := one(args, "PATH")
		if err != nil {
			return err
		}
		if path, err = filepath.Abs(path); err != nil {
			return fmt.Errorf("find working directory: %w", err)
		}
		ctx, cancel := context.WithTimeout(env.Context, *wait)
		defer cancel()
		stored, err := checkpoint.Register(ctx, env.Getenv(checkpoint.EnvInbox), path, *step)
		if err != nil {
			return err
		}
		id := "cli.checkpoint.stored"
		if !stored {
			id = "cli.checkpoint.later"
		}
		fmt.Fprintln(env.Stdout, env.text(id, "path", safe(path), "step", *step))
		return nil
	}
}
