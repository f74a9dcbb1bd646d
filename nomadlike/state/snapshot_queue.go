package state

import (
	"iter"

	"nomadlike/nomadlike/structs"
)

// Pool returns a pool's record, nil when it has none.
func (s *Snapshot) Pool(name string) *structs.Pool {
	pool, _ := first[*structs.Pool](s.db, tablePools, indexID, idKey(name))
	return pool
}

// WatchPool is the Watch twin of Pool.
func (s *Snapshot) WatchPool(name string) <-chan struct{} {
	return s.watchKey(tablePools, idKey(name))
}

// Pools iterates the records of pools by name. Nodes may be in pools that have
// none: structs.PoolDefault, and what their own configuration names.
func (s *Snapshot) Pools() iter.Seq[*structs.Pool] {
	return each[*structs.Pool](s.db, tablePools, indexID, nil)
}

// WatchPools is the Watch twin of Pools.
func (s *Snapshot) WatchPools() <-chan struct{} { return s.watchPrefix(tablePools, indexID, nil) }

// Project returns a project's record, nil when it has none.
func (s *Snapshot) Project(name string) *structs.Project {
	project, _ := first[*structs.Project](s.db, tableProjects, indexID, idKey(name))
	return project
}

// WatchProject is the Watch twin of Project.
func (s *Snapshot) WatchProject(name string) <-chan struct{} {
	return s.watchKey(tableProjects, idKey(name))
}

// Projects iterates the records of projects by name. Jobs may be in projects
// that have none.
func (s *Snapshot) Projects() iter.Seq[*structs.Project] {
	return each[*structs.Project](s.db, tableProjects, indexID, nil)
}

// ProjectsOf iterates the projects that list a user, by name.
func (s *Snapshot) ProjectsOf(user string) iter.Seq[*structs.Project] {
	if user == "" {
		return func(func(*structs.Project) bool) {}
	}
	return each[*structs.Project](s.db, tableProjects, indexMember, idKey(user))
}

// WatchProjects is the Watch twin of Projects.
func (s *Snapshot) WatchProjects() <-chan struct{} { return s.watchPrefix(tableProjects, indexID, nil) }

// User returns an account, nil when there is none.
func (s *Snapshot) User(name string) *structs.User {
	user, _ := first[*structs.User](s.db, tableUsers, indexID, idKey(name))
	return user
}

// WatchUser is the Watch twin of User.
func (s *Snapshot) WatchUser(name string) <-chan struct{} {
	return s.watchKey(tableUsers, idKey(name))
}

// Password returns what is known of an account's password, nil when it has none.
func (s *Snapshot) Password(user string) *structs.Password {
	password, _ := first[*structs.Password](s.db, tablePasswords, indexID, idKey(user))
	return password
}

// UserOf returns the account that is somebody to a provider, nil when none is.
func (s *Snapshot) UserOf(provider, subject string) *structs.User {
	user, _ := first[*structs.User](s.db, tableUsers, indexIdentity, nameKey(provider, subject))
	return user
}

// Users iterates the accounts by name.
func (s *Snapshot) Users() iter.Seq[*structs.User] {
	return each[*structs.User](s.db, tableUsers, indexID, nil)
}

// WatchUsers is the Watch twin of Users.
func (s *Snapshot) WatchUsers() <-chan struct{} { return s.watchPrefix(tableUsers, indexID, nil) }

// ProjectUsage is what a project holds and used, nil when it never held
// anything. What its running allocations use is not in the ledger yet: they
// are booked when they end.
func (s *Snapshot) ProjectUsage(name string) *structs.ProjectUsage {
	usage, _ := first[*structs.ProjectUsage](s.db, tableHoldings, indexID, idKey(name))
	if usage.Nothing() {
		return nil
	}
	return usage
}

// CodeSince is the place in the log before which no code of a project counts: one of the
// name was deleted there. 0: none ever was.
func (s *Snapshot) CodeSince(project string) uint64 {
	if usage, ok := first[*structs.ProjectUsage](s.db, tableHoldings, indexID, idKey(project)); ok {
		return usage.CodeSince
	}
	return 0
}

// WatchProjectUsage is the Watch twin of ProjectUsage.
func (s *Snapshot) WatchProjectUsage(name string) <-chan struct{} {
	return s.watchKey(tableHoldings, idKey(name))
}

// ProjectUsages iterates what projects hold, by project; those without a
// record are among them.
func (s *Snapshot) ProjectUsages() iter.Seq[*structs.ProjectUsage] {
	return func(yield func(*structs.ProjectUsage) bool) {
		for usage := range each[*structs.ProjectUsage](s.db, tableHoldings, indexID, nil) {
			if !usage.Nothing() && !yield(usage) {
				return
			}
		}
	}
}

// WatchProjectUsages is the Watch twin of ProjectUsages.
func (s *Snapshot) WatchProjectUsages() <-chan struct{} {
	return s.watchPrefix(tableHoldings, indexID, nil)
}

// DueAttempts lists up to limit attempts whose time limit has passed at now,
// longest overdue first. It costs no more than what it lists.
func (s *Snapshot) DueAttempts(now structs.UnixNano, limit int) []structs.AttemptKey {
	var due []structs.AttemptKey
	for row := range each[*attemptRow](s.db, tableAttempts, indexDue, nil) {
		if row.Due > now || len(due) == limit {
			break
		}
		due = append(due, structs.AttemptKey{JobID: row.Attempt.JobID, Subjob: row.Attempt.Subjob, Number: row.Attempt.Number})
	}
	return due
}

// limitLook bounds the subjobs at which LimitAt looks.
const limitLook = 64

// LimitAt is when the first subjob of a job that runs reaches its time limit; 0:
// none has one. Of a batch with very many subjobs it looks at the first.
func (s *Snapshot) LimitAt(jobID string) (soonest structs.UnixNano) {
	looked := 0
	for subjob := range s.Subjobs(jobID) {
		if looked++; looked > limitLook {
			break
		}
		row, ok := first[*attemptRow](s.db, tableAttempts, indexID, attemptKey(jobID, subjob.Index, subjob.Attempt))
		if ok && row.Attempt.State == structs.AttemptRunning && row.Due > 0 && (soonest == 0 || row.Due < soonest) {
			soonest = row.Due
		}
	}
	return soonest
}
