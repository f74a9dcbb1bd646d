package state

import (
	"fmt"
	"slices"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// txn is what a judge sees: typed rows of the tables as the commands before
// it left them, and the fixed facts of its own command. Rows that are found by
// their id wait here until the batch ends, or until somebody lists their table:
// one job's row may change many times in a batch and is written once.
type txn struct {
	db     *memdb.Txn
	caches map[string]*rowCache // by table
	meta   metaRow
	now    structs.UnixNano // the proposer's clock
	by     string           // who asked
	seq    int              // events made by this command

	shares  map[string]int // of the store
	counted *liveCounts    // of the store: before the batch
	live    map[owner]live // changes of the batch
	waiting map[waiter]int // the same of what waits

	schedule uint64 // index of the last change that may let a queued subjob start

	owned   map[string]*structs.ProjectUsage // rows of tableHoldings that this batch made, by project
	named   map[string]string                // newest job that this batch made of each name
	moved   []string                         // jobs that ran first, or ended, by this command
	freed   []string                         // jobs with a bound of what may run, of which this command ended a subjob
	pending bool                             // this batch stored subjobs that wait for other jobs
	reviews []nominationReview               // nominations to look at when the command is done
	blocked map[string]int                   // nomination -> rank that lacked room when it was last looked at

	historic bool // somebody keeps the history
	rows     []structs.HistoryRow
}

func (s *Store) begin() *txn {
	db := s.db.Txn(true)
	return &txn{
		db:       db,
		caches:   make(map[string]*rowCache),
		meta:     *mustFirst[*metaRow](db, tableMeta, indexID, metaKey()),
		schedule: mustFirst[*scheduleRow](db, tableSchedule, indexID, metaKey()).Index,
		owned:    make(map[string]*structs.ProjectUsage),
		named:    make(map[string]string),
		blocked:  s.blocked,
		counted:  &s.live,
		historic: s.history != nil,
	}
}

func (tx *txn) commit() {
	for table := range tx.caches { // in any order: rows do not depend on each other
		tx.flush(table)
	}
	addWaiting(tx.db, tx.waiting)
	tx.trimJournal()
	meta := tx.meta
	mustInsert(tx.db, tableMeta, &meta)
	if known := mustFirst[*scheduleRow](tx.db, tableSchedule, indexID, metaKey()); known.Index != tx.schedule {
		mustInsert(tx.db, tableSchedule, &scheduleRow{Index: tx.schedule})
	}
	tx.db.Commit()
}

// rowCache holds the rows of one table that a batch has read or written by
// their id.
type rowCache struct {
	rows  map[string]cachedRow
	dirty []string // keys of the rows that wait
}

// cachedRow is one of them; its row is nil where the table has none.
type cachedRow struct {
	row   any
	waits bool // it is not written to the table yet
}

// cache returns the rows of a table that the batch knows.
func (tx *txn) cache(table string) *rowCache {
	cache := tx.caches[table]
	if cache == nil {
		cache = &rowCache{rows: make(map[string]cachedRow)}
		tx.caches[table] = cache
	}
	return cache
}

// flush writes the rows of a table that wait. In the order of their keys they
// share the nodes of the tree that an insert copies.
func (tx *txn) flush(table string) {
	cache := tx.caches[table]
	if cache == nil || len(cache.dirty) == 0 {
		return
	}
	slices.Sort(cache.dirty)
	for _, key := range cache.dirty {
		row := cache.rows[key].row
		mustInsert(tx.db, table, row)
		cache.rows[key] = cachedRow{row: row}
	}
	cache.dirty = cache.dirty[:0]
}

// get returns the row with an id, false when there is none.
func get[T any](tx *txn, table string, key []byte) (T, bool) {
	cache := tx.cache(table)
	known, ok := cache.rows[string(key)]
	if !ok {
		if found, ok := first[T](tx.db, table, indexID, key); ok {
			known.row = found
		}
		cache.rows[string(key)] = known
	}
	typed, ok := known.row.(T)
	return typed, ok
}

// put stores a row under its id.
func (tx *txn) put(table string, key []byte, row any) {
	cache := tx.cache(table)
	id := string(key)
	if !cache.rows[id].waits {
		cache.dirty = append(cache.dirty, id)
	}
	cache.rows[id] = cachedRow{row: row, waits: true}
}

// remove deletes a row that exists.
func (tx *txn) remove(table string, key []byte, row any) {
	cache := tx.cache(table)
	if cache.rows[string(key)].waits {
		tx.flush(table)
	}
	delete(cache.rows, string(key))
	mustDelete(tx.db, table, row)
}

// lookup returns the row of a key in another index than the id.
func lookup[T any](tx *txn, table, index string, key []byte) (T, bool) {
	tx.flush(table)
	return first[T](tx.db, table, index, key)
}

// listRows returns the rows whose key begins with prefix, in key order. It is
// complete before the caller changes anything.
func listRows[T any](tx *txn, table, index string, prefix []byte) []T {
	tx.flush(table)
	return withPrefix[T](tx.db, table, index, prefix)
}

// index is the log index of the command at work.
func (tx *txn) index() uint64 { return tx.meta.Index }

// wakeSchedule notes that something changed that may let a queued subjob
// start.
func (tx *txn) wakeSchedule() { tx.schedule = tx.meta.Index }

// first returns the row of a key, false when there is none.
func first[T any](db *memdb.Txn, table, index string, key []byte) (T, bool) {
	row, err := db.First(table, index, key)
	if err != nil {
		panic(fmt.Sprintf("read state table %s: %v", table, err)) // only a wrong table or index name errs
	}
	typed, ok := row.(T)
	return typed, ok
}

// newest returns the row with the last key that begins with prefix, false when
// there is none.
func newest[T any](db *memdb.Txn, table, index string, prefix []byte) (T, bool) {
	iterator, err := db.GetReverse(table, index+"_prefix", prefix)
	if err != nil {
		panic(fmt.Sprintf("read state table %s: %v", table, err))
	}
	typed, ok := iterator.Next().(T)
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

func (tx *txn) job(id string) (*structs.Job, bool) {
	row, ok := tx.jobRow(id)
	if !ok {
		return nil, false
	}
	return row.Job, true
}

// jobRow finds a job at its first subjob, which every job has.
func (tx *txn) jobRow(id string) (*jobRow, bool) {
	row, ok := get[*subjobRow](tx, tableSubjobs, subjobKey(id, 0))
	if !ok {
		return nil, false
	}
	return row.job, true
}

// jobStatus returns the status of a job; the job must exist.
func (tx *txn) jobStatus(jobID string) *jobStatusRow {
	job, ok := tx.jobRow(jobID)
	if !ok {
		panic("read status of job " + jobID + ": there is no such job")
	}
	row, ok := get[*jobStatusRow](tx, tableJobStatuses, indexKey(job.CreateIndex))
	if !ok {
		panic("read status of job " + jobID + ": it is missing")
	}
	return row
}

func (tx *txn) putJobStatus(row *jobStatusRow) {
	tx.put(tableJobStatuses, indexKey(row.Status.CreateIndex), row)
}

func (tx *txn) subjob(jobID string, subjob int) (*structs.Subjob, bool) {
	row, ok := get[*subjobRow](tx, tableSubjobs, subjobKey(jobID, subjob))
	if !ok {
		return nil, false
	}
	return row.Subjob, true
}

func (tx *txn) subjobs(jobID string) []*subjobRow {
	return listRows[*subjobRow](tx, tableSubjobs, indexID, idKey(jobID))
}

// putSubjob stores a changed subjob of job and keeps the sum; before is what it
// replaces, nil for a new one.
func (tx *txn) putSubjob(job *structs.Job, before, after *structs.Subjob) {
	after.ModifyIndex = tx.index()
	row, ok := tx.jobRow(job.ID)
	if !ok {
		panic("put subjob of job " + job.ID + ": there is no such job")
	}
	tx.putRow(after, row)
	if before != nil && before.State == after.State && before.Attempt == after.Attempt &&
		before.StartedAt == after.StartedAt && before.Turn == after.Turn {
		return
	}
	if before == nil || before.State.Terminal() {
		tx.meta.Live++
		tx.countLive(job, live{subjobs: +1})
	}
	if after.State.Terminal() {
		tx.meta.Live--
		tx.countLive(job, live{subjobs: -1})
		if job.Parallel() > 0 {
			tx.freed = append(tx.freed, job.ID)
		}
	}
	sum := *tx.jobStatus(after.JobID)
	ended, ran := sum.Status.State.Terminal(), sum.Status.StartedAt != 0
	sum.Status = sum.Status.after(before, after, tx.now, tx.index())
	tx.putJobStatus(&sum)
	if !ended && sum.Status.State.Terminal() || !ran && sum.Status.StartedAt != 0 {
		tx.moved = append(tx.moved, job.ID)
	}
	if !ended && sum.Status.State.Terminal() {
		tx.countUrgent(job, -1)
		tx.countLive(job, live{bytes: -jobBytes(job)})
	}
	if after.State == structs.JobQueued || before != nil && before.State == structs.JobQueued {
		tx.wakeSchedule()
	}
}

// putRow stores a subjob with its job.
func (tx *txn) putRow(subjob *structs.Subjob, job *jobRow) {
	tx.touch(touchSubjob, subjob.JobID, subjob.Index)
	key := subjobKey(subjob.JobID, subjob.Index)
	before, _ := get[*subjobRow](tx, tableSubjobs, key)
	after := &subjobRow{Subjob: subjob, Tier: job.Job.Priority.Rank(), Withdraw: job.Job.WithdrawAt(subjob), job: job}
	tx.countWaiting(before, after)
	tx.pending = tx.pending || len(subjob.Pending) > 0
	tx.put(tableSubjobs, key, after)
}

func (tx *txn) attempt(jobID string, subjob int, number uint64) (*attemptRow, bool) {
	return get[*attemptRow](tx, tableAttempts, attemptKey(jobID, subjob, number))
}

// putAttempt stores a changed attempt.
func (tx *txn) putAttempt(row *attemptRow) {
	row.Attempt.ModifyIndex = tx.index()
	tx.touch(touchSubjob, row.Attempt.JobID, row.Attempt.Subjob)
	tx.putCounts(row)
}

// putCounts stores an attempt of which only the counters changed.
func (tx *txn) putCounts(row *attemptRow) {
	tx.put(tableAttempts, attemptKey(row.Attempt.JobID, row.Attempt.Subjob, row.Attempt.Number), row)
}

func (tx *txn) alloc(id string) (*structs.Allocation, bool) {
	return get[*structs.Allocation](tx, tableAllocs, idKey(id))
}

// gang lists the allocations of an attempt by rank.
func (tx *txn) gang(jobID string, subjob int, attempt uint64) []*structs.Allocation {
	return listRows[*structs.Allocation](tx, tableAllocs, indexGang, attemptKey(jobID, subjob, attempt))
}

// occupantsOf lists the allocations that occupy a node, by id.
func (tx *txn) occupantsOf(nodeID string) []*structs.Allocation {
	return listRows[*structs.Allocation](tx, tableAllocs, indexNode, occupantsKey(nodeID))
}

// putAlloc stores a changed allocation, keeps what its node holds and how far
// its attempt is; before is what it replaces, nil for a new one.
func (tx *txn) putAlloc(before, after *structs.Allocation) {
	after.ModifyIndex = tx.index()
	tx.put(tableAllocs, idKey(after.ID), after)
	tx.countOnNode(before, after)
	tx.countInQuota(before, after)
	if before != nil && before.Status == after.Status && obeys(before) == obeys(after) {
		return
	}
	row, ok := tx.attempt(after.JobID, after.Subjob, after.Attempt)
	if !ok {
		return // the history of its job was deleted while it was in quarantine
	}
	changed := *row
	if before != nil {
		changed.count(before, -1)
	}
	changed.count(after, +1)
	tx.putCounts(&changed)
}

// obeys reports whether a living rank does what it was told last.
func obeys(alloc *structs.Allocation) bool {
	return !alloc.Status.Terminal() && alloc.Control != nil && alloc.Obeyed == alloc.Control.Seq
}

// count adds n to the counters of what an allocation is.
func (r *attemptRow) count(alloc *structs.Allocation, n int) {
	switch alloc.Status {
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
	if alloc.Status.Terminal() {
		r.Terminal += n
	}
	if obeys(alloc) {
		r.Obeyed += n
	}
}

func (tx *txn) node(id string) (*structs.Node, bool) {
	return get[*structs.Node](tx, tableNodes, idKey(id))
}

// putNode stores a changed node.
func (tx *txn) putNode(node *structs.Node) {
	node.ModifyIndex = tx.index()
	tx.touch(touchNode, node.ID, 0)
	tx.put(tableNodes, idKey(node.ID), node)
	if nominee := tx.usage(node.ID).NominatedFor; nominee != "" {
		tx.review(nominee, true)
	}
	tx.wakeSchedule()
}

// usage is what allocations hold on a node; the value is the caller's own,
// its maps are shared.
func (tx *txn) usage(nodeID string) structs.Usage {
	if row, ok := get[*structs.Usage](tx, tableUsage, idKey(nodeID)); ok {
		return *row
	}
	return structs.Usage{NodeID: nodeID}
}

func (tx *txn) cluster() (*structs.Cluster, bool) {
	return get[*structs.Cluster](tx, tableCluster, clusterKey())
}

func (tx *txn) putCluster(cluster *structs.Cluster) {
	cluster.ModifyIndex = tx.index()
	tx.put(tableCluster, clusterKey(), cluster)
}
