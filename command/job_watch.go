package command

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

const (
	watchFor     = 30 * time.Second // one blocking query
	logDrain     = 5 * time.Second  // for the rest of the logs after a job's end
	logLineMax   = 64 << 10         // bytes; a longer line is broken there
	logRetryWait = 200 * time.Millisecond
)

// watcher follows a job to its start or its end, telling what happens.
type watcher struct {
	env    *Env
	client *api.Client
	jobID  string
	logs   bool
	quiet  bool

	said string // the last progress line
}

// run watches until the job runs or waits with a reason, or, when toEnd is
// set, until it has ended. It returns how the job stands then.
func (w *watcher) run(toEnd bool) (*api.JobDetail, error) {
	ctx, cancel := context.WithCancel(w.env.Context)
	defer cancel()
	var follower *logFollower
	if w.logs {
		follower = newLogFollower(w.env, w.client, w.jobID, -1)
		go follower.run(ctx)
	}
	query := &api.Query{}
	for {
		detail, meta, err := w.client.Job(ctx, w.jobID, query)
		if err != nil {
			return nil, err
		}
		w.tell(detail)
		if detail.State.Terminal() {
			if follower != nil {
				follower.drain()
			}
			return detail, nil
		}
		settled := detail.State == structs.JobRunning || detail.State == structs.JobQueued && detail.Wait != nil
		if !toEnd && settled {
			return detail, nil
		}
		query.Index, query.Wait = meta.Index, watchFor
	}
}

// tell prints a line when what it would say has changed.
func (w *watcher) tell(detail *api.JobDetail) {
	if w.quiet {
		return
	}
	line := w.env.stateText(detail.State)
	if detail.Attempt > 1 {
		line = w.env.text("cli.watch.attempt", "state", line, "attempt", detail.Attempt)
	}
	if why := w.env.standingText(detail.JobStanding); why != "" {
		line += ": " + why
	}
	if line == w.said {
		return
	}
	w.said = line
	fmt.Fprintf(w.env.Stderr, "%s %s\n", w.env.paint(colourDim, time.Now().Format("15:04:05")), line)
}

func jobLogs(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	follow := set.Bool("f", false, "cli.flag.follow")
	rank := set.String("rank", "", "cli.flag.rank")
	tail := set.Int("tail", 0, "cli.flag.tail")
	attempt := set.Uint64("attempt", 0, "cli.flag.attempt")
	subjob := set.Int("subjob", -1, "cli.flag.subjob")
	errOnly := set.Bool("stderr", false, "cli.flag.stderr")
	return func(env *Env, args []string) error {
		id, err := one(args, "JOB")
		if err != nil {
			return err
		}
		only, err := parseRank(*rank)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		detail, _, err := client.Job(env.Context, id, nil)
		if err != nil {
			return err
		}
		follower := newLogFollower(env, client, detail.Job.ID, only)
		follower.tail, follower.attempt, follower.subjob, follower.errOnly = *tail, *attempt, *subjob, *errOnly
		follower.follow = *follow
		if !*follow {
			if follower.attempt == 0 && detail.Job.Batch == nil {
				follower.attempt = detail.Attempt
			}
			return follower.once(env.Context)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			follower.run(env.Context)
		}()
		watch := &watcher{env: env, client: client, jobID: detail.Job.ID, quiet: true}
		_, err = watch.run(true)
		follower.drain()
		<-done
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
}

// logFollower merges the logs of a job's ranks, each line behind the rank
// that wrote it.
type logFollower struct {
	env     *Env
	client  *api.Client
	jobID   string
	rank    int // -1: all
	subjob  int // -1: all
	attempt uint64
	tail    int
	errOnly bool
	follow  bool

	ended chan struct{} // closed when the job has ended
	once1 sync.Once
	done  chan struct{}

	mu struct {
		sync.Mutex
		open map[string]bool // streams by allocation and name
		many bool            // several ranks write: lines carry a prefix
	}
}

func newLogFollower(env *Env, client *api.Client, jobID string, rank int) *logFollower {
	f := &logFollower{env: env, client: client, jobID: jobID, rank: rank, subjob: -1, follow: true,
		ended: make(chan struct{}), done: make(chan struct{})}
	f.mu.open = make(map[string]bool)
	return f
}

// drain tells the follower that the job has ended and waits, for a bounded
// time, until it has printed what is left.
func (f *logFollower) drain() {
	f.once1.Do(func() { close(f.ended) })
	timer := time.NewTimer(logDrain)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
	}
}

