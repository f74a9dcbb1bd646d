package state

import "time"

// Bounds on what the state keeps and on what one command may bring.
const (
	EventsMax            = 20_000  // events of the whole cluster, oldest dropped first
	NodeEventsShare      = 2_000   // of them, told by one node
	nodeEventsSlack      = 500     // over that, before the oldest are dropped
	JobEventsMax         = 1_000   // events kept for one job beyond those
	IdempotencyKeysMax   = 50_000  // oldest dropped first
	LiveSubjobsMax       = 200_000 // subjobs that have not ended, of all jobs
	LiveUserMax          = 50_000  // of them, of one user's jobs; checked before the log
	LiveProjectMax       = 100_000 // of one project's
	NodesMax             = 20_000
	PlanGangsMax         = 16_384 // gangs of one plan
	VictimsMax           = 16_384 // attempts that end for one gang
	victimNamesMax       = 8      // of them that an event names
	ReportsMax           = 4_096  // reports of one command
	NotesMax             = 1_024  // notes of one command
	WaitsMax             = 4_096  // explanations of one command
	PastRunsMax          = 50_000 // ended attempts, oldest dropped first
	ForecastsKeptMax     = 50_000 // answers, oldest attempts dropped first
	ForecastRevisionsMax = 24     // answers about one attempt: the first, and the newest
	ForecastsMax         = 4_096  // answers of one command
	FeaturesMax          = 64     // of one answer
	PoolsMax             = 1_024
	ProjectsMax          = 4_096
	UsersMax             = 65_536
	ResealsMax           = 256    // secrets sealed anew by one command
	LedgerHoursMax       = 1_440  // buckets of a ledger: 60 days, if every hour had use
	LimitsMax            = 4_096  // attempts expired by one command
	InventoryMax         = 16_384 // allocations in a node's inventory
	NodeDevicesMax       = 1_024  // devices of one node
	ForgottenMax         = 1_024  // ended jobs that one command forgets
	idLengthMax          = 128    // bytes of an id or name used as a key
	keyLengthMax         = 256    // bytes of an idempotency key or user

	notificationSizeMax  = 16_384  // bytes of what a message holds
	descriptionLengthMax = 16_384  // bytes of a text for people
	coresMax             = 1 << 20 // of a node or a spec, so that sums stay far from the end of int64
	quotaMax             = 1 << 40 // of one kind
	infraBackoffFirst    = time.Second
	infraBackoffMax      = time.Minute
	unrunBackoffFirst    = 5 * time.Second // after a start that failed for the job's own sake
	unrunBackoffMax      = 5 * time.Minute
	infraFailuresAtOnce  = 1 // infrastructure failures of a gang that are retried without delay
)
