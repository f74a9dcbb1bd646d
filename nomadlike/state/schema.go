package state

import (
	"encoding/binary"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// The tables. Each has the unique index "id"; further indexes are listed with
// their key functions in schema.
const (
	tableMeta        = "meta"
	tableSchedule    = "schedule"
	tableCluster     = "cluster"
	tableJobs        = "jobs"
	tableJobStatuses = "standings"
	tableSubjobs     = "subjobs"
	tableAttempts    = "attempts"
	tableAllocs      = "allocs"
	tableNodes       = "nodes"
	tableUsage       = "usage"
	tableTokens      = "tokens"
	tableJoinTokens  = "join_tokens"
	tableIdempotency = "idempotency"
	tablePools       = "pools"
	tableProjects    = "projects"
	tableHoldings    = "holdings"
	tableForecasts   = "forecasts"
	tableUsers       = "users"
	tablePasswords   = "passwords"
	tableSecrets     = "secrets"
	tableSecretKeys  = "secret_keys"
	tableSettings    = "settings"
	tableServices    = "service_accounts"
	tableCode        = "code"
	tableData        = "data"
	tableImages      = "images"
	tableTemplates   = "templates"
	tableWaiting     = "waiting" // not stored: it follows from subjobs

	tableNotify        = "notify"
	tableNotifications = "notifications"
	tableNotifyMark    = "notify_mark"
)

// The indexes beside "id". An index whose key function returns nil for a row
// does not list it.
const (
	indexID         = "id"
	indexCreated    = "created"    // by the log index that made the row
	indexName       = "name"       // nodes by name, and data by kind and name
	indexLive       = "live"       // attempts that have not ended, and data of which a version is being made
	indexQueue      = "queue"      // queued subjobs in the order of the queue
	indexNomination = "nomination" // subjobs that nodes are nominated for
	indexDue        = "due"        // attempts by the time at which they expire
	indexEnded      = "ended"      // forecasts by the log index at which they came true or void
	indexDelayed    = "delayed"    // queued subjobs that are not placed before a time, and messages to be delivered, by that time
	indexNode       = "node"       // allocations by node, those first that hold resources or still run
	indexGang       = "gang"       // allocations by job, subjob, attempt, rank
	indexHash       = "hash"       // tokens by the hash of their secret
	indexMember     = "member"     // projects by each name that they list, and their own
	indexIdentity   = "identity"   // accounts by who they are to providers
	indexNumber     = "number"     // jobs by their number
	indexPending    = "pending"    // queued subjobs by each job that they wait for
	indexTurn       = "turn"       // queued subjobs that wait for their turn, by job and number
	indexWithdraw   = "withdraw"   // queued subjobs by the time at which they leave the queue
	indexTree       = "tree"       // jobs by the code that travels with them
	indexData       = "data"       // jobs by each version of named data that they use
)

// metaRow is the state's own record: one row, replaced by every batch. It
// carries the rings of events, past runs, keys and of what changed, oldest first.
// Versions of the row share the arrays behind the rings: they are only ever
// appended to in the newest version, behind what older ones see, and dropped
// from by slicing.
type metaRow struct {
	Index         uint64 `json:"index"`                              // of the last command that was applied
	EventsDropped uint64 `json:"events_dropped"`                     // highest log index of which an event was dropped
	Jobs          int    `json:"jobs"`                               // rows of tableJobs
	Live          int    `json:"live"`                               // subjobs that have not ended
	Nodes         int    `json:"nodes"`                              // rows of tableNodes
	Forecasts     int    `json:"forecasts"`                          // answers in tableForecasts
	ForecastSeq   uint64 `json:"forecast_seq"`                       // of the newest row of tableForecasts
	RunSeq        uint64 `json:"run_seq"`                            // of the newest past run
	Forgotten     uint64 `json:"forgotten,omitempty"`                // ended jobs that were removed because the settings keep them no longer
	Notifications int    `json:"notifications,omitempty" since:"30"` // rows of tableNotifications
	Number        uint64 `json:"number,omitempty" since:"52"`        // of the newest job that has one

	ring        []*structs.Event
	runs        []*structs.PastRun
	keys        []string // of tableIdempotency
	journal     []touch
	journalFrom uint64 // the journal knows every change after this index
	lineage     uint64 // how often the state of this store was replaced by another
}

// scheduleRow is apart from metaRow, so that what waits for it sleeps through
// everything that cannot let a queued subjob start.
type scheduleRow struct {
	Index uint64 `json:"index"` // of the last change that may let a queued subjob start
}

// jobRow keeps what never changes but for priority and time limit: a job, and
// when it was made. The table finds jobs by name; by id they are found at their
// first subjob, so that a waiting job costs one entry less.
type jobRow struct {
	Job         *structs.Job `json:"job"`
	CreateIndex uint64       `json:"create_index"`
}

// key orders jobs by project, name and creation.
func (r *jobRow) key() []byte {
	return appendUint(nameKey(r.Job.Project, r.Job.Name), r.CreateIndex)
}

// jobStatusRow keeps what changes of a job: the sum of its subjobs, and its
// history, oldest first, whose versions share an array as those of the ring do.
// It is found by the log index that made the job, so that statuses are in the
// order of submission.
type jobStatusRow struct {
	JobID       string           `json:"job_id"`
	Status      JobStatus        `json:"standing"`
	History     []*structs.Event `json:"history"`                // but for the submission, which the job tells
	Dropped     int              `json:"dropped"`                // events that are not kept any more
	SubmittedAt structs.UnixNano `json:"submitted_at,omitempty"` // by the clock of the events
}

// subjobRow keeps a subjob with its job, and with the priority of that, which
// the order of the queue needs.
type subjobRow struct {
	Subjob *structs.Subjob `json:"subjob"`
	Tier   int             `json:"tier"`
	// Withdraw is when it leaves the queue if it has not started; 0: never.
	Withdraw structs.UnixNano `json:"withdraw,omitempty" since:"52"`

	job *jobRow // the row of tableJobs, which is stored there
}

// attemptRow keeps an attempt with how far its allocations are, so that one
// report costs the same in a gang of two and of two thousand.
type attemptRow struct {
	Attempt  *structs.Attempt `json:"attempt"`
	Prepared int              `json:"prepared"` // allocations that are prepared, running or complete
	Running  int              `json:"running"`  // running or complete
	Complete int              `json:"complete"`
	Terminal int              `json:"terminal"`
	Obeyed   int              `json:"obeyed,omitempty"` // live ones that do what they were told last
	Due      structs.UnixNano `json:"due,omitempty"`    // when its time limit passes; 0: never, or it does not run yet
}

// keyRow remembers which job an idempotency key made, or that a command which
// counts once was applied.
type keyRow struct {
	Key   string `json:"key"`    // idempotencyKey(user, key), or onceKey
	JobID string `json:"job_id"` // "" of onceKey
	Index uint64 `json:"index"`
}

// indexer returns the key of a row of type T; keys are unique by construction.
// It serves reads too: their argument is the key, or the beginning of one.
type indexer[T any] struct {
	key func(T) []byte
}

// FromObject implements memdb.SingleIndexer.
func (i indexer[T]) FromObject(row any) (bool, []byte, error) {
	key := i.key(row.(T))
	return key != nil, key, nil
}

// FromArgs implements memdb.Indexer.
func (indexer[T]) FromArgs(args ...any) ([]byte, error) { return args[0].([]byte), nil }

// PrefixFromArgs implements memdb.PrefixIndexer.
func (indexer[T]) PrefixFromArgs(args ...any) ([]byte, error) { return args[0].([]byte), nil }

// table describes one table by the key functions of its indexes.
// memberIndexer has a project found by each name that it lists.
type memberIndexer struct{ indexer[*structs.Project] }

// FromObject implements memdb.MultiIndexer.
func (memberIndexer) FromObject(row any) (bool, [][]byte, error) {
	project := row.(*structs.Project)
	names := project.Names()
	keys := make([][]byte, len(names))
	for i, name := range names {
		keys[i] = nameKey(name, project.Name)
	}
	return len(keys) > 0, keys, nil
}

// identityIndexer has an account found by who it is to each provider.
type identityIndexer struct{ indexer[*structs.User] }

// FromObject implements memdb.MultiIndexer.
func (identityIndexer) FromObject(row any) (bool, [][]byte, error) {
	user := row.(*structs.User)
	keys := make([][]byte, len(user.Identities))
	for i, identity := range user.Identities {
		keys[i] = nameKey(identity.Provider, identity.Subject)
	}
	return len(keys) > 0, keys, nil
}

// pendingIndexer has a queued subjob found by each job that it waits for.
type pendingIndexer struct{ indexer[*subjobRow] }

// FromObject implements memdb.MultiIndexer.
func (pendingIndexer) FromObject(row any) (bool, [][]byte, error) {
	subjob := row.(*subjobRow).Subjob
	if subjob.State != structs.JobQueued {
		return false, nil, nil
	}
	var keys [][]byte
	for _, id := range subjob.Pending {
		keys = append(keys, append(idKey(id), subjobKey(subjob.JobID, subjob.Index)...))
	}
	return len(keys) > 0, keys, nil
}

// usesIndexer has a job found by each version of named data that it uses.
type usesIndexer struct{ indexer[*jobRow] }

// FromObject implements memdb.MultiIndexer.
func (usesIndexer) FromObject(row any) (bool, [][]byte, error) {
	job := row.(*jobRow)
	var keys [][]byte
	job.Job.DataPicks(func(kind string, ref *structs.DataRef) {
		keys = append(keys, appendUint(appendUint(dataKey(ref.Object.Of(kind, ref)), uint64(ref.Version)), job.CreateIndex))
	})
	return len(keys) > 0, keys, nil
}

func table[T any](name string, keys map[string]func(T) []byte) *memdb.TableSchema {
	schema := &memdb.TableSchema{Name: name, Indexes: make(map[string]*memdb.IndexSchema, len(keys))}
	for index, key := range keys {
		schema.Indexes[index] = &memdb.IndexSchema{
			Name: index, Unique: true, AllowMissing: index != indexID, Indexer: indexer[T]{key},
		}
	}
	return schema
}

// schema describes all tables.
func schema() *memdb.DBSchema {
	tables := []*memdb.TableSchema{
		table(tableMeta, map[string]func(*metaRow) []byte{
			indexID: func(*metaRow) []byte { return metaKey() },
		}),
		table(tableSchedule, map[string]func(*scheduleRow) []byte{
			indexID: func(*scheduleRow) []byte { return metaKey() },
		}),
		table(tableCluster, map[string]func(*structs.Cluster) []byte{
			indexID: func(*structs.Cluster) []byte { return clusterKey() },
		}),
		table(tableJobs, map[string]func(*jobRow) []byte{
			indexID: func(r *jobRow) []byte { return r.key() },
			indexTree: func(r *jobRow) []byte {
				if r.Job.Tree() == "" {
					return nil
				}
				return appendUint(nameKey(r.Job.Project, r.Job.Tree()), r.CreateIndex)
			},
			indexNumber: func(r *jobRow) []byte {
				if r.Job.Number == 0 {
					return nil
				}
				return indexKey(r.Job.Number)
			},
		}),
		table(tableJobStatuses, map[string]func(*jobStatusRow) []byte{
			indexID: func(r *jobStatusRow) []byte { return indexKey(r.Status.CreateIndex) },
		}),
		table(tableSubjobs, map[string]func(*subjobRow) []byte{
			indexID: func(r *subjobRow) []byte { return subjobKey(r.Subjob.JobID, r.Subjob.Index) },
			indexQueue: func(r *subjobRow) []byte {
				if r.Subjob.State != structs.JobQueued {
					return nil
				}
				return r.queueKey()
			},
			indexWithdraw: func(r *subjobRow) []byte {
				if r.Withdraw <= 0 {
					return nil
				}
				return append(indexKey(uint64(r.Withdraw)), subjobKey(r.Subjob.JobID, r.Subjob.Index)...)
			},
			indexTurn: func(r *subjobRow) []byte {
				if r.Subjob.State != structs.JobQueued || !r.Subjob.Turn {
					return nil
				}
				return subjobKey(r.Subjob.JobID, r.Subjob.Index)
			},
			indexNomination: func(r *subjobRow) []byte {
				if r.Subjob.Nomination == nil {
					return nil
				}
				return subjobKey(r.Subjob.JobID, r.Subjob.Index)
			},
			indexDelayed: func(r *subjobRow) []byte {
				if r.Subjob.State != structs.JobQueued || r.Subjob.NotBefore <= 0 {
					return nil
				}
				return append(indexKey(uint64(r.Subjob.NotBefore)), subjobKey(r.Subjob.JobID, r.Subjob.Index)...)
			},
		}),
		table(tableAttempts, map[string]func(*attemptRow) []byte{
			indexID: func(r *attemptRow) []byte {
				return attemptKey(r.Attempt.JobID, r.Attempt.Subjob, r.Attempt.Number)
			},
			indexLive: func(r *attemptRow) []byte {
				if r.Attempt.State == structs.AttemptEnded {
					return nil
				}
				return attemptKey(r.Attempt.JobID, r.Attempt.Subjob, r.Attempt.Number)
			},
			indexDue: func(r *attemptRow) []byte {
				if r.Due <= 0 || r.Attempt.State != structs.AttemptRunning {
					return nil
				}
				return append(indexKey(uint64(r.Due)), attemptKey(r.Attempt.JobID, r.Attempt.Subjob, r.Attempt.Number)...)
			},
		}),
		table(tableAllocs, map[string]func(*structs.Allocation) []byte{
			indexID: func(a *structs.Allocation) []byte { return idKey(a.ID) },
			indexGang: func(a *structs.Allocation) []byte {
				return rankKey(a.JobID, a.Subjob, a.Attempt, a.Rank)
			},
			indexNode: func(a *structs.Allocation) []byte { return nodeAllocKey(a.NodeID, a.OccupiesNode(), a.ID) },
		}),
		table(tableNodes, map[string]func(*structs.Node) []byte{
			indexID:   func(n *structs.Node) []byte { return idKey(n.ID) },
			indexName: func(n *structs.Node) []byte { return nameKey(n.Name, n.ID) },
		}),
		table(tableWaiting, map[string]func(*Waiting) []byte{
			indexID: func(w *Waiting) []byte { return waiter{w.Project, w.User, w.Access}.key() },
		}),
		table(tableUsage, map[string]func(*structs.Usage) []byte{
			indexID: func(u *structs.Usage) []byte { return idKey(u.NodeID) },
		}),
		table(tableTokens, map[string]func(*structs.Token) []byte{
			indexID:   func(t *structs.Token) []byte { return idKey(t.ID) },
			indexHash: func(t *structs.Token) []byte { return t.Hash },
		}),
		table(tableJoinTokens, map[string]func(*structs.JoinToken) []byte{
			indexID: func(t *structs.JoinToken) []byte { return idKey(t.ID) },
		}),
		table(tableIdempotency, map[string]func(*keyRow) []byte{
			indexID: func(r *keyRow) []byte { return []byte(r.Key) },
		}),
		table(tablePools, map[string]func(*structs.Pool) []byte{
			indexID: func(p *structs.Pool) []byte { return idKey(p.Name) },
		}),
		table(tableProjects, map[string]func(*structs.Project) []byte{
			indexID: func(p *structs.Project) []byte { return idKey(p.Name) },
		}),
		table(tableHoldings, map[string]func(*structs.ProjectUsage) []byte{
			indexID: func(u *structs.ProjectUsage) []byte { return idKey(u.Project) },
		}),
		table(tableUsers, map[string]func(*structs.User) []byte{
			indexID: func(u *structs.User) []byte { return idKey(u.Name) },
		}),
		table(tablePasswords, map[string]func(*structs.Password) []byte{
			indexID: func(p *structs.Password) []byte { return idKey(p.User) },
		}),
		table(tableSecrets, map[string]func(*structs.Secret) []byte{
			indexID: func(s *structs.Secret) []byte { return secretKey(s.Ref()) },
		}),
		table(tableSecretKeys, map[string]func(*structs.SecretKeyring) []byte{
			indexID: func(*structs.SecretKeyring) []byte { return metaKey() },
		}),
		table(tableNotify, map[string]func(*structs.NotifySettings) []byte{
			indexID: func(s *structs.NotifySettings) []byte { return idKey(s.User) },
		}),
		table(tableNotifications, map[string]func(*structs.Notification) []byte{
			indexID:      func(n *structs.Notification) []byte { return nameKey(n.User, n.ID) },
			indexCreated: func(n *structs.Notification) []byte { return append(indexKey(n.MadeIndex), nameKey(n.User, n.ID)...) },
			indexDelayed: func(n *structs.Notification) []byte {
				due := n.Due()
				if due == 0 {
					return nil
				}
				return append(indexKey(uint64(due)), nameKey(n.User, n.ID)...)
			},
		}),
		table(tableNotifyMark, map[string]func(*structs.NotifyMark) []byte{
			indexID: func(*structs.NotifyMark) []byte { return metaKey() },
		}),
		table(tableSettings, map[string]func(*structs.Settings) []byte{
			indexID: func(*structs.Settings) []byte { return metaKey() },
		}),
		table(tableServices, map[string]func(*structs.ServiceAccount) []byte{
			indexID: func(a *structs.ServiceAccount) []byte { return nameKey(a.Project, a.Name) },
		}),
		table(tableCode, map[string]func(*structs.CodeTree) []byte{
			indexID: func(c *structs.CodeTree) []byte { return nameKey(c.Project, c.Digest) },
		}),
		table(tableData, map[string]func(*structs.DataObject) []byte{
			indexID:   func(o *structs.DataObject) []byte { return dataKey(o.Ref()) },
			indexName: func(o *structs.DataObject) []byte { return appendString(nameKey(o.Kind, o.Name), o.Project) },
			indexLive: func(o *structs.DataObject) []byte {
				if !o.Uploads() {
					return nil
				}
				return dataKey(o.Ref())
			},
		}),
		table(tableImages, map[string]func(*structs.ImageRecord) []byte{
			indexID: func(i *structs.ImageRecord) []byte { return idKey(i.Name) },
		}),
		table(tableTemplates, map[string]func(*structs.Template) []byte{
			indexID: func(t *structs.Template) []byte { return templateKey(t.Ref()) },
		}),
		table(tableForecasts, map[string]func(*forecastRow) []byte{
			indexID:      func(r *forecastRow) []byte { return attemptKey(r.JobID, r.Subjob, r.Attempt) },
			indexCreated: func(r *forecastRow) []byte { return indexKey(r.Seq) },
			indexEnded: func(r *forecastRow) []byte {
				if r.Ended == 0 {
					return nil
				}
				return appendUint(indexKey(r.Ended), r.Seq)
			},
		}),
	}
	for _, one := range tables {
		switch one.Name {
		case tableProjects:
			one.Indexes[indexMember] = &memdb.IndexSchema{Name: indexMember, Unique: true, AllowMissing: true, Indexer: memberIndexer{}}
		case tableJobs:
			one.Indexes[indexData] = &memdb.IndexSchema{Name: indexData, Unique: true, AllowMissing: true, Indexer: usesIndexer{}}
		case tableSubjobs:
			one.Indexes[indexPending] = &memdb.IndexSchema{Name: indexPending, Unique: true, AllowMissing: true, Indexer: pendingIndexer{}}
		case tableUsers:
			one.Indexes[indexIdentity] = &memdb.IndexSchema{Name: indexIdentity, Unique: true, AllowMissing: true, Indexer: identityIndexer{}}
		}
	}
	all := &memdb.DBSchema{Tables: make(map[string]*memdb.TableSchema, len(tables))}
	for _, one := range tables {
		all.Tables[one.Name] = one
	}
	return all
}

// Keys. Strings end with a zero byte, which ids and names may not hold, and
// numbers are big-endian, so that keys sort as their parts do.

func metaKey() []byte    { return []byte("meta") }
func clusterKey() []byte { return []byte("cluster") }

func idKey(id string) []byte { return appendString(make([]byte, 0, len(id)+2), id) }

func indexKey(index uint64) []byte { return appendUint(make([]byte, 0, 8), index) }

func nameKey(first, second string) []byte {
	return appendString(appendString(make([]byte, 0, len(first)+len(second)+10), first), second)
}

// secretKey has the secrets of one scope stand together: of projects, then of users.
func secretKey(ref structs.SecretRef) []byte {
	return appendString(secretScopeKey(ref.Project, ref.User), ref.Name)
}

func secretScopeKey(project, user string) []byte {
	kind, name := byte('p'), project
	if user != "" {
		kind, name = 'u', user
	}
	return appendString(append(make([]byte, 0, len(name)+structs.SecretNameMax+3), kind), name)
}

// templateKey has the templates of a project stand together, and before those that its
// members have for themselves.
func templateKey(ref structs.TemplateRef) []byte {
	return appendString(nameKey(ref.Project, ref.User), ref.Name)
}

// dataKey has the data of a project stand together, and of that those of a kind.
func dataKey(id structs.DataID) []byte {
	return appendString(nameKey(id.Project, id.Kind), id.Name)
}

func subjobKey(jobID string, subjob int) []byte {
	return appendUint(appendString(make([]byte, 0, len(jobID)+9), jobID), uint64(subjob))
}

func attemptKey(jobID string, subjob int, number uint64) []byte {
	key := appendString(make([]byte, 0, len(jobID)+25), jobID)
	return appendUint(appendUint(key, uint64(subjob)), number)
}

func rankKey(jobID string, subjob int, attempt uint64, rank int) []byte {
	return appendUint(attemptKey(jobID, subjob, attempt), uint64(rank))
}

// queueKey sorts higher tiers first, then by place, then by subjob; behind all of them
// those that are held.
func (r *subjobRow) queueKey() []byte {
	key := tierKey(r.Tier, len(r.Subjob.JobID)+14)
	if r.Subjob.Held() {
		key = append(key[:0], pendingTier, key[0])
	}
	key = appendString(appendUint(key, r.Subjob.Place), r.Subjob.JobID)
	return binary.BigEndian.AppendUint32(key, uint32(r.Subjob.Index)) // far above structs.BatchCountMax
}

// pendingTier begins the queueKey of what is held: behind every tier.
const pendingTier = 255

// tierKey begins every queueKey of a tier; more bytes are to follow.
func tierKey(tier, more int) []byte { return append(make([]byte, 0, more+1), byte(pendingTier-1-tier)) }

func nodeAllocKey(nodeID string, holds bool, allocID string) []byte {
	return appendString(append(appendString(make([]byte, 0, len(nodeID)+len(allocID)+3), nodeID), occupiesByte(holds)), allocID)
}

// occupantsKey begins the keys of the allocations that hold resources of a node.
func occupantsKey(nodeID string) []byte { return append(idKey(nodeID), occupiesByte(true)) }

func occupiesByte(holds bool) byte {
	if holds {
		return 0
	}
	return 1
}

// idempotencyKey joins user and key so that no two pairs look alike.
func idempotencyKey(user, key string) string { return user + "\x00" + key }

// onceKey begins as no user's name does.
func onceKey(once string) string { return "\x00once\x00" + once }

func appendString(key []byte, text string) []byte { return append(append(key, text...), 0) }

func appendUint(key []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(key, n) }
