package state

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// Snapshot is the state at one index. It never changes, costs nothing to take
// and nothing to drop, and may be read from any goroutine. The values it hands
// out are shared: nobody may change them.
//
// For each way to read there is a Watch twin. Its channel is closed at the
// first change after this snapshot of what the twin reads, even when that
// change has happened already; it may also be closed for nothing, so a reader that waits
// takes a new snapshot and looks again.
type Snapshot struct {
	db *memdb.Txn
}

// Snapshot returns the newest state.
func (s *Store) Snapshot() *Snapshot { return &Snapshot{db: s.db.Txn(false)} }

// Block waits until check, called with the newest state, is satisfied, and
// returns that state. Check tells too which channel to wait on before it is
// asked again. The error is the context's.
func (s *Store) Block(ctx context.Context, check func(*Snapshot) (satisfied bool, changed <-chan struct{})) (*Snapshot, error) {
	for {
		snapshot := s.Snapshot()
		satisfied, changed := check(snapshot)
		if satisfied {
			return snapshot, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// WaitIndex waits until the command at index is applied, and returns a state
// that holds it.
func (s *Store) WaitIndex(ctx context.Context, index uint64) (*Snapshot, error) {
	return s.Block(ctx, func(snapshot *Snapshot) (bool, <-chan struct{}) {
		return snapshot.Index() >= index, snapshot.WatchIndex()
	})
}

// watchKey returns the channel of one row, or of its absence.
func (s *Snapshot) watchKey(table string, key []byte) <-chan struct{} {
	channel, _, err := s.db.FirstWatch(table, indexID, key)
	if err != nil {
		panic("watch state table " + table + ": " + err.Error()) // only a wrong table or index name errs
	}
	return channel
}

// watchPrefix returns the channel of all rows whose key begins with prefix.
func (s *Snapshot) watchPrefix(table, index string, prefix []byte) <-chan struct{} {
	iterator, err := s.db.Get(table, index+"_prefix", prefix)
	if err != nil {
		panic("watch state table " + table + ": " + err.Error())
	}
	return iterator.WatchCh()
}

// each iterates the rows whose key begins with prefix, in key order.
func each[T any](db *memdb.Txn, table, index string, prefix []byte) iter.Seq[T] {
	return func(yield func(T) bool) {
		iterator, err := db.Get(table, index+"_prefix", prefix)
		if err != nil {
			panic("read state table " + table + ": " + err.Error())
		}
		for row := iterator.Next(); row != nil; row = iterator.Next() {
			if !yield(row.(T)) {
				return
			}
		}
	}
}

// Index is the log index of the newest command in this state.
func (s *Snapshot) Index() uint64 { return s.meta().Index }

// WatchIndex is the Watch twin of Index.
func (s *Snapshot) WatchIndex() <-chan struct{} { return s.watchKey(tableMeta, metaKey()) }

// ScheduleIndex is the log index of the newest change that may let a queued
// subjob start: one was queued, resources became free, a node changed.
func (s *Snapshot) ScheduleIndex() uint64 {
	return mustFirst[*scheduleRow](s.db, tableSchedule, indexID, metaKey()).Index
}

// WatchSchedule is the Watch twin of ScheduleIndex.
func (s *Snapshot) WatchSchedule() <-chan struct{} {
	return s.watchKey(tableSchedule, metaKey())
}

// Cluster is the cluster's record, nil before it was made.
func (s *Snapshot) Cluster() *structs.Cluster {
	cluster, _ := first[*structs.Cluster](s.db, tableCluster, indexID, clusterKey())
	return cluster
}

// WatchCluster is the Watch twin of Cluster.
func (s *Snapshot) WatchCluster() <-chan struct{} {
	return s.watchKey(tableCluster, clusterKey())
}

// Maintenance lists the windows of maintenance that have not ended, by start. The
// list is shared: nobody may change it.
func (s *Snapshot) Maintenance() []structs.Maintenance {
	cluster := s.Cluster()
	if cluster == nil {
		return nil
	}
	return cluster.Maintenance
}

// JobView is a job with how it stands.
type JobView struct {
	Job    *structs.Job
	Status JobStatus
}

// view joins a job with its status.
func (s *Snapshot) view(row *jobRow) JobView {
	status := mustFirst[*jobStatusRow](s.db, tableJobStatuses, indexID, indexKey(row.CreateIndex))
	return JobView{Job: row.Job, Status: status.Status}
}

// viewOf joins a status with its job.
func (s *Snapshot) viewOf(row *jobStatusRow) JobView {
	first := mustFirst[*subjobRow](s.db, tableSubjobs, indexID, subjobKey(row.JobID, 0))
	return JobView{Job: first.job.Job, Status: row.Status}
}

// jobRow finds a job at its first subjob.
func (s *Snapshot) jobRow(id string) (*jobRow, bool) {
	row, ok := first[*subjobRow](s.db, tableSubjobs, indexID, subjobKey(id, 0))
	if !ok {
		return nil, false
	}
	return row.job, true
}

// Job returns a job by its id, false when there is none.
func (s *Snapshot) Job(id string) (JobView, bool) {
	row, ok := s.jobRow(id)
	if !ok {
		return JobView{}, false
	}
	return s.view(row), true
}

// WatchJob is the Watch twin of Job; it sees every change of its subjobs'
// states too.
func (s *Snapshot) WatchJob(id string) <-chan struct{} {
	row, ok := s.jobRow(id)
	if !ok {
		return s.watchKey(tableSubjobs, subjobKey(id, 0))
	}
	return s.watchKey(tableJobStatuses, indexKey(row.CreateIndex))
}

// JobNamed returns the newest job of a name in a project, whether or not it has
// ended.
func (s *Snapshot) JobNamed(project, name string) (JobView, bool) {
	row, ok := newest[*jobRow](s.db, tableJobs, indexID, nameKey(project, name))
	if !ok {
		return JobView{}, false
	}
	return s.view(row), true
}

// JobsWithPrefix yields up to limit jobs whose id begins with prefix.
func (s *Snapshot) JobsWithPrefix(prefix string, limit int) []JobView {
	var views []JobView
	for key := []byte(prefix); len(views) < limit; {
		iterator, err := s.db.LowerBound(tableSubjobs, indexID, key)
		if err != nil {
			panic("read state table " + tableSubjobs + ": " + err.Error())
		}
		row, ok := iterator.Next().(*subjobRow)
		if !ok || !strings.HasPrefix(row.Subjob.JobID, prefix) {
			break
		}
		views = append(views, s.view(row.job))
		key = append([]byte(row.Subjob.JobID), 1) // behind all its subjobs, before any longer id
	}
	return views
}

// Jobs iterates all jobs, oldest first.
func (s *Snapshot) Jobs() iter.Seq[JobView] {
	return func(yield func(JobView) bool) {
		for row := range each[*jobStatusRow](s.db, tableJobStatuses, indexID, nil) {
			if !yield(s.viewOf(row)) {
				return
			}
		}
	}
}

// WatchJobs is the Watch twin of Jobs.
func (s *Snapshot) WatchJobs() <-chan struct{} { return s.watchPrefix(tableJobStatuses, indexID, nil) }

// JobCount is the number of jobs that the state keeps, ended ones included.
func (s *Snapshot) JobCount() int { return s.meta().Jobs }

// Forgotten is the number of ended jobs that were removed because the settings
// keep them no longer.
func (s *Snapshot) Forgotten() uint64 { return s.meta().Forgotten }

// LiveCount is the number of subjobs that have not ended.
func (s *Snapshot) LiveCount() int { return s.meta().Live }

// NodeCount is the number of nodes that the state knows.
func (s *Snapshot) NodeCount() int { return s.meta().Nodes }

// meta is the state's own record.
func (s *Snapshot) meta() *metaRow {
	return mustFirst[*metaRow](s.db, tableMeta, indexID, metaKey())
}

// JobOfKey returns the id of the job that a user's idempotency key made.
func (s *Snapshot) JobOfKey(user, key string) (string, bool) {
	row, ok := first[*keyRow](s.db, tableIdempotency, indexID, []byte(idempotencyKey(user, key)))
	if !ok {
		return "", false
	}
	return row.JobID, true
}

// CountedOnce reports whether a command that counts once by this name was applied,
// and is among the newest IdempotencyKeysMax keys.
func (s *Snapshot) CountedOnce(name string) bool {
	_, ok := first[*keyRow](s.db, tableIdempotency, indexID, []byte(onceKey(name)))
	return ok
}

// Subjob returns one subjob of a job, nil when there is none.
func (s *Snapshot) Subjob(jobID string, subjob int) *structs.Subjob {
	row, ok := first[*subjobRow](s.db, tableSubjobs, indexID, subjobKey(jobID, subjob))
	if !ok {
		return nil
	}
	return row.Subjob
}

// Subjobs iterates the subjobs of a job by index.
func (s *Snapshot) Subjobs(jobID string) iter.Seq[*structs.Subjob] {
	return func(yield func(*structs.Subjob) bool) {
		for row := range each[*subjobRow](s.db, tableSubjobs, indexID, idKey(jobID)) {
			if !yield(row.Subjob) {
				return
			}
		}
	}
}

// WatchSubjobs is the Watch twin of Subjobs; it sees explanations change too.
func (s *Snapshot) WatchSubjobs(jobID string) <-chan struct{} {
	return s.watchPrefix(tableSubjobs, indexID, idKey(jobID))
}

// Queue iterates the queued subjobs with their jobs, in the order in which
// they are looked at: tier, then submission, then index.
func (s *Snapshot) Queue() iter.Seq2[*structs.Job, *structs.Subjob] {
	return func(yield func(*structs.Job, *structs.Subjob) bool) {
		for row := range each[*subjobRow](s.db, tableSubjobs, indexQueue, nil) {
			if !yield(row.job.Job, row.Subjob) {
				return
			}
		}
	}
}

// NextDelayed returns the earliest time after now at which the restart delay of
// a queued subjob ends, false when there is none.
func (s *Snapshot) NextDelayed(now structs.UnixNano) (structs.UnixNano, bool) {
	iterator, err := s.db.LowerBound(tableSubjobs, indexDelayed, indexKey(uint64(max(now, 0))+1))
	if err != nil {
		panic("read state table " + tableSubjobs + ": " + err.Error())
	}
	row, ok := iterator.Next().(*subjobRow)
	if !ok {
		return 0, false
	}
	return row.Subjob.NotBefore, true
}

// WatchQueue is the Watch twin of Queue; it sees explanations change too.
func (s *Snapshot) WatchQueue() <-chan struct{} { return s.watchPrefix(tableSubjobs, indexQueue, nil) }

// Nominated yields the subjobs that nodes are nominated for.
func (s *Snapshot) Nominated() iter.Seq[*structs.Subjob] {
	return func(yield func(*structs.Subjob) bool) {
		for row := range each[*subjobRow](s.db, tableSubjobs, indexNomination, nil) {
			if !yield(row.Subjob) {
				return
			}
		}
	}
}

// Attempt returns one attempt, nil when there is none.
func (s *Snapshot) Attempt(jobID string, subjob int, number uint64) *structs.Attempt {
	row, ok := first[*attemptRow](s.db, tableAttempts, indexID, attemptKey(jobID, subjob, number))
	if !ok {
		return nil
	}
	return row.Attempt
}

// Attempts iterates the attempts of a job by subjob and number.
func (s *Snapshot) Attempts(jobID string) iter.Seq[*structs.Attempt] {
	return s.attempts(indexID, idKey(jobID))
}

// LiveAttempts iterates all attempts that have not ended.
func (s *Snapshot) LiveAttempts() iter.Seq[*structs.Attempt] { return s.attempts(indexLive, nil) }

func (s *Snapshot) attempts(index string, prefix []byte) iter.Seq[*structs.Attempt] {
	return func(yield func(*structs.Attempt) bool) {
		for row := range each[*attemptRow](s.db, tableAttempts, index, prefix) {
			if !yield(row.Attempt) {
				return
			}
		}
	}
}

// WatchAttempts is the Watch twin of Attempts.
func (s *Snapshot) WatchAttempts(jobID string) <-chan struct{} {
	return s.watchPrefix(tableAttempts, indexID, idKey(jobID))
}

// Alloc returns an allocation by its id, nil when there is none.
func (s *Snapshot) Alloc(id string) *structs.Allocation {
	alloc, _ := first[*structs.Allocation](s.db, tableAllocs, indexID, idKey(id))
	return alloc
}

// WatchAlloc is the Watch twin of Alloc.
func (s *Snapshot) WatchAlloc(id string) <-chan struct{} {
	return s.watchKey(tableAllocs, idKey(id))
}

// AllocsWithPrefix yields up to limit allocations whose id begins with prefix.
func (s *Snapshot) AllocsWithPrefix(prefix string, limit int) []*structs.Allocation {
	var allocs []*structs.Allocation
	for alloc := range each[*structs.Allocation](s.db, tableAllocs, indexID, []byte(prefix)) {
		if len(allocs) == limit {
			break
		}
		allocs = append(allocs, alloc)
	}
	return allocs
}

// Allocs iterates all allocations by id.
func (s *Snapshot) Allocs() iter.Seq[*structs.Allocation] {
	return each[*structs.Allocation](s.db, tableAllocs, indexID, nil)
}

// AllocsOfJob iterates the allocations of a job by subjob, attempt and rank.
func (s *Snapshot) AllocsOfJob(jobID string) iter.Seq[*structs.Allocation] {
	return each[*structs.Allocation](s.db, tableAllocs, indexGang, idKey(jobID))
}

// WatchAllocsOfJob is the Watch twin of AllocsOfJob.
func (s *Snapshot) WatchAllocsOfJob(jobID string) <-chan struct{} {
	return s.watchPrefix(tableAllocs, indexGang, idKey(jobID))
}

// Gang iterates the allocations of one attempt by rank.
func (s *Snapshot) Gang(jobID string, subjob int, attempt uint64) iter.Seq[*structs.Allocation] {
	return each[*structs.Allocation](s.db, tableAllocs, indexGang, attemptKey(jobID, subjob, attempt))
}

// AllocsOfNode iterates everything that the state remembers of a node by id:
// its occupants, then the allocations that have ended.
func (s *Snapshot) AllocsOfNode(nodeID string) iter.Seq[*structs.Allocation] {
	return each[*structs.Allocation](s.db, tableAllocs, indexNode, idKey(nodeID))
}

// Occupants iterates the allocations that occupy resources on a node, by id: those
// that have not ended, and lost ones in quarantine.
func (s *Snapshot) Occupants(nodeID string) iter.Seq[*structs.Allocation] {
	return each[*structs.Allocation](s.db, tableAllocs, indexNode, occupantsKey(nodeID))
}

// WatchOccupants is the Watch twin of Occupants.
func (s *Snapshot) WatchOccupants(nodeID string) <-chan struct{} {
	return s.watchPrefix(tableAllocs, indexNode, occupantsKey(nodeID))
}

// Node returns a node by its id, nil when there is none.
func (s *Snapshot) Node(id string) *structs.Node {
	node, _ := first[*structs.Node](s.db, tableNodes, indexID, idKey(id))
	return node
}

// WatchNode is the Watch twin of Node.
func (s *Snapshot) WatchNode(id string) <-chan struct{} {
	return s.watchKey(tableNodes, idKey(id))
}

// NodesNamed returns the nodes of a name: normally one, several when a machine
// was set up anew.
func (s *Snapshot) NodesNamed(name string) []*structs.Node {
	return withPrefix[*structs.Node](s.db, tableNodes, indexName, idKey(name))
}

// NodesWithPrefix yields up to limit nodes whose id begins with prefix.
func (s *Snapshot) NodesWithPrefix(prefix string, limit int) []*structs.Node {
	var nodes []*structs.Node
	for node := range each[*structs.Node](s.db, tableNodes, indexID, []byte(prefix)) {
		if len(nodes) == limit {
			break
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// Nodes iterates all nodes by id, with what they hold.
func (s *Snapshot) Nodes() iter.Seq2[*structs.Node, *structs.Usage] {
	return func(yield func(*structs.Node, *structs.Usage) bool) {
		for node := range each[*structs.Node](s.db, tableNodes, indexID, nil) {
			if !yield(node, s.Usage(node.ID)) {
				return
			}
		}
	}
}

// WatchNodes is the Watch twin of Nodes, but for what they hold.
func (s *Snapshot) WatchNodes() <-chan struct{} { return s.watchPrefix(tableNodes, indexID, nil) }

// Usage is what allocations hold on a node, nil when it is unknown.
func (s *Snapshot) Usage(nodeID string) *structs.Usage {
	usage, _ := first[*structs.Usage](s.db, tableUsage, indexID, idKey(nodeID))
	return usage
}

// Token returns a token by its accessor, nil when there is none.
func (s *Snapshot) Token(id string) *structs.Token {
	token, _ := first[*structs.Token](s.db, tableTokens, indexID, idKey(id))
	return token
}

// TokenByHash returns the token whose secret has this SHA-256, nil when there is
// none.
func (s *Snapshot) TokenByHash(hash []byte) *structs.Token {
	token, _ := first[*structs.Token](s.db, tableTokens, indexHash, hash)
	return token
}

// WatchToken is the Watch twin of Token.
func (s *Snapshot) WatchToken(id string) <-chan struct{} {
	return s.watchKey(tableTokens, idKey(id))
}

// Tokens iterates all tokens by id.
func (s *Snapshot) Tokens() iter.Seq[*structs.Token] {
	return each[*structs.Token](s.db, tableTokens, indexID, nil)
}

// JoinToken returns a join token by its id, nil when there is none.
func (s *Snapshot) JoinToken(id string) *structs.JoinToken {
	token, _ := first[*structs.JoinToken](s.db, tableJoinTokens, indexID, idKey(id))
	return token
}

// JoinTokens iterates all join tokens by id.
func (s *Snapshot) JoinTokens() iter.Seq[*structs.JoinToken] {
	return each[*structs.JoinToken](s.db, tableJoinTokens, indexID, nil)
}

// JobEvents returns the history of a job, oldest first, and how many events
// between its submission and the next one are not kept any more.
func (s *Snapshot) JobEvents(jobID string) (events []*structs.Event, dropped int) {
	job, ok := s.jobRow(jobID)
	if !ok {
		return nil, 0
	}
	row := mustFirst[*jobStatusRow](s.db, tableJobStatuses, indexID, indexKey(job.CreateIndex))
	if row.SubmittedAt == 0 {
		return slices.Clip(row.History), row.Dropped // the first events of an old job were dropped
	}
	event, params := submittedEvent(job.Job)
	event.Index, event.Time, event.Params = job.CreateIndex, row.SubmittedAt, paired(params)
	return append([]*structs.Event{&event}, row.History...), row.Dropped
}
