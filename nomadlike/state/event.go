package state

import (
	"strconv"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// Topics and severities of events.
const (
	topicJob     = "job"
	topicAttempt = "attempt"
	topicAlloc   = "alloc"
	topicNode    = "node"
	topicToken   = "token"
	topicCluster = "cluster"

	severityWarn  = "warn"
	severityError = "error"
)

// tell records that something happened: place, time and cause are the
// command's. Params come as pairs of name and value.
func (tx *txn) tell(event structs.Event, pairs ...string) {
	event.Index, event.Seq, event.Time = tx.index(), tx.seq, tx.now
	if event.By == "" {
		event.By = tx.by
	}
	tx.seq++
	if len(pairs) > 0 {
		event.Params = make(map[string]string, len(pairs)/2)
		for i := 0; i+1 < len(pairs); i += 2 {
			event.Params[pairs[i]] = pairs[i+1]
		}
	}
	mustInsert(tx.db, tableEvents, &event)
	tx.meta.Events++
	tx.dropOldEvents()
	if event.JobID != "" {
		tx.keepForJob(&event)
	}
}

// dropOldEvents keeps the ring at its size. Whole indexes go at once, so that
// a reader that resumes after an index never finds half of the next.
func (tx *txn) dropOldEvents() {
	for tx.meta.Events > EventsMax {
		oldest, ok := oldestRow[*structs.Event](tx.db, tableEvents, indexID)
		if !ok || oldest.Index == tx.index() {
			return
		}
		for _, event := range withPrefix[*structs.Event](tx.db, tableEvents, indexID, indexKey(oldest.Index)) {
			mustDelete(tx.db, tableEvents, event)
			tx.meta.Events--
		}
		tx.meta.EventsDropped = oldest.Index
	}
}

// keepForJob adds an event to the history of its job.
func (tx *txn) keepForJob(event *structs.Event) {
	row, ok := tx.job(event.JobID)
	if !ok {
		return
	}
	changed := *row
	if changed.Events >= JobEventsMax {
		oldest, ok := oldestRowWith[*structs.Event](tx.db, tableJobEvents, indexID, idKey(event.JobID))
		if ok {
			mustDelete(tx.db, tableJobEvents, oldest)
			changed.Events--
			changed.Dropped++
		}
	}
	mustInsert(tx.db, tableJobEvents, event)
	changed.Events++
	tx.putJob(&changed)
}

// oldestRow gives the first row of an index.
func oldestRow[T any](db *memdb.Txn, table, index string) (T, bool) {
	return oldestRowWith[T](db, table, index, nil)
}

// oldestRowWith gives the first row whose key begins with prefix.
func oldestRowWith[T any](db *memdb.Txn, table, index string, prefix []byte) (T, bool) {
	return first[T](db, table, index+"_prefix", prefix)
}

// jobEvent is an event about a job or one of its subjobs.
func jobEvent(id string, job *structs.Job, subjob *structs.Subjob) structs.Event {
	event := structs.Event{Topic: topicJob, ID: id, Project: job.Project, JobID: job.ID}
	if subjob != nil {
		event.Subjob, event.Attempt = subjob.Index, subjob.Attempt
	}
	return event
}

// allocEvent is an event about an allocation.
func allocEvent(id string, alloc *structs.Allocation) structs.Event {
	return structs.Event{Topic: topicAlloc, ID: id, Project: alloc.Project, JobID: alloc.JobID,
		Subjob: alloc.Subjob, Attempt: alloc.Attempt, AllocID: alloc.ID, NodeID: alloc.NodeID}
}

// nodeEvent is an event about a node.
func nodeEvent(id string, node *structs.Node) structs.Event {
	return structs.Event{Topic: topicNode, ID: id, NodeID: node.ID}
}

func decimal[N ~int | ~uint64](n N) string { return strconv.FormatInt(int64(n), 10) }
