package load

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// Tally is what somebody's jobs used from a time on until now, counted in hours of
// cards and of cores, by day and by job.
type Tally struct {
	Days []TallyDay
	Jobs []TallyJob // most cards first
}

// TallyDay is one day of a Tally.
type TallyDay struct {
	Start structs.UnixNano
	Cards map[string]float64 // card-hours by structs.DeviceKey; "" of jobs that are forgotten, whose kind nobody knows
	Cores float64            // core-hours; those of forgotten jobs are not known
}

// TallyJob is one job of a Tally.
type TallyJob struct {
	JobID, Name, Project, User string
	Cards, Cores               float64
	Forgotten                  bool // only its past runs are kept
}

// TallyView is what of the replicated state is tallied.
type TallyView interface {
	View
	// JobOf returns a job that is kept, nil for one that is not.
	JobOf(id string) *structs.Job
}

// Tallied counts what the jobs used that are wanted, by their project and user.
// Starts are the beginnings of the days, the first first; the last one ends now.
// What is held for people to look at counts as used. Pure.
func Tallied(view TallyView, starts []structs.UnixNano, now structs.UnixNano, wanted func(project, user string) bool) *Tally {
	w := &tallying{starts: starts, now: now, jobs: make(map[string]*TallyJob), out: &Tally{}}
	for _, start := range starts {
		w.out.Days = append(w.out.Days, TallyDay{Start: start, Cards: make(map[string]float64)})
	}
	h := historyOf(view, starts[0])
	kept := make(map[string]bool) // jobs of which allocations are there
	for alloc := range view.Allocs() {
		kept[alloc.JobID] = true
		known, seen := w.jobs[alloc.JobID]
		if !seen {
			if job := view.JobOf(alloc.JobID); job != nil && wanted(job.Project, job.User) {
				known = &TallyJob{JobID: job.ID, Name: job.Name, Project: job.Project, User: job.User}
			}
			w.jobs[alloc.JobID] = known // nil: not wanted
		}
		if known == nil {
			continue
		}
		for _, span := range h.spansOf(alloc, starts[0], now, nil) {
			w.add(known, span.From, span.To, alloc.QuotaUsage)
		}
	}
	runs := view.PastRuns(0)
	for i := len(runs) - 1; i >= 0 && runs[i].EndedAt > starts[0]; i-- {
		run := runs[i]
		if kept[run.JobID] || !wanted(run.Project, run.User) {
			continue
		}
		known := w.jobs[run.JobID]
		if known == nil {
			known = &TallyJob{JobID: run.JobID, Name: run.Name, Project: run.Project, User: run.User, Forgotten: true}
			w.jobs[run.JobID] = known
		}
		w.add(known, run.EndedAt.Add(-run.Runtime.Std()), run.EndedAt, structs.QuotaUsage{"": int64(run.Devices)})
	}
	for _, job := range w.jobs {
		if job != nil && job.Cards+job.Cores > 0 {
			w.out.Jobs = append(w.out.Jobs, *job)
		}
	}
	slices.SortFunc(w.out.Jobs, func(a, b TallyJob) int {
		return cmp.Or(cmp.Compare(b.Cards, a.Cards), cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.Project, b.Project), structs.CompareNames(a.Name, b.Name), cmp.Compare(a.JobID, b.JobID))
	})
	return w.out
}

// tallying is the work of one Tallied.
type tallying struct {
	starts []structs.UnixNano
	now    structs.UnixNano
	jobs   map[string]*TallyJob
	out    *Tally
}

// add counts what was held from a time to another.
func (w *tallying) add(job *TallyJob, from, to structs.UnixNano, held structs.QuotaUsage) {
	for i := range w.out.Days {
		day, end := &w.out.Days[i], w.now
		if i+1 < len(w.starts) {
			end = w.starts[i+1]
		}
		hours := float64(min(to, end)-max(from, day.Start)) / float64(time.Hour)
		if hours <= 0 {
			continue
		}
		for key, count := range held {
			if key == structs.QuotaCPU {
				cores := hours * float64(count) / 1000
				day.Cores += cores
				job.Cores += cores
				continue
			}
			if count > 0 {
				day.Cards[key] += hours * float64(count)
				job.Cards += hours * float64(count)
			}
		}
	}
}

// CardKind splits a key of TallyDay.Cards into the kind of card and its model.
func CardKind(key string) (kind, model string) {
	vendor, rest, _ := strings.Cut(key, "/")
	device, model, _ := strings.Cut(rest, "/")
	if device == "" {
		return vendor, ""
	}
	return vendor + "/" + device, model
}
