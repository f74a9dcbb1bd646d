package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// jobWait waits until jobs have ended, and says of each how. Its exit code is that of the
// first, in their order, that did not succeed, as `job run -wait` has it.
func jobWait(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	timeout := declareSpan(set, "timeout", 0, "cli.flag.wait_timeout")
	return func(env *Env, args []string) error {
		client, err := env.connectFor(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		known := make([]*api.JobDetail, len(args))
		for i, name := range args { // before the first wait: names may be of other jobs later
			if known[i], _, err = client.Job(env.Context, name, nil); err != nil {
				return err
			}
		}
		ctx, cancel := env.Context, context.CancelFunc(func() {})
		if timeout.value > 0 { // it is for the wait alone: what has ended before is told however short it is
			ctx, cancel = context.WithTimeout(env.Context, time.Duration(timeout.value))
		}
		defer cancel()
		ended := make([]*api.JobDetail, len(known))
		var failed error
		for i, detail := range known {
			job := detail.Job
			if !detail.State.Terminal() {
				watch := &watcher{env: env, client: client, jobID: job.ID, quiet: len(known) > 1 || output.forPrograms()}
				detail, err = watch.run(ctx, true)
			}
			if err != nil {
				if env.Context.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
					env.printError(env.text("cli.wait.over", "name", safe(job.Name), "span", structs.FormatDuration(timeout.value)), "")
					return &exitError{code: ExitExpired}
				}
				return err
			}
			ended[i] = detail
			if !output.forPrograms() {
				fmt.Fprintf(env.Stdout, "%s %s\n", safe(job.Name), env.stateText(env.Stdout, detail.State))
			}
			if failed == nil {
				failed = endOf(detail)
			}
		}
		if err := env.show(output, ended, func() {}); err != nil {
			return err
		}
		return failed
	}
}
