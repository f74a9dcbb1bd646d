package state

import (
	"sort"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// JournalMax bounds the notes of what changed, so that a reader that looks at
// least once in so many changes never has to read everything again.
const JournalMax = 1 << 16

// touchKind is the kind of a thing that planning cares about.
type touchKind uint8

const (
	touchNode touchKind = iota
	touchSubjob
	touchPool
	touchProject
)

// touch notes that a thing changed.
type touch struct {
	kind   touchKind
	subjob int32
	index  uint64 // of the log
	id     string // of the node or job, name of the pool or project
}

// touch notes a change in the journal. Its versions share an array as those
// of the ring of events do; it is not part of the stored state.
func (tx *txn) touch(kind touchKind, id string, subjob int) {
	note := touch{kind: kind, subjob: int32(subjob), index: tx.index(), id: id}
	journal := tx.meta.journal
	if n := len(journal); n > 0 && journal[n-1] == note {
		return
	}
	tx.meta.journal = append(journal, note)
}

// trimJournal keeps the journal at its size, by whole indexes.
func (tx *txn) trimJournal() {
	over := len(tx.meta.journal) - JournalMax
	if over <= 0 {
		return
	}
	last := tx.meta.journal[over-1].index
	keep := sort.Search(len(tx.meta.journal), func(i int) bool { return tx.meta.journal[i].index > last })
	tx.meta.journal, tx.meta.journalFrom = tx.meta.journal[keep:], last
}

// beginLineage notes that a state took the place of another. Whoever followed
// the one before must read everything again, whatever index it was at: after a
// restore the log goes on behind the highest index that it ever had, so an index
// of what was given up looks like one of what came back.
func beginLineage(tx *memdb.Txn, replaced *metaRow) {
	meta := *mustFirst[*metaRow](tx, tableMeta, indexID, metaKey())
	meta.journalFrom = max(meta.Index, replaced.Index+1)
	meta.lineage = replaced.lineage + 1
	mustInsert(tx, tableMeta, &meta)
}

// Lineage tells states of one history apart from those of another: it changes
// whenever a snapshot takes the place of this server's state. It is not the same
// on two servers.
func (s *Snapshot) Lineage() uint64 { return s.meta().lineage }

// Changes lists what changed for planning after the index since, each thing
// once; when that is not known any more, or since is 0, it lists everything
// that lives and says so with Full. It costs what it lists.
func (s *Snapshot) Changes(since uint64) structs.Changes {
	meta := s.meta()
	if since == 0 || since < meta.journalFrom || since > meta.Index {
		return s.everything()
	}
	var changes structs.Changes
	from := sort.Search(len(meta.journal), func(i int) bool { return meta.journal[i].index > since })
	seen := make(map[touch]struct{}, len(meta.journal)-from)
	for _, note := range meta.journal[from:] {
		note.index = 0
		if _, twice := seen[note]; twice {
			continue
		}
		seen[note] = struct{}{}
		switch note.kind {
		case touchNode:
			changes.Nodes = append(changes.Nodes, structs.NodeChange{ID: note.id, Node: s.Node(note.id), Usage: s.Usage(note.id)})
		case touchSubjob:
			changes.Subjobs = append(changes.Subjobs, s.subjobChange(note.id, int(note.subjob)))
		case touchPool:
			changes.Pools = append(changes.Pools, structs.PoolChange{Name: note.id, Pool: s.Pool(note.id)})
		case touchProject:
			changes.Projects = append(changes.Projects, s.projectChange(note.id))
		}
	}
	return changes
}

// subjobChange reports how a subjob stands now.
func (s *Snapshot) subjobChange(jobID string, subjob int) structs.SubjobChange {
	change := structs.SubjobChange{JobID: jobID, Index: subjob}
	row, ok := first[*subjobRow](s.db, tableSubjobs, indexID, subjobKey(jobID, subjob))
	if !ok {
		return change
	}
	change.Job, change.Subjob = row.job.Job, row.Subjob
	if change.Subjob.State.Active() {
		if change.Attempt = s.Attempt(jobID, subjob, change.Subjob.Attempt); change.Attempt != nil {
			change.Allocs = s.occupantsOf(change.Attempt)
		}
	}
	return change
}

// occupantsOf lists the allocations of an attempt that occupy nodes, by rank.
func (s *Snapshot) occupantsOf(attempt *structs.Attempt) []*structs.Allocation {
	allocs := make([]*structs.Allocation, 0, len(attempt.Allocs))
	for alloc := range s.Gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.OccupiesNode() {
			allocs = append(allocs, alloc)
		}
	}
	return allocs
}

func (s *Snapshot) projectChange(name string) structs.ProjectChange {
	return structs.ProjectChange{Name: name, Project: s.Project(name), Usage: s.ProjectUsage(name)}
}

// everything lists all that lives.
func (s *Snapshot) everything() structs.Changes {
	changes := structs.Changes{Full: true}
	for node, usage := range s.Nodes() {
		changes.Nodes = append(changes.Nodes, structs.NodeChange{ID: node.ID, Node: node, Usage: usage})
	}
	for job, subjob := range s.Queue() {
		changes.Subjobs = append(changes.Subjobs, structs.SubjobChange{JobID: job.ID, Index: subjob.Index, Job: job, Subjob: subjob})
	}
	for attempt := range s.LiveAttempts() {
		changes.Subjobs = append(changes.Subjobs, s.subjobChange(attempt.JobID, attempt.Subjob))
	}
	for pool := range s.Pools() {
		changes.Pools = append(changes.Pools, structs.PoolChange{Name: pool.Name, Pool: pool})
	}
	for project := range s.Projects() {
		changes.Projects = append(changes.Projects, s.projectChange(project.Name))
	}
	for usage := range s.ProjectUsages() {
		if s.Project(usage.Project) == nil {
			changes.Projects = append(changes.Projects, s.projectChange(usage.Project))
		}
	}
	return changes
}
