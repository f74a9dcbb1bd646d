package command

import (
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
	logDrain = 5 * time.Second        // for the rest of the logs after a job's end
	logRetry = 200 * time.Millisecond // after a log broke off
	logPoll  = 30 * time.Second       // one blocking query for new allocations

	// logStreamsMax bounds the logs that are read at a time, two of each rank:
	// agents bound what one token has open. Logs that ended make room.
	logStreamsMax = 400

	logBuffer = 128 << 10 // bytes of a log that are read at a time
)

func jobLogs(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	follow := set.Bool("f", false, "cli.flag.follow")
	rank := set.Int("rank", -1, "cli.flag.rank")
	tail := set.Int("tail", 0, "cli.flag.tail")
	attempt := set.Uint64("attempt", 0, "cli.flag.attempt")
	subjob := set.Int("subjob", -1, "cli.flag.subjob")
	errOnly := set.Bool("stderr", false, "cli.flag.stderr")
	hooks := set.Bool("hooks", false, "cli.flag.hooks")
	times := set.Bool("times", false, "cli.flag.times")
	return func(env *Env, args []string) error {
		client, detail, err := env.openJob(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		follower := newLogFollower(env, client, detail.Job.ID)
		follower.rank, follower.subjob, follower.tail, follower.errOnly = *rank, *subjob, *tail, *errOnly
		follower.hooks, follower.times = *hooks, *times
		follower.nameRanks(detail.Job)
		if *attempt > 0 {
			follower.first, follower.last = *attempt, *attempt
		} else if !detail.Job.Batched() {
			follower.first = detail.Attempt
		}
		if !*follow {
			return follower.once(env.Context)
		}
		watch := &watcher{env: env, client: client, jobID: detail.Job.ID, quiet: true}
		follower.start(env.Context)
		defer follower.finish()
		_, err = watch.run(env.Context, true)
		return err
	}
}

// logFollower merges the logs of a job's ranks. Its owner sets the fields up
// to batch and calls either once, or start and then finish.
type logFollower struct {
	env      *Env
	client   *api.Client
	jobID    string
	rank     int    // -1: all
	subjob   int    // -1: all
	first    uint64 // attempts from this one on
	last     uint64 // up to this one; 0: all to come
	tail     int    // lines; 0: from the beginning
	errOnly  bool
	hooks    bool // what the lifecycle scripts wrote instead
	times    bool // lines begin with when they were printed
	prefixed bool // lines begin with the rank that wrote them
	batch    bool // and with its subjob

	over   context.Context // ends with the job, or with finish's caller
	end    func()          // ends over
	cancel func()          // gives up what is still unread
	done   chan struct{}

	open  map[string]*openLog // by allocation; of run's goroutine alone
	slots chan struct{}       // one is held for each log that is read
	mu    sync.Mutex          // one line at a time
}

// openLog is an allocation whose log is being read.
type openLog struct {
	stop context.CancelFunc
	lost bool
}

func newLogFollower(env *Env, client *api.Client, jobID string) *logFollower {
	return &logFollower{
		env: env, client: client, jobID: jobID, rank: -1, subjob: -1, open: make(map[string]*openLog),
		slots: make(chan struct{}, logStreamsMax),
	}
}

// nameRanks decides whether lines need to say who wrote them.
func (f *logFollower) nameRanks(job *structs.Job) {
	f.batch = job.SubjobCount() > 1
	f.prefixed = f.batch && f.subjob < 0 || job.Nodes > 1 && f.rank < 0
}

// start begins to follow; the caller calls finish.
func (f *logFollower) start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	f.over, f.end = context.WithCancel(ctx)
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		f.run(ctx)
	}()
}

// finish is called when the job has ended: it waits, for a bounded time,
// until everything was printed.
func (f *logFollower) finish() {
	f.end()
	timer := time.NewTimer(logDrain)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
	}
	f.cancel()
	<-f.done
}

// run reads the log of every allocation as it appears, until the job is over
// and all were read.
func (f *logFollower) run(ctx context.Context) {
	var reading sync.WaitGroup
	defer reading.Wait()
	query := &api.Query{}
	for f.over.Err() == nil {
		list, meta, err := f.client.Allocations(f.over, f.jobID, api.AllocationFilter{}, query)
		switch {
		case err == nil:
			f.read(ctx, &reading, list.Allocations)
			query.Index, query.Wait = meta.Index, logPoll
		case f.over.Err() != nil:
		case structs.CodeOf(err) == structs.CodeUnavailable:
			pause(f.over, logRetry)
		default:
			f.env.reportError(err)
			return
		}
	}
	if list, _, err := f.client.Allocations(ctx, f.jobID, api.AllocationFilter{}, nil); err == nil {
		f.read(ctx, &reading, list.Allocations)
	}
}

