package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

const (
	watchFor   = 30 * time.Second // one blocking query
	watchRetry = time.Second      // between questions while the cluster is away

	countsEvery = time.Second // between two lines about the subjobs of a batch
)

type watchOptions struct {
	toEnd bool // to the job's end; else until it runs, or waits with a reason
	logs  bool // print what its ranks print
	quiet bool // no progress
}

// watchJob follows a job and reports what happens to it. When the person leaves
// with Ctrl-C it says how to come back.
func (env *Env) watchJob(client *api.Client, id string, job *structs.Job, options watchOptions) (*api.JobDetail, error) {
	watch := &watcher{env: env, client: client, jobID: id, quiet: options.quiet}
	if options.logs {
		follower := newLogFollower(env, client, id)
		follower.nameRanks(job)
		follower.start(env.Context)
		defer follower.finish()
	}
	detail, err := watch.run(env.Context, options.toEnd)
	if env.Context.Err() != nil && errors.Is(err, context.Canceled) {
		env.printError(env.text("cli.watch.left", "name", safe(job.Name)), env.text("cli.watch.left.hint", "id", short(id)))
	}
	return detail, err
}

// watcher follows how a job stands.
type watcher struct {
	env    *Env
	client *api.Client
	jobID  string
	quiet  bool

	said  string           // the last progress line
	state structs.JobState // that it told of
	at    time.Time        // when
}

// run watches until the job runs or waits with a reason, or, when toEnd is
// set, until it has ended: servers may come and go meanwhile. It returns how
// the job stands then.
func (w *watcher) run(ctx context.Context, toEnd bool) (*api.JobDetail, error) {
	query := &api.Query{}
	for {
		detail, meta, err := w.client.Job(ctx, w.jobID, query)
		if err != nil && toEnd && ctx.Err() == nil && structs.CodeOf(err) == structs.CodeUnavailable {
			w.say(w.env.text("cli.watch.unavailable"))
			if !pause(ctx, watchRetry) {
				return nil, ctx.Err()
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		w.tell(detail)
		settled := detail.State == structs.JobRunning || detail.State == structs.JobQueued && detail.Wait != nil
		if detail.State.Terminal() || settled && !toEnd {
			return detail, nil
		}
		query.Index, query.Wait = meta.Index, watchFor
	}
}

// pause waits; false when ctx ended before.
func pause(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tell says how the job stands.
func (w *watcher) tell(detail *api.JobDetail) {
	line := w.env.stateText(w.env.Stderr, detail.State)
	if detail.Attempt > 1 {
		line = w.env.text("cli.watch.attempt", "state", line, "attempt", detail.Attempt)
	}
	if why := w.env.statusText(detail.JobStatus); why != "" {
		line += ": " + why
	}
	if detail.Job != nil && detail.Job.Batched() {
		if detail.State == w.state && time.Since(w.at) < countsEvery {
			return
		}
		w.state, w.at = detail.State, time.Now()
		line += "  (" + w.env.countsText(w.env.Stderr, detail) + ")"
	}
	w.say(line)
}

// say prints a line, unless it was the last one already.
func (w *watcher) say(line string) {
	if w.quiet || line == w.said {
		return
	}
	w.said = line
	fmt.Fprintf(w.env.Stderr, "%s %s\n", w.env.Stderr.paint(colourDim, time.Now().Format(time.TimeOnly)), line)
}
