package state

import (
	"fmt"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// txn is what a judge sees: typed rows of the tables as the commands before
// it left them, and the fixed facts of its own command.
type txn struct {
	db   *memdb.Txn
	meta metaRow
	now  structs.UnixNano // the proposer's clock
	by   string           // who asked
	seq  int              // events made by this command

	schedule uint64 // index of the last change that may let a queued subjob start
}

func (s *Store) begin() *txn {
	db := s.db.Txn(true)
	return &txn{
		db:       db,
		meta:     *mustFirst[*metaRow](db, tableMeta, indexID, metaKey()),
		schedule: mustFirst[*scheduleRow](db, tableSchedule, indexID, metaKey()).Index,
	}
}

func (tx *txn) commit() {
	meta := tx.meta
	mustInsert(tx.db, tableMeta, &meta)
	if known := mustFirst[*scheduleRow](tx.db, tableSchedule, indexID, metaKey()); known.Index != tx.schedule {
		mustInsert(tx.db, tableSchedule, &scheduleRow{Index: tx.schedule})
	}
	tx.db.Commit()
}

// index is the log index of the command at work.
func (tx *txn) index() uint64 { return tx.meta.Index }

// wakeSchedule notes that something changed that may let a queued subjob
// start.
func (tx *txn) wakeSchedule() { tx.schedule = tx.meta.Index }

// first gives the row of a key, false when there is none.
func first[T any](db *memdb.Txn, table, index string, key []byte) (T, bool) {
	row, err := db.First(table, index, key)
	if err != nil {
		panic(fmt.Sprintf("read state table %s: %v", table, err)) // only a wrong table or index name errs
	}
	typed, ok := row.(T)
	return typed, ok
}

func mustFirst[T any](db *memdb.Txn, table, index string, key []byte) T {
	row, ok := first[T](db, table, index, key)
	if !ok {
		panic(fmt.Sprintf("read state table %s: its row is missing", table))
	}
	return row
}

func mustInsert(db *memdb.Txn, table string, row any) {
	if err := db.Insert(table, row); err != nil {
		panic(fmt.Sprintf("write state table %s: %v", table, err)) // only rows of a wrong type err
	}
}

func mustDelete(db *memdb.Txn, table string, row any) {
	if err := db.Delete(table, row); err != nil {
		panic(fmt.Sprintf("delete from state table %s: %v", table, err))
	}
}

// withPrefix lists the rows whose key begins with prefix, in key order. The
// list is complete before the caller changes anything.
func withPrefix[T any](db *memdb.Txn, table, index string, prefix []byte) []T {
	iterator, err := db.Get(table, index+"_prefix", prefix)
	if err != nil {
		panic(fmt.Sprintf("read state table %s: %v", table, err))
	}
	var rows []T
	for row := iterator.Next(); row != nil; row = iterator.Next() {
		rows = append(rows, row.(T))
	}
	return rows
}

func (tx *txn) job(id string) (*jobRow, bool) {
	return first[*jobRow](tx.db, tableJobs, indexID, idKey(id))
}

func (tx *txn) putJob(row *jobRow) { mustInsert(tx.db, tableJobs, row) }

func (tx *txn) subjob(jobID string, subjob int) (*structs.Subjob, bool) {
	row, ok := first[*subjobRow](tx.db, tableSubjobs, indexID, subjobKey(jobID, subjob))
	if !ok {
		return nil, false
	}
	return row.Subjob, true
}

func (tx *txn) subjobs(jobID string) []*subjobRow {
	return withPrefix[*subjobRow](tx.db, tableSubjobs, indexID, idKey(jobID))
}

// putSubjob stores a changed subjob and keeps the sum of its job; before is
// what it replaces, nil for a new one.
func (tx *txn) putSubjob(before, after *structs.Subjob) {
	row, ok := tx.job(after.JobID)
	if !ok {
		panic(fmt.Sprintf("store subjob %d of job %s: the job is missing", after.Index, after.JobID))
	}
	after.ModifyIndex = tx.index()
	mustInsert(tx.db, tableSubjobs, &subjobRow{Subjob: after, Tier: row.Job.Priority.Rank()})
	if before != nil && before.State == after.State && before.Attempt == after.Attempt &&
		before.StartedAt == after.StartedAt {
		return
	}
	changed := *row
	changed.Standing = row.Standing.after(before, after, tx.now, tx.index())
	tx.putJob(&changed)
	if after.State == structs.JobQueued || before != nil && before.State == structs.JobQueued {
		tx.wakeSchedule()
	}
}

func (tx *txn) attempt(jobID string, subjob int, number uint64) (*attemptRow, bool) {
	return first[*attemptRow](tx.db, tableAttempts, indexID, attemptKey(jobID, subjob, number))
}

func (tx *txn) putAttempt(row *attemptRow) {
	row.Attempt.ModifyIndex = tx.index()
	mustInsert(tx.db, tableAttempts, row)
}

func (tx *txn) alloc(id string) (*structs.Allocation, bool) {
	return first[*structs.Allocation](tx.db, tableAllocs, indexID, idKey(id))
}

// gang lists the allocations of an attempt by rank.
func (tx *txn) gang(jobID string, subjob int, attempt uint64) []*structs.Allocation {
	return withPrefix[*structs.Allocation](tx.db, tableAllocs, indexGang, attemptKey(jobID, subjob, attempt))
}

// heldOn lists the allocations of a node that hold resources, by id.
func (tx *txn) heldOn(nodeID string) []*structs.Allocation {
	return withPrefix[*structs.Allocation](tx.db, tableAllocs, indexHeld, idKey(nodeID))
}

// putAlloc stores a changed allocation, keeps what its node holds and how far
// its attempt is; before is what it replaces, nil for a new one.
func (tx *txn) putAlloc(before, after *structs.Allocation) {
	after.ModifyIndex = tx.index()
	mustInsert(tx.db, tableAllocs, after)
	tx.keepUsage(before, after)
	if before != nil && before.Status == after.Status {
		return
	}
	row, ok := tx.attempt(after.JobID, after.Subjob, after.Attempt)
	if !ok {
		return // the history of its job was deleted while it was in quarantine
	}
	changed := *row
	if before != nil {
		changed.count(before.Status, -1)
	}
	changed.count(after.Status, +1)
	mustInsert(tx.db, tableAttempts, &changed)
}

// count adds n to the counters of an allocation's status.
func (r *attemptRow) count(status structs.AllocStatus, n int) {
	switch status {
	case structs.AllocPrepared:
		r.Prepared += n
	case structs.AllocRunning:
		r.Prepared += n
		r.Running += n
	case structs.AllocComplete:
		r.Prepared += n
		r.Running += n
		r.Complete += n
	}
	if status.Terminal() {
		r.Terminal += n
	}
}

func (tx *txn) node(id string) (*structs.Node, bool) {
	return first[*structs.Node](tx.db, tableNodes, indexID, idKey(id))
}

// putNode stores a changed node.
func (tx *txn) putNode(node *structs.Node) {
	node.ModifyIndex = tx.index()
	mustInsert(tx.db, tableNodes, node)
	tx.wakeSchedule()
}

// usage is what allocations hold on a node; the value is the caller's own,
// its maps are shared.
func (tx *txn) usage(nodeID string) structs.Usage {
	if row, ok := first[*structs.Usage](tx.db, tableUsage, indexID, idKey(nodeID)); ok {
		return *row
	}
	return structs.Usage{NodeID: nodeID}
}

func (tx *txn) cluster() (*structs.Cluster, bool) {
	return first[*structs.Cluster](tx.db, tableCluster, indexID, clusterKey())
}

func (tx *txn) putCluster(cluster *structs.Cluster) {
	cluster.ModifyIndex = tx.index()
	mustInsert(tx.db, tableCluster, cluster)
}
