package state

import (
	"strconv"

	"nomadlike/nomadlike/structs"
)

// Topics and severities of events.
const (
	topicJob      = "job"
	topicAttempt  = "attempt"
	topicAlloc    = "alloc"
	topicNode     = "node"
	topicToken    = "token"
	topicCluster  = "cluster"
	topicPool     = "pool"
	topicProject  = "project"
	topicUser     = "user"
	topicSecret   = "secret"
	topicData     = "data"
	topicTemplate = "template"

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
	event.Params = paired(pairs)
	tx.meta.ring = append(tx.meta.ring, &event)
	tx.dropOldEvents()
	tx.share(&event)
	if event.JobID != "" {
		tx.recordForJob(&event)
	}
}

// paired makes parameters of names and values, nil of none.
func paired(pairs []string) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	params := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		params[pairs[i]] = pairs[i+1]
	}
	return params
}

// dropOldEvents keeps the ring at its size. Whole indexes go at once, so that
// a reader that resumes after an index never finds half of the next.
func (tx *txn) dropOldEvents() {
	for len(tx.meta.ring) > EventsMax && tx.meta.ring[0].Index != tx.index() {
		oldest := tx.meta.ring[0].Index
		for tx.meta.ring[0].Index == oldest {
			if first := tx.meta.ring[0]; tx.shares != nil && byNode(first) {
				tx.shares[first.NodeID]--
			}
			tx.meta.ring = tx.meta.ring[1:]
		}
		tx.meta.EventsDropped = oldest
	}
}

// byNode reports whether an event is one of those that a node can bring about
// at will: what it says of itself and of what it runs.
func byNode(event *structs.Event) bool {
	if event.NodeID == "" {
		return false
	}
	switch event.ID {
	case eventCheckpoint, "event.alloc.heard", "event.alloc.slow", "event.alloc.slow_stays", "event.alloc.evicted":
		return true
	}
	return event.Topic == topicNode || structs.ToldEvent(event.ID)
}

// share keeps what one node tells to its part of the ring: a node that says
// much loses its own oldest events, and nobody else's. Histories of jobs have
// bounds of their own.
func (tx *txn) share(event *structs.Event) {
	if !byNode(event) {
		return
	}
	if tx.shares == nil {
		tx.shares = make(map[string]int)
		for _, kept := range tx.meta.ring {
			if byNode(kept) {
				tx.shares[kept.NodeID]++
			}
		}
	} else {
		tx.shares[event.NodeID]++
	}
	over := tx.shares[event.NodeID] - NodeEventsShare
	if over <= nodeEventsSlack {
		return
	}
	tx.shares[event.NodeID] -= over
	ring := make([]*structs.Event, 0, len(tx.meta.ring)) // older states see the old one
	for _, kept := range tx.meta.ring {
		if over > 0 && byNode(kept) && kept.NodeID == event.NodeID {
			over--
			continue
		}
		ring = append(ring, kept)
	}
	tx.meta.ring = ring
}

// eventSubmitted begins the history of every job.
const eventSubmitted = "event.job.submitted"

// eventCheckpoint reports a checkpoint that a task has made known.
const eventCheckpoint = "event.alloc.checkpoint"

// submittedEvent reports the submission of a job, in words that the job
// itself knows: histories of a hundred thousand waiting jobs need not keep it.
func submittedEvent(job *structs.Job) (structs.Event, []string) {
	event := jobEvent(eventSubmitted, job, nil)
	event.By = job.User
	return event, []string{"job", job.Name, "subjobs", decimal(job.SubjobCount()), "nodes", decimal(job.Nodes)}
}

// recordForJob adds an event to the history of its job.
func (tx *txn) recordForJob(event *structs.Event) {
	if event.ID == eventSubmitted {
		return
	}
	if _, ok := tx.job(event.JobID); !ok {
		return // the event says that the job was deleted
	}
	changed := *tx.jobStatus(event.JobID)
	if len(changed.History) >= JobEventsMax {
		changed.History = changed.History[1:]
		changed.Dropped++
	}
	changed.History = append(changed.History, event)
	tx.putJobStatus(&changed)
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
	return structs.Event{
		Topic: topicAlloc, ID: id, Project: alloc.Project, JobID: alloc.JobID,
		Subjob: alloc.Subjob, Attempt: alloc.Attempt, AllocID: alloc.ID, NodeID: alloc.NodeID,
	}
}

// nodeEvent is an event about a node.
func nodeEvent(id string, node *structs.Node) structs.Event {
	return structs.Event{Topic: topicNode, ID: id, NodeID: node.ID}
}

func decimal[N ~int | ~uint64](n N) string { return strconv.FormatInt(int64(n), 10) }
