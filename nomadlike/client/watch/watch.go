package watch

import (
	"cmp"
	"context"
	"log/slog"
	"path"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/checkpoint"
	"nomadlike/nomadlike/client/devices"
	"nomadlike/nomadlike/client/environment"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/structs"
)

// Rhythms of the watch over a running task.
const (
	inboxEvery = 200 * time.Millisecond // between looks into the inbox
	dirEvery   = time.Second            // between looks at the watched directory
	lastLook   = 2 * time.Second        // patience with a watched directory when the task has ended
)

// Watch looks after the tasks that run. It finds out, and says; it stops nothing.
// Any goroutine may use it.
type Watch struct {
	Config

	mu struct {
		sync.Mutex
		watchers map[string]*watcher // by allocation
	}
}

// Config is what the watch over running tasks needs.
type Config struct {
	Layout      layout.Layout
	Places      *Places
	Inbox       *loop.Inbox
	Notes       WatchNotes
	Devices     Cards
	Usage       TaskMeter
	Environment *environment.Environment
	Fitness     FitnessTest
	Every       time.Duration // between looks of the patrol; 0: a minute
	Boottime    func() time.Duration
	Now         func() time.Time
	Log         *slog.Logger
}

// WatchNotes tells the servers what is found.
type WatchNotes interface {
	Next() uint64
	Send(structs.AllocNote)
}

// Cards are the devices of the node, as watching needs them.
type Cards interface {
	Measured() map[string]devices.Measurement
}

// TaskMeter measures the tasks of the node.
type TaskMeter interface {
	Current(ctx context.Context) (*structs.NodeUsage, error)
}

// FitnessTest looks whether the node is fit for an allocation.
type FitnessTest interface {
	Fitness(a *structs.Assignment) (checks []string, found *machine.Unfit)
}

// New makes a watch over no task.
func New(config Config) *Watch {
	config.Every = cmp.Or(config.Every, patrolEvery)
	w := &Watch{Config: config}
	w.mu.watchers = make(map[string]*watcher)
	return w
}

// watcher looks after one running task: it finds the checkpoints that the task
// makes known. One goroutine of its own runs it; what the servers have is told
// to it by the loop.
type watcher struct {
	*Watch
	id         string
	attempt    uint64
	task       *loop.Task
	told       *environment.Told // of its environment before the start; nil when nobody looked
	inbox      *checkpoint.Inbox
	dir        checkpoint.Watch
	dirAt      time.Time // of the last look
	watchesLog bool      // its log is watched, if the job wants that

	sent struct {
		sync.Mutex
		names map[uint64]string // of messages that are on their way to the servers, by Seq
	}
}

// Begin begins the watch of a task that runs. The function that it returns ends it,
// after a last look, and waits for that; it may be called again. well says that the
// task ended by itself and without an error. The allocation's last report must
// follow it: then the checkpoint is known before the next attempt is placed. fresh
// says that the task has just been started, told what was told of its environment
// before that.
func (w *Watch) Begin(work context.Context, t *loop.Task, told *environment.Told, fresh bool) (end func(well bool)) {
	one := &watcher{Watch: w, id: t.ID, attempt: t.Attempt, task: t, told: told, inbox: checkpoint.NewInbox(w.Layout.Task(t.ID))}
	one.sent.names = make(map[uint64]string)
	w.mu.Lock()
	w.mu.watchers[t.ID] = one
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(work)
	var running sync.WaitGroup
	running.Go(func() { one.run(ctx, fresh) })
	var once sync.Once
	return func(well bool) {
		once.Do(func() {
			cancel()
			running.Wait()
			if work.Err() == nil {
				one.finish(well)
			}
		})
	}
}

// Delivered takes the servers' word that they have a note.
func (w *Watch) Delivered(id string, seq uint64) {
	w.mu.Lock()
	one := w.mu.watchers[id]
	w.mu.Unlock()
	if one != nil {
		one.delivered(seq)
	}
}

// Forget ends the memory of an allocation.
func (w *Watch) Forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.watchers, id)
}

func (w *watcher) run(ctx context.Context, fresh bool) {
	var watching sync.WaitGroup
	defer watching.Wait()
	tick := time.NewTicker(inboxEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.takeMessages()
			if a := w.task.Assigned.Load(); a != nil && !w.watchesLog {
				w.watchesLog = true
				if a.Job != nil && a.Job.Checkpoint != nil && a.Job.Checkpoint.Precheck {
					watching.Go(func() { w.patrol(ctx) })
				}
				if p := w.progressOf(a.Job); p != nil {
					watching.Go(func() { p.run(ctx, fresh) })
				}
				if len(a.Alloc.Devices) > 0 {
					watching.Go(func() { w.watchIdle(ctx) })
				}
			}
			if now.Sub(w.dirAt) >= dirEvery {
				w.dirAt = now
				w.lookAtDir(checkpoint.Running)
			}
		}
	}
}

// finish takes the last look at what a task has left.
func (w *watcher) finish(well bool) {
	w.takeMessages()
	if !well {
		w.advise()
	}
	end := checkpoint.EndedBadly
	if well {
		end = checkpoint.EndedWell
	}
	looked := make(chan struct{})
	go func() { // ends with the file system's answer
		defer close(looked)
		w.lookAtDir(end)
	}()
	patience := time.NewTimer(lastLook)
	defer patience.Stop()
	select {
	case <-looked:
	case <-patience.C:
		w.Log.Warn("checkpoint directory does not answer", logkey.AllocID, w.id)
	}
}

// takeMessages tells the servers what the task has put into its inbox.
func (w *watcher) takeMessages() {
	found, err := w.inbox.Take()
	if err != nil {
		w.Log.Debug("checkpoint inbox cannot be read", logkey.AllocID, w.id, logkey.Error, err)
		return
	}
	for _, saved := range found {
		seq := w.Notes.Next()
		w.sent.Lock()
		w.sent.names[seq] = saved.Name
		w.sent.Unlock()
		w.tell(seq, structs.AllocNote{Checkpoint: &saved.Checkpoint})
	}
}

// lookAtDir tells the servers of the newest checkpoint in the watched directory.
func (w *watcher) lookAtDir(end checkpoint.End) {
	a := w.task.Assigned.Load()
	if a == nil || a.Job == nil || a.Job.Checkpoint == nil || a.Job.Checkpoint.Dir == "" || a.Alloc.Rank != 0 {
		return
	}
	policy := a.Job.Checkpoint
	place, ok := w.Places.PlaceOf(a, policy.Dir)
	if !ok {
		return
	}
	entries, err := checkpoint.Look(place)
	if err != nil {
		w.Log.Debug("checkpoint directory cannot be read", logkey.AllocID, w.id, logkey.Path, policy.Dir, logkey.Error, err)
		return
	}
	entry, found := w.dir.Step(entries, policy.Pattern, w.Now(), end)
	if !found {
		return
	}
	w.tell(w.Notes.Next(), structs.AllocNote{Checkpoint: &structs.SavedCheckpoint{
		Path: path.Join(policy.Dir, entry.Name), Step: checkpoint.StepOf(entry.Name), SavedAt: structs.At(entry.Modified),
	}})
}

func (w *watcher) tell(seq uint64, note structs.AllocNote) {
	note.AllocID, note.Attempt, note.Seq = w.id, w.attempt, seq
	w.Notes.Send(note)
}

// delivered takes the servers' word that they have a note.
func (w *watcher) delivered(seq uint64) {
	w.sent.Lock()
	name, ok := w.sent.names[seq]
	delete(w.sent.names, seq)
	w.sent.Unlock()
	if ok {
		w.inbox.Delivered(name)
	}
}
