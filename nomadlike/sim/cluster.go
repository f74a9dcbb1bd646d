package sim

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"nomadlike/nomadlike/structs"
)

// Config shapes a cluster. The zero value of a field means its default.
type Config struct {
	Seed    uint64
	Servers int           // replicas of the state; 3
	Nodes   int           // machines; 5
	Jobs    int           // submitted over Busy; 25
	Busy    time.Duration // virtual time with faults and submissions; 2 minutes
	Settle  time.Duration // virtual time without faults to come to rest; 10 minutes
	Calm    bool          // no faults at all
	Break   Planted       // a defect planted on purpose, to test the checkers
	Log     io.Writer     // everything that happens, a line each; nil: nowhere
}

// Planted names a defect that a run plants into the cluster, so that tests
// can show that the checkers see it.
type Planted string

// The planted defects.
const (
	PlantNothing        Planted = ""
	PlantEarlyStart     Planted = "a node starts ranks before the barrier opens"
	PlantOldAttempts    Planted = "a returning node keeps what is not its any more"
	PlantLostCommit     Planted = "an acknowledged entry is dropped on one replica"
	PlantWallClock      Planted = "one replica reads its own clock while applying"
	PlantForgottenAck   Planted = "a submission is acknowledged and never proposed"
	PlantHastyFence     Planted = "strict jobs do not wait for leases"
	PlantHastyRelease   Planted = "a node tells that a debug hold is over before it is"
	PlantForgottenEpoch Planted = "a node tells what an old attempt saved as the new one's"
	PlantChargedInfra   Planted = "a node calls its own faults the job's"
	PlantEagerStop      Planted = "a node that loses its server stops what it runs"
	PlantUnstableChoice Planted = "the plan depends on something outside its input"
	PlantOldSnapshot    Planted = "a replica comes back from an old snapshot and takes it for the newest"
	PlantForgottenJob   Planted = "the queue passes one job over for ever"
	PlantShiftedLog     Planted = "a node counts the bytes of a log from the oldest that it has"
	PlantGreedyRotation Planted = "a node keeps less of a log than it should"
	PlantRewrittenLog   Planted = "a supervisor that comes back writes the newest log file anew"
	PlantForgottenRange Planted = "a job is admitted without the least of its range of nodes"
	PlantTimidGrowth    Planted = "the queue never starts a gang anew on more nodes"
	PlantLateWindow     Planted = "a window of maintenance is taken to begin later than it was asked for"
	PlantIdleSweep      Planted = "nobody begins windows of maintenance"
)

func (c Config) withDefaults() Config {
	if c.Servers == 0 {
		c.Servers = 3
	}
	if c.Nodes == 0 {
		c.Nodes = 5
	}
	if c.Jobs == 0 {
		c.Jobs = 25
	}
	if c.Busy == 0 {
		c.Busy = 2 * time.Minute
	}
	if c.Settle == 0 {
		c.Settle = 10 * time.Minute
	}
	return c
}

// Outcome is what a run found.
type Outcome struct {
	Seed     uint64
	Problems []string // broken invariants, in words, with virtual times
	Trace    uint64   // hash of everything that happened
	Commits  uint64   // entries of the log
	Ended    map[structs.JobState]int
	Faults   int
	Grown    int // attempts on more nodes than the one before had left
	Virtual  time.Duration
}

// problemsMax ends a run that has found enough.
const problemsMax = 20

// eventsMax bounds one run: a cluster that never rests is a defect.
const eventsMax = 3_000_000

// Cluster is one simulated cluster.
type Cluster struct {
	config  Config
	rng     *rand.Rand
	now     time.Duration // since the cluster began
	agenda  agenda
	order   uint64
	trace   traceHash
	outcome Outcome

	log    *oracle
	leader *leader
	nodes  []*machine
	people *people
	healed bool

	stood     map[attemptOf]standing      // how subjobs stood after the last entry
	small     map[attemptOf]int           // ranks left of attempts with fewer than their job asked for
	could     map[attemptOf]time.Duration // since when attempts could have more nodes
	dice      *rand.Rand                  // of the logs
	windows   []*window                   // of maintenance, in the order in which they were planned
	operators *rand.Rand                  // dice of those who plan windows
	disk      string                      // a directory that holds the logs
	streams   []*stream
}

// origin is the wall clock at which every cluster begins.
const origin = structs.UnixNano(1_800_000_000_000_000_000)

