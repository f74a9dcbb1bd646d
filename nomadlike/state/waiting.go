package state

import (
	"fmt"
	"iter"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// Waiting is how many subjobs wait of those that the same people may see: of one
// project, user and access. It follows from the queue and is no part of the stored
// state. Whoever counts what waits reads a few of these instead of every job.
type Waiting struct {
	Project, User, Access string
	Subjobs               int // above 0
}

// waiter is what is counted together.
type waiter struct{ project, user, access string }

func (w waiter) key() []byte {
	return append(nameKey(w.project, w.user), w.access...)
}

// waiter returns under what a row is counted, false when its subjob does not wait.
func (r *subjobRow) waiter() (waiter, bool) {
	if r == nil || r.Subjob.State != structs.JobQueued {
		return waiter{}, false
	}
	job := r.job.Job
	return waiter{job.Project, job.User, job.Access}, true
}

// countWaiting moves what is counted when a row takes the place of another, nil for
// none.
func (tx *txn) countWaiting(before, after *subjobRow) {
	was, waited := before.waiter()
	is, waits := after.waiter()
	if waited == waits && was == is {
		return
	}
	if tx.waiting == nil {
		tx.waiting = make(map[waiter]int)
	}
	if waited {
		tx.waiting[was]--
	}
	if waits {
		tx.waiting[is]++
	}
}

// addWaiting takes changes over into the table.
func addWaiting(db *memdb.Txn, changes map[waiter]int) {
	for of, change := range changes { // in any order: rows do not depend on each other
		row := Waiting{Project: of.project, User: of.user, Access: of.access}
		known, stored := first[*Waiting](db, tableWaiting, indexID, of.key())
		if stored {
			row = *known
		}
		row.Subjobs += change
		switch {
		case change == 0:
		case row.Subjobs > 0:
			mustInsert(db, tableWaiting, &row)
		case stored:
			mustDelete(db, tableWaiting, known)
		}
	}
}

// countAllWaiting counts the queue anew.
func countAllWaiting(db *memdb.Txn) error {
	if _, err := db.DeleteAll(tableWaiting, indexID+"_prefix", []byte(nil)); err != nil {
		return fmt.Errorf("clear state table %s: %w", tableWaiting, err)
	}
	addWaiting(db, waitingOf(db))
	return nil
}

func waitingOf(db *memdb.Txn) map[waiter]int {
	counts := make(map[waiter]int)
	for row := range each[*subjobRow](db, tableSubjobs, indexQueue, nil) {
		of, _ := row.waiter()
		counts[of]++
	}
	return counts
}

// Waiting iterates how many subjobs wait, by project, user and access.
func (s *Snapshot) Waiting() iter.Seq[*Waiting] {
	return each[*Waiting](s.db, tableWaiting, indexID, nil)
}
