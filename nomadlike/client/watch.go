package client

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/checkpoint"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
)

// Rhythms of the watch over a running task.
const (
	inboxEvery = 200 * time.Millisecond // between looks into the inbox
	dirEvery   = time.Second            // between looks at the watched directory
	lastLook   = 2 * time.Second        // patience with a watched directory when the task has ended
)

// watcher looks after one running task: it finds the checkpoints that the task
// makes known. One goroutine of its own runs it; what the servers have is told
// to it by the loop.
type watcher struct {
	client  *Client
	id      string
	attempt uint64
	runner  *runner
	inbox   *checkpoint.Inbox
	dir     checkpoint.Watch
	dirAt   time.Time // of the last look
	paced   bool      // its log is watched, if the job wants that

	mu struct {
		sync.Mutex
		names map[uint64]string // of messages that are on their way to the servers, by Seq
	}
}

// watchTask begins the watch of a task that runs. The function that it gives
// ends it, after a last look, and waits for that; it may be called again. well
// says that the task ended by itself and without an error. The allocation's
// last report must follow it: then the checkpoint is known before the next
// attempt is placed. fresh says that the task has just been started.
func (c *Client) watchTask(work context.Context, r *runner, fresh bool) (end func(well bool)) {
	w := &watcher{client: c, id: r.id, attempt: r.attempt, runner: r, inbox: checkpoint.NewInbox(c.files.task(r.id))}
	w.mu.names = make(map[uint64]string)
	c.post(func() { r.watcher = w })
	ctx, cancel := context.WithCancel(work)
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx, fresh) })
	var once sync.Once
	return func(well bool) {
		once.Do(func() {
			cancel()
			running.Wait()
			if work.Err() == nil {
				w.finish(well)
			}
		})
	}
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
			if a := w.runner.assigned.Load(); a != nil && !w.paced {
				w.paced = true
				if a.Job != nil && a.Job.Checkpoint != nil && a.Job.Checkpoint.Precheck {
					watching.Go(func() { w.patrol(ctx) })
				}
				if p := w.paceOf(a.Job); p != nil {
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
		w.client.log.Warn("checkpoint directory does not answer", logkey.AllocID, w.id)
	}
}

// takeMessages tells the servers what the task has put into its inbox.
func (w *watcher) takeMessages() {
	found, err := w.inbox.Take()
	if err != nil {
		w.client.log.Debug("checkpoint inbox cannot be read", logkey.AllocID, w.id, logkey.Error, err)
		return
	}
	for _, saved := range found {
		seq := w.client.nextNote()
		w.mu.Lock()
		w.mu.names[seq] = saved.Name
		w.mu.Unlock()
		w.tell(seq, structs.AllocNote{Checkpoint: &saved.Checkpoint})
	}
}

// lookAtDir tells the servers of the newest checkpoint in the watched directory.
func (w *watcher) lookAtDir(end checkpoint.End) {
	a := w.runner.assigned.Load()
	if a == nil || a.Job == nil || a.Job.Checkpoint == nil || a.Job.Checkpoint.Dir == "" || a.Alloc.Rank != 0 {
		return
	}
	policy := a.Job.Checkpoint
	place, ok := w.client.placeOf(a, policy.Dir)
	if !ok {
		return
	}
	entries, err := checkpoint.Look(place)
	if err != nil {
		w.client.log.Debug("checkpoint directory cannot be read", logkey.AllocID, w.id, logkey.Path, policy.Dir, logkey.Error, err)
		return
	}
	entry, found := w.dir.Step(entries, policy.Pattern, w.client.config.Now(), end)
	if !found {
		return
	}
	w.tell(w.client.nextNote(), structs.AllocNote{Checkpoint: &structs.SavedCheckpoint{
		Path: path.Join(policy.Dir, entry.Name), Step: checkpoint.StepOf(entry.Name), SavedAt: structs.At(entry.Modified),
	}})
}

func (w *watcher) tell(seq uint64, note structs.AllocNote) {
	note.AllocID, note.Attempt, note.Seq, note.At = w.id, w.attempt, seq, w.client.now()
	w.client.session.Note(note)
}

// delivered takes the servers' word that they have a note.
func (w *watcher) delivered(seq uint64) {
	w.mu.Lock()
	name, ok := w.mu.names[seq]
	delete(w.mu.names, seq)
	w.mu.Unlock()
	if ok {
		w.inbox.Delivered(name)
	}
}

// noteDelivered hands on that the servers have a note. It is called by the loop.
func (c *Client) noteDelivered(id string, seq uint64) {
	r := c.loop.runners[id]
	if r == nil || r.watcher == nil {
		return
	}
	w := r.watcher
	c.work.Go(func() { w.delivered(seq) })
}

// nextNote numbers a note. Numbers rise also over a restart of the agent: they
// begin with the time since the boot, in nanoseconds, and no task outlives that.
func (c *Client) nextNote() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.note = max(c.mu.note+1, uint64(c.config.Boottime()))
	return c.mu.note
}

// placeOf gives where a directory of a task lies on the node. Containers show
// the node's directories at other paths.
func (c *Client) placeOf(a *structs.Assignment, dir string) (checkpoint.Place, bool) {
	var best string
	var found checkpoint.Place
	consider := func(target, root, at string) {
		below, ok := strings.CutPrefix(dir, strings.TrimSuffix(target, "/"))
		if start, err := filepath.Rel(root, at); err == nil && ok && within(dir, target) && len(target) > len(best) {
			best, found = target, checkpoint.Place{Root: root, Dir: path.Join(start, below)}
		}
	}
	for _, m := range a.Job.Mounts {
		if m.Source != "" {
			consider(m.Target, m.Source, m.Source)
		}
	}
	if len(a.Job.StorageNeeds()) > 0 {
		places, err := workspace.Plan(c.config.Storages, a.Job, a.Alloc.Subjob)
		if err != nil {
			return checkpoint.Place{}, false
		}
		for _, place := range places {
			if place.Remote {
				continue // nobody writes there
			}
			consider(place.TaskPath, place.Root, place.Path)
		}
	}
	if best != "" {
		return found, true
	}
	if a.Job.Task.Driver == structs.DriverDocker {
		return checkpoint.Place{}, false // it lies inside the container alone
	}
	by, err := c.ownerOfRunning(a)
	if err != nil {
		return checkpoint.Place{}, false
	}
	return checkpoint.Place{Dir: dir, UID: by.uid, GID: by.gid}, true
}

// within reports whether a clean path is dir or below it.
func within(name, dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return name == dir || strings.HasPrefix(name, dir+"/")
}
