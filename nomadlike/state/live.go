package state

import (
	"sync"

	"nomadlike/nomadlike/structs"
)

// liveCounts are the subjobs that have not ended, by user and by project, for
// who admits: a user or a project is not to fill the queue of all. They follow
// from the tables and are not part of the stored state.
type liveCounts struct {
	mu struct {
		sync.Mutex
		byUser, byProject map[string]int
	}
}

// owner is whom a subjob counts for.
type owner struct{ user, project string }

// add takes over what a batch changed; set replaces everything.
func (l *liveCounts) add(changes map[owner]int, set bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set || l.mu.byUser == nil {
		l.mu.byUser, l.mu.byProject = make(map[string]int), make(map[string]int)
	}
	for of, count := range changes {
		if l.mu.byUser[of.user] += count; l.mu.byUser[of.user] <= 0 {
			delete(l.mu.byUser, of.user)
		}
		if l.mu.byProject[of.project] += count; l.mu.byProject[of.project] <= 0 {
			delete(l.mu.byProject, of.project)
		}
	}
}

// count counts everything anew.
func (l *liveCounts) count(s *Snapshot) {
	changes := make(map[owner]int)
	for row := range each[*subjobRow](s.db, tableSubjobs, indexID, nil) {
		if row.Subjob.State.Terminal() {
			continue
		}
		if view, ok := s.Job(row.Subjob.JobID); ok {
			changes[owner{view.Job.User, view.Job.Project}]++
		}
	}
	l.add(changes, true)
}

// LiveOf gives how many subjobs of a user, and of a project, have not ended.
// It may be called from any goroutine, and follows the newest state.
func (s *Store) LiveOf(user, project string) (ofUser, ofProject int) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	return s.live.mu.byUser[user], s.live.mu.byProject[project]
}

func (tx *txn) countLive(job *structs.Job, by int) {
	if tx.live == nil {
		tx.live = make(map[owner]int)
	}
	tx.live[owner{job.User, job.Project}] += by
}
