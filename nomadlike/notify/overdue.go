package notify

import (
	"container/heap"
	"math"

	"nomadlike/nomadlike/structs"
)

// Wait is something that only time brings about: a job that waits long, or one whose time
// limit comes. There is one of each kind for a job at most.
type Wait struct {
	Kind  string // structs.NotifyWaiting or NotifyExpiring
	JobID string
	Since structs.UnixNano // since when the job waits; or when its time limit passes
	Due   structs.UnixNano // when it is told
}

// always is later than anything that a person chose.
const always = structs.UnixNano(math.MaxInt64)

// WaitFor is what is to be told of a job later, nil for nothing: at the time that its
// owner chose. Pure.
func WaitFor(view View, kind, jobID string) *Wait {
	job := view.Job(jobID)
	if job == nil {
		return nil
	}
	settings := view.Settings(job.User, job.Project)
	if settings == nil || len(channelsOf(settings, job, kind, always)) == 0 {
		return nil
	}
	wait := &Wait{Kind: kind, JobID: jobID}
	longer, before := Spans(settings)
	switch kind {
	case structs.NotifyWaiting:
		if wait.Since = view.QueuedSince(jobID); wait.Since == 0 {
			return nil
		}
		wait.Due = wait.Since.Add(longer.Std())
	default:
		if wait.Since = view.LimitAt(jobID); wait.Since == 0 || job.TimeLimit <= before {
			return nil // as soon as it runs would be no news
		}
		wait.Due = wait.Since.Add(-before.Std())
	}
	return wait
}

// Overdue makes the messages of waits that are due. Those of which the state says another
// time by now are returned, to be waited for again. What the mark says was decided, and
// what was due before its owner chose it, is not told. Pure.
func Overdue(view View, mark structs.NotifyMark, due []Wait, now structs.UnixNano) (step structs.NotifyStep, again []Wait) {
	d := newDecision(view, now)
	for _, wait := range due {
		current := WaitFor(view, wait.Kind, wait.JobID)
		switch {
		case current == nil:
			continue
		case current.Due > now || len(d.made) >= structs.NotifyMadeMax:
			again = append(again, *current)
			continue
		case current.Due <= mark.Time:
			continue
		}
		job := view.Job(wait.JobID)
		settings := view.Settings(job.User, job.Project)
		channels := channelsOf(settings, job, wait.Kind, current.Due)
		if len(channels) == 0 {
			continue
		}
		d.tell(happening{settings, channels, structs.Notification{
			ID:   idOf(job.User, wait.Kind+"\x00"+job.ID, 0, 0, current.Since),
			User: job.User, Kind: wait.Kind, Time: current.Due, Project: job.Project, JobID: job.ID, Job: job.Name,
			Event: "notify.what." + wait.Kind, Params: map[string]string{"job": job.Name, "span": span(current, now)},
		}})
	}
	// The place in the events stays as the mark has it.
	step = structs.NotifyStep{Before: mark.Step, Index: max(mark.Index, 1), Place: mark.Place, Time: now, Made: d.messages()}
	if len(again) > 0 && len(d.made) >= structs.NotifyMadeMax {
		step.Time = mark.Time // some of them are due already
	}
	return step, again
}

// span says for how long a job waits, or how long it has.
func span(wait *Wait, now structs.UnixNano) string {
	if wait.Kind == structs.NotifyWaiting {
		return structs.FormatDuration(structs.Duration(now.Sub(wait.Since).Truncate(1e9)))
	}
	return structs.FormatDuration(structs.Duration(wait.Since.Sub(now).Truncate(1e9)))
}

// Waits holds what is to be told later, the soonest first. The zero value holds nothing.
// Use it from one goroutine.
type Waits struct {
	heap  waitHeap
	known map[[2]string]structs.UnixNano // when each is told; what the heap says otherwise is of before
}

// Add holds a wait, in the place of the one of its kind and job.
func (w *Waits) Add(wait *Wait) {
	if wait == nil {
		return
	}
	if w.known == nil {
		w.known = make(map[[2]string]structs.UnixNano)
	}
	key := [2]string{wait.Kind, wait.JobID}
	if due, there := w.known[key]; there && due == wait.Due {
		return
	}
	w.known[key] = wait.Due
	heap.Push(&w.heap, *wait)
}

// Due takes out what is due at now.
func (w *Waits) Due(now structs.UnixNano) (due []Wait) {
	for len(w.heap) > 0 && w.heap[0].Due <= now {
		wait := heap.Pop(&w.heap).(Wait)
		key := [2]string{wait.Kind, wait.JobID}
		if at, there := w.known[key]; there && at == wait.Due {
			delete(w.known, key)
			due = append(due, wait)
		}
	}
	return due
}

// Len is how many are held.
func (w *Waits) Len() int { return len(w.known) }

type waitHeap []Wait

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].Due < h[j].Due }
func (h waitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *waitHeap) Push(x any)        { *h = append(*h, x.(Wait)) }
func (h *waitHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