// read opens the logs that are not open yet, and closes those of nodes that
// were lost: nobody answers there.
func (f *logFollower) read(ctx context.Context, reading *sync.WaitGroup, allocations []structs.Allocation) {
	for _, alloc := range allocations {
		if !f.wanted(&alloc) {
			continue
		}
		log := f.open[alloc.ID]
		if log == nil {
			log = &openLog{lost: alloc.Status == structs.AllocLost}
			f.open[alloc.ID] = log
			reader, stop := context.WithCancel(ctx)
			log.stop = stop
			follow := !log.lost
			for _, name := range f.streams() {
				reading.Go(func() { f.copy(reader, &alloc, name, follow) })
			}
		}
		if alloc.Status == structs.AllocLost && !log.lost {
			log.lost = true
			log.stop()
			f.unreadable(&alloc)
		}
	}
}

// once prints what is there now, rank after rank.
func (f *logFollower) once(ctx context.Context) error {
	list, _, err := f.client.Allocations(ctx, f.jobID, api.AllocationFilter{}, nil)
	if err != nil {
		return err
	}
	whole := true
	for i := range list.Allocations {
		if !f.wanted(&list.Allocations[i]) {
			continue
		}
		for _, name := range f.streams() {
			whole = f.copy(ctx, &list.Allocations[i], name, false) && whole
		}
	}
	if !whole {
		return &exitError{code: ExitError}
	}
	return nil
}

func (f *logFollower) streams() []string {
	if f.hooks {
		return []string{structs.StreamHooks}
	}
	if f.errOnly {
		return []string{"stderr"}
	}
	return []string{"stdout", "stderr"}
}

// wanted reports whether the log of an allocation was asked for and exists:
// what never ran printed nothing.
func (f *logFollower) wanted(alloc *structs.Allocation) bool {
	ran := alloc.StartedAt != 0 || alloc.Status == structs.AllocRunning
	return ran && (f.rank < 0 || alloc.Rank == f.rank) && (f.subjob < 0 || alloc.Subjob == f.subjob) &&
		alloc.Attempt >= f.first && (f.last == 0 || alloc.Attempt <= f.last)
}

// copy prints one stream of one allocation; false when it could not be read
// to its end. With follow it stays for what is still to come, and goes on
// where it was when the stream breaks off.
func (f *logFollower) copy(ctx context.Context, alloc *structs.Allocation, name string, follow bool) bool {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return false
	}
	printer := f.printer(alloc, name)
	defer printer.flush()
	options := api.LogOptions{Stream: name, Follow: follow, Tail: f.tail, Times: f.times}
	var times *logTimes
	if f.times {
		times = new(logTimes)
	}
	for {
		n, err := f.copyFrom(ctx, alloc, options, times, printer)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		code := structs.CodeOf(err)
		again := follow && code != structs.CodeNotFound && code != structs.CodeForbidden && code != structs.CodeUnauthorized
		if !again {
			f.unreadable(alloc)
			f.env.reportError(err)
			return false
		}
		if n > 0 && options.Tail > 0 {
			f.note(f.env.text("cli.logs.again", "rank", alloc.Rank)) // where the tail began is not known
		} else {
			options.Offset += n
			if times != nil {
				times.again()
			}
		}
		if !pause(ctx, logRetry) {
			return false
		}
	}
}

func (f *logFollower) copyFrom(ctx context.Context, alloc *structs.Allocation, options api.LogOptions, times *logTimes, printer *logPrinter) (int64, error) {
	body, err := f.client.Logs(ctx, alloc.ID, options)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	buffer := make([]byte, logBuffer)
	var read int64
	for {
		n, err := body.Read(buffer)
		data, own := buffer[:n], int64(n)
		if times != nil {
			data, own = times.read(data)
		}
		if read += own; len(data) > 0 {
			printer.print(data)
		}
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return read, fmt.Errorf("read log: %w", err)
		}
	}
}

// unreadable reports that the rest of a log cannot be read.
func (f *logFollower) unreadable(alloc *structs.Allocation) {
	f.note(f.env.text("cli.logs.unreadable", "rank", alloc.Rank, "node", safe(alloc.NodeName)))
}

func (f *logFollower) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintln(f.env.Stderr, f.env.Stderr.paint(colourYellow, text))
}

// printer makes the printer of one stream.
func (f *logFollower) printer(alloc *structs.Allocation, name string) *logPrinter {
	p := &logPrinter{mu: &f.mu, on: f.env.Stdout}
	if name == "stderr" {
		p.on = f.env.Stderr
	}
	if f.prefixed {
		p.prefix = fmt.Sprintf("%d| ", alloc.Rank)
		if f.batch {
			p.prefix = fmt.Sprintf("s%d/%d| ", alloc.Subjob, alloc.Rank)
		}
		p.prefix = p.on.paint(rankColour(alloc.Rank+alloc.Subjob), p.prefix)
	}
	return p
}
