package command

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func controlVerbs() []verb {
	return []verb{
		{path: "job pause", args: "JOB...", setup: jobPause},
		{path: "job continue", args: "JOB...", setup: jobContinue},
		{path: "job finish", args: "JOB...", setup: jobFinish},
		{path: "job throttle", args: "JOB idle:MS|off", setup: jobThrottle},
	}
}

func jobPause(set *flag.FlagSet) func(*Env, []string) error {
	return controlling(set, "cli.job.pausing", "cli.flag.wait_pause", (*api.Client).PauseJob, func(s structs.JobState) bool {
		return s == structs.JobPaused
	})
}

func jobContinue(set *flag.FlagSet) func(*Env, []string) error {
	return controlling(set, "cli.job.continuing", "cli.flag.wait_continue", (*api.Client).ContinueJob, func(s structs.JobState) bool {
		return s == structs.JobRunning
	})
}

func jobFinish(set *flag.FlagSet) func(*Env, []string) error {
	return controlling(set, "cli.job.finishing", "cli.flag.wait_stop", (*api.Client).FinishJob, structs.JobState.Terminal)
}

// controlling is a verb that asks something of jobs that run, and can wait
// until they do it.
func controlling(set *flag.FlagSet, said, waiting string, ask func(*api.Client, context.Context, string, api.JobControlRequest) (*api.Changed, error),
	done func(structs.JobState) bool,
) func(*Env, []string) error {
	connection := declareConnection(set)
	reason := set.String("reason", "", "cli.flag.reason")
	subjob := set.Int("subjob", -1, "cli.flag.subjob")
	wait := set.Bool("wait", false, waiting)
	return func(env *Env, args []string) error {
		client, err := env.connectFor(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		request := api.JobControlRequest{Reason: *reason}
		if *subjob >= 0 {
			request.Subjob = subjob
		}
		return env.each(args, func(id string) error {
			if _, err := ask(client, env.Context, id, request); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.text(said, "job", safe(id)))
			if !*wait {
				return nil
			}
			state, err := awaitState(env.Context, client, id, *subjob, done)
			if err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.stateText(env.Stdout, state))
			if !done(state) {
				return &exitError{code: ExitError} // it could not, or ended before
			}
			return nil
		})
	}
}

// awaitState waits until a job, or one of its subjobs, stands as done says, has
// ended, or is not asked for it any more.
func awaitState(ctx context.Context, client *api.Client, id string, index int, done func(structs.JobState) bool) (structs.JobState, error) {
	query := &api.Query{Wait: watchFor}
	for {
		detail, meta, err := client.Job(ctx, id, query)
		if err != nil {
			return "", err
		}
		state, control := detail.State, detail.Control
		if index >= 0 {
			subjob, err := subjobOf(ctx, client, detail.Job.ID, index)
			if err != nil {
				return "", err
			}
			state, control = subjob.State, subjob.Control
		}
		gaveUp := done(structs.JobPaused) && state == structs.JobRunning && !control.Pauses() && !detail.Job.Batched()
		if done(state) || state.Terminal() || gaveUp {
			return state, nil
		}
		query.Index = meta.Index
	}
}

func jobThrottle(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	reason := set.String("reason", "", "cli.flag.reason")
	subjob := set.Int("subjob", -1, "cli.flag.subjob")
	busy := set.Duration("busy", structs.ThrottleBusyDefault.Std(), "cli.flag.busy")
	return func(env *Env, args []string) error {
		if err := two(args, "JOB idle:MS|off"); err != nil {
			return err
		}
		idle, ok := parseIdle(args[1])
		if !ok {
			return usagef("cli.job.bad_throttle", "value", safe(args[1]))
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		request := api.ThrottleRequest{Busy: structs.Duration(*busy), Idle: structs.Duration(idle), Reason: *reason}
		if *subjob >= 0 {
			request.Subjob = subjob
		}
		if _, err := client.ThrottleJob(env.Context, args[0], request); err != nil {
			return err
		}
		if idle == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.job.throttle_off", "job", safe(args[0])))
			return nil
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.throttled", "job", safe(args[0]), "busy", *busy, "idle", idle))
		return nil
	}
}

// parseIdle reads "idle:500", "idle:500ms", "idle:2s" or "off". Scripts of older
// versions write "keep:".
func parseIdle(text string) (time.Duration, bool) {
	if text == "off" {
		return 0, true
	}
	value, ok := strings.CutPrefix(text, "idle:")
	if !ok {
		value, ok = strings.CutPrefix(text, "keep:")
	}
	if !ok {
		return 0, false
	}
	if ms, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(ms) * time.Millisecond, true
	}
	idle, err := structs.ParseDuration(value)
	return idle.Std(), err == nil && idle >= 0
}

// controlText reports what people want of a job that runs, and what it cannot
// bear; "" when nothing.
func (env *Env) controlText(detail *api.JobDetail) string {
	var parts []string
	switch control := detail.Control; {
	case control == nil:
	case control.Paused && detail.State == structs.JobRunning:
		parts = append(parts, env.text("cli.control.pausing"))
	case !control.Paused && detail.State == structs.JobPaused:
		parts = append(parts, env.text("cli.control.continuing"))
	}
	if control := detail.Control; control.Throttled() {
		parts = append(parts, env.text("cli.control.throttled", "busy", structs.FormatDuration(control.Busy), "idle", structs.FormatDuration(control.Idle)))
	}
	return strings.Join(append(parts, env.bearsText(detail.Job)...), "; ")
}

// bearsText reports what a job says that it cannot bear.
func (env *Env) bearsText(job *structs.Job) (parts []string) {
	if !job.Supports.Pauses() {
		parts = append(parts, env.text("cli.control.no_pause"))
	}
	if !job.Supports.Throttles() {
		parts = append(parts, env.text("cli.control.no_throttle"))
	}
	if !job.Supports.Finishes() {
		parts = append(parts, env.text("cli.control.no_finish"))
	}
	if !job.Supports.Resumes() {
		parts = append(parts, env.text("cli.control.no_resume"))
	}
	return parts
}