// New builds a cluster; nothing has happened in it yet.
func New(config Config) *Cluster {
	config = config.withDefaults()
	w := &Cluster{config: config, rng: rand.New(rand.NewPCG(config.Seed, 0x6e6f6d61646c696b)), trace: newTraceHash()}
	w.operators = rand.New(rand.NewPCG(config.Seed, 0x77696e646f7773))
	w.dice = rand.New(rand.NewPCG(config.Seed, 0x6c6f6773))
	w.stood, w.small = make(map[attemptOf]standing), make(map[attemptOf]int)
	w.outcome = Outcome{Seed: config.Seed, Ended: make(map[structs.JobState]int)}
	w.log = newOracle(w)
	w.leader = newLeader(w)
	for i := range config.Nodes {
		w.nodes = append(w.nodes, newMachine(w, i))
	}
	w.people = newPeople(w)
	return w
}

// Run lets the cluster happen and returns what the checkers found. The logs of its
// ranks are in a temporary directory meanwhile.
func Run(config Config) Outcome {
	w := New(config)
	var err error
	if w.disk, err = os.MkdirTemp(logsPlace(), "nomadlike-sim-"); err != nil {
		w.fail("make a place for logs: %v", err)
		return w.outcome
	}
	defer w.tidy()
	w.people.begin()
	w.planWindows()
	for _, node := range w.nodes {
		node.boot()
		node.watchLease()
	}
	w.leader.begin()
	w.watchGrowth()
	if !w.config.Calm {
		w.after(w.span(time.Second, 5*time.Second), w.fault)
	}
	w.after(w.config.Busy, w.heal)
	end := w.config.Busy + w.config.Settle
	for steps := 0; len(w.agenda) > 0 && len(w.outcome.Problems) < problemsMax; steps++ {
		if steps == eventsMax {
			w.fail("the cluster does not come to rest: %d events", eventsMax)
			break
		}
		next := heap.Pop(&w.agenda).(*happening)
		if next.at > end {
			break
		}
		w.now = next.at
		next.do()
		if w.healed && w.rested() {
			break
		}
	}
	w.finalChecks()
	w.outcome.Trace = w.trace.sum()
	w.outcome.Commits = w.log.committed()
	w.outcome.Virtual = w.now
	return w.outcome
}

// logsPlace returns where logs are written: in memory where the machine has a file
// system there, for a history writes thousands of small files, and no history is
// about what a disk keeps; power that is lost is played by hand.
func logsPlace() string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		return memory
	}
	return os.TempDir()
}

// tidy closes and removes the logs.
func (w *Cluster) tidy() {
	for _, s := range w.streams {
		s.close()
	}
	_ = os.RemoveAll(w.disk) // in the directory for temporary files
}

// wall is the wall clock that everybody shares; no decision compares the
// clocks of two machines, so one is enough.
func (w *Cluster) wall() structs.UnixNano { return origin.Add(w.now) }

// after lets something happen later.
func (w *Cluster) after(delay time.Duration, do func()) {
	w.order++
	heap.Push(&w.agenda, &happening{at: w.now + delay, order: w.order, do: do})
}

// span draws a duration.
func (w *Cluster) span(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rng.Int64N(int64(high-low)+1))
}

// chance is true with probability p.
func (w *Cluster) chance(p float64) bool { return w.rng.Float64() < p }

// note writes into the trace.
func (w *Cluster) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.trace.add(fmt.Sprintf("%d ", w.now) + line)
	if w.config.Log != nil {
		fmt.Fprintf(w.config.Log, "%12s %s\n", w.now.Round(time.Microsecond), line)
	}
}

// fail records a broken invariant.
func (w *Cluster) fail(format string, args ...any) {
	problem := fmt.Sprintf("%s: ", w.now) + fmt.Sprintf(format, args...)
	w.note("PROBLEM %s", problem)
	w.outcome.Problems = append(w.outcome.Problems, problem)
}

// happening is one entry of the agenda.
type happening struct {
	at    time.Duration
	order uint64 // of two at the same time, the first that was asked for
	do    func()
}

type agenda []*happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(*happening)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// traceHash folds everything that happened into one number.
type traceHash struct{ state uint64 }

func newTraceHash() traceHash { return traceHash{state: 14695981039346656037} }

func (t *traceHash) add(line string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(line)) // never fails
	t.state = (t.state ^ h.Sum64()) * 1099511628211
}

func (t *traceHash) sum() uint64 { return t.state }
