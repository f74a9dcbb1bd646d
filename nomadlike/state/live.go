package state

import (
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// liveCounts are the subjobs and the bytes of the jobs that have not ended, by
// user and by project: a user or a project is not to fill the queue of all, or
// the memory of the servers. They follow from the tables and are not part of the
// stored state.
type liveCounts struct {
	mu struct {
		sync.Mutex
		byUser, byProject map[string]live
		all               live
	}
}

// owner is whom a job counts for.
type owner struct{ user, project string }

// live is what is counted of jobs that have not ended.
type live struct {
	subjobs int
	bytes   int64
}

func (l live) plus(more live) live { return live{l.subjobs + more.subjobs, l.bytes + more.bytes} }

// jobBytes is what a job is counted with: the bytes of its specification, but for
// what may change while it lives.
func jobBytes(job *structs.Job) int64 {
	fixed := *job
	fixed.Priority, fixed.TimeLimit, fixed.Tags, fixed.Note = "", 0, nil, ""
	data, err := wire.Marshal(&fixed)
	if err != nil {
		return wire.MessageSizeMax // it came from a log entry, which is no larger
	}
	return int64(len(data))
}

// add takes over what a batch changed; set replaces everything.
func (l *liveCounts) add(changes map[owner]live, set bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set || l.mu.byUser == nil {
		l.mu.byUser, l.mu.byProject, l.mu.all = make(map[string]live), make(map[string]live), live{}
	}
	for of, change := range changes {
		addLive(l.mu.byUser, of.user, change)
		addLive(l.mu.byProject, of.project, change)
		l.mu.all = l.mu.all.plus(change)
	}
}

func addLive(counts map[string]live, of string, change live) {
	sum := counts[of].plus(change)
	if sum == (live{}) {
		delete(counts, of)
		return
	}
	counts[of] = sum
}

// count counts everything anew.
func (l *liveCounts) count(s *Snapshot) {
	changes := make(map[owner]live)
	for view := range s.Jobs() {
		if !view.Status.State.Terminal() {
			of := owner{view.Job.User, view.Job.Project}
			changes[of] = changes[of].plus(live{bytes: jobBytes(view.Job)})
		}
	}
	for row := range each[*subjobRow](s.db, tableSubjobs, indexID, nil) {
		if row.Subjob.State.Terminal() {
			continue
		}
		if view, ok := s.Job(row.Subjob.JobID); ok {
			of := owner{view.Job.User, view.Job.Project}
			changes[of] = changes[of].plus(live{subjobs: 1})
		}
	}
	l.add(changes, true)
}

// LiveOf returns how many subjobs of a user, and of a project, have not ended.
// It may be called from any goroutine, and follows the newest state.
func (s *Store) LiveOf(user, project string) (ofUser, ofProject int) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	return s.live.mu.byUser[user].subjobs, s.live.mu.byProject[project].subjobs
}

func (tx *txn) countLive(job *structs.Job, by live) {
	if tx.live == nil {
		tx.live = make(map[owner]live)
	}
	of := owner{job.User, job.Project}
	tx.live[of] = tx.live[of].plus(by)
}

// bytesProblem refuses a job with which the live jobs of its user, of its
// project, or all of them would be larger than most allows; nil: there is room.
func (tx *txn) bytesProblem(job *structs.Job, most int64) *structs.Error {
	if most <= 0 {
		return nil
	}
	size := jobBytes(job)
	tx.counted.mu.Lock()
	user, project, all := tx.counted.mu.byUser[job.User].bytes, tx.counted.mu.byProject[job.Project].bytes, tx.counted.mu.all.bytes
	tx.counted.mu.Unlock()
	for of, change := range tx.live { // sums: in any order
		if of.user == job.User {
			user += change.bytes
		}
		if of.project == job.Project {
			project += change.bytes
		}
		all += change.bytes
	}
	userMax, projectMax := structs.JobBytesOf(most)
	switch {
	case user+size > userMax:
		return structs.NewError(structs.CodeUnavailable, "state.user_bytes", "user", job.User, "size", structs.FormatSize(size), "held", structs.FormatSize(user), "max", structs.FormatSize(userMax))
	case project+size > projectMax:
		return structs.NewError(structs.CodeUnavailable, "state.project_bytes", "project", job.Project, "size", structs.FormatSize(size), "held", structs.FormatSize(project), "max", structs.FormatSize(projectMax))
	case all+size > most:
		return structs.NewError(structs.CodeUnavailable, "state.all_bytes", "size", structs.FormatSize(size), "held", structs.FormatSize(all), "max", structs.FormatSize(most))
	}
	return nil
}