// run opens a stream for every allocation as it appears, until the job has
// ended and all were read.
func (f *logFollower) run(ctx context.Context) {
	var streams sync.WaitGroup
	defer close(f.done)
	defer streams.Wait()
	query := &api.Query{}
	for {
		list, meta, err := f.client.Allocations(ctx, f.jobID, api.AllocationFilter{}, query)
		if err != nil {
			if ctx.Err() == nil {
				f.env.reportError(err)
			}
			return
		}
		for _, alloc := range f.wanted(list.Allocations) {
			for _, name := range f.streams() {
				if f.claim(alloc.ID + "/" + name) {
					streams.Add(1)
					go func() {
						defer streams.Done()
						f.copy(ctx, alloc, name)
					}()
				}
			}
		}
		select {
		case <-f.ended:
			if query.Index == meta.Index || query.Wait == drainPoll {
				return
			}
			query.Index, query.Wait = 0, drainPoll
			continue
		default:
		}
		query.Index, query.Wait = meta.Index, time.Second
	}
}

// drainPoll marks the last look at the allocations after the job's end.
const drainPoll = time.Millisecond

// once prints what is there now, rank after rank.
func (f *logFollower) once(ctx context.Context) error {
	list, _, err := f.client.Allocations(ctx, f.jobID, api.AllocationFilter{}, nil)
	if err != nil {
		return err
	}
	for _, alloc := range f.wanted(list.Allocations) {
		for _, name := range f.streams() {
			f.copy(ctx, alloc, name)
		}
	}
	return nil
}

func (f *logFollower) streams() []string {
	if f.errOnly {
		return []string{"stderr"}
	}
	return []string{"stdout", "stderr"}
}

func (f *logFollower) claim(stream string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.open[stream] {
		return false
	}
	f.mu.open[stream] = true
	return true
}

// wanted filters allocations and leaves out those that never ran.
func (f *logFollower) wanted(all []structs.Allocation) []structs.Allocation {
	var list []structs.Allocation
	for _, alloc := range all {
		ran := alloc.StartedAt != 0 || alloc.Status == structs.AllocRunning || alloc.Status.Terminal() && alloc.Status != structs.AllocLost
		if !ran || f.rank >= 0 && alloc.Rank != f.rank || f.attempt > 0 && alloc.Attempt != f.attempt || f.subjob >= 0 && alloc.Subjob != f.subjob {
			continue
		}
		list = append(list, alloc)
		if alloc.Rank > 0 || alloc.Subjob > 0 {
			f.mu.Lock()
			f.mu.many = true
			f.mu.Unlock()
		}
	}
	return list
}

// copy prints one stream of one allocation.
func (f *logFollower) copy(ctx context.Context, alloc structs.Allocation, name string) {
	var offset int64
	for {
		n, err := f.copyFrom(ctx, alloc, name, offset)
		offset += n
		if err == nil || ctx.Err() != nil {
			return
		}
		if !f.follow || structs.CodeOf(err) == structs.CodeNotFound || structs.CodeOf(err) == structs.CodeForbidden {
			f.fail(alloc, err)
			return
		}
		timer := time.NewTimer(logRetryWait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		case <-f.ended:
			timer.Stop()
			f.fail(alloc, err)
			return
		}
	}
}

// fail tells that a log can not be read; for allocations of lost nodes that
// is expected and said once.
func (f *logFollower) fail(alloc structs.Allocation, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintln(f.env.Stderr, f.env.paint(colourYellow, f.env.text("cli.logs.unreadable", "rank", alloc.Rank, "node", safe(alloc.NodeName))))
	f.env.reportError(err)
}

func (f *logFollower) copyFrom(ctx context.Context, alloc structs.Allocation, name string, offset int64) (int64, error) {
	options := api.LogOptions{Stream: name, Offset: offset, Follow: f.follow}
	if offset == 0 {
		options.Tail = f.tail
	}
	body, err := f.client.Logs(ctx, alloc.ID, options)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	out := f.env.Stdout
	if name == "stderr" {
		out = f.env.Stderr
	}
	reader := bufio.NewReaderSize(body, logLineMax)
	var read int64
	for {
		line, err := reader.ReadSlice('\n')
		read += int64(len(line))
		if len(line) > 0 {
			f.print(out, alloc, string(line))
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return read, nil
		default:
			return read, fmt.Errorf("read log: %w", err)
		}
	}
}

func (f *logFollower) print(out io.Writer, alloc structs.Allocation, line string) {
	if line[len(line)-1] != '\n' {
		line += "\n"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.env.Escape {
		line = safe(line)
	}
	if f.mu.many && f.rank < 0 {
		prefix := fmt.Sprintf("%d| ", alloc.Rank)
		if alloc.Subjob > 0 {
			prefix = fmt.Sprintf("s%d/%d| ", alloc.Subjob, alloc.Rank)
		}
		line = f.env.rankColour(alloc.Rank+alloc.Subjob, prefix) + line
	}
	_, _ = io.WriteString(out, line) // a closed terminal ends the program elsewhere
}
