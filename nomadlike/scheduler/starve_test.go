package scheduler

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// seeds is how many random runs each of the long properties makes.
var seeds = flag.Int("seeds", 3, "random runs of each kind of crowd; more for a long search")

// projectsOfSiege is how many projects submit.
const projectsOfSiege = 3

// siege is a cluster under siege: more small work than it can do arrives all the
// time, and gangs of up to all its nodes now and then. What the board expects of
// run times may be true or false.
type siege struct {
	chance  *rand.Rand
	board   *Board
	nodes   int
	cpu     int
	quota   int // cores that a project may hold, 0: any
	longest int // minutes that a job runs at most
	backlog int // small jobs that wait at least
	now     structs.UnixNano
	count   int
	ends    map[string]int // running job -> the minute in which it ends
	small   int            // that wait
	large   map[string]*waitingGang
	worst   float64 // the longest wait, as a part of what is allowed
	started int     // large gangs
}

// waitingGang is a large gang that waits.
type waitingGang struct {
	since int // minute
	limit int // minutes that it may wait
}

// kindOfSiege is what the board expects of run times, and by how many times it
// may expect too much.
type kindOfSiege struct {
	expect func(s *siege, job *structs.Job) time.Duration
	most   int // how many times longer than any job runs
	fair   bool
	quota  bool // each project may hold somewhat more than half of the cluster
}

func kindsOfSiege() map[string]kindOfSiege {
	return map[string]kindOfSiege{
		"nothing known": {},
		"too short":     {expect: func(*siege, *structs.Job) time.Duration { return time.Second }, most: 1},
		"too long":      {expect: func(s *siege, _ *structs.Job) time.Duration { return 3 * time.Duration(s.longest) * time.Minute }, most: 3},
		"anything": {expect: func(s *siege, job *structs.Job) time.Duration {
			return time.Duration(1+portStart(job.ID, 0, 0, 3)%uint64(3*s.longest*60)) * time.Second
		}, most: 3},
		"fair share": {expect: func(s *siege, job *structs.Job) time.Duration {
			return time.Duration(1+portStart(job.ID, 0, 0, 5)%uint64(s.longest*60)) * time.Second
		}, most: 1, fair: true},
		"quota, nothing known": {quota: true},
		"quota": {expect: func(s *siege, job *structs.Job) time.Duration {
			return time.Duration(1+portStart(job.ID, 0, 0, 7)%uint64(s.longest*60)) * time.Second
		}, most: 1, quota: true},
	}
}

func newSiege(kind kindOfSiege, settings Settings, seed uint64) *siege {
	s := &siege{
		chance: rand.New(rand.NewPCG(seed, 11)), now: structs.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		ends: map[string]int{}, large: map[string]*waitingGang{},
	}
	s.nodes, s.cpu, s.longest = 2+s.chance.IntN(7), 4+s.chance.IntN(13), 2+s.chance.IntN(14)
	s.backlog = s.nodes
	settings.Quiet, settings.Alone = true, true
	settings.Reservations += s.chance.IntN(4)
	if kind.expect != nil {
		settings.Runtime = func(job *structs.Job, _ int) time.Duration { return kind.expect(s, job) }
	}
	s.board = NewBoard(settings)
	for i := range s.nodes {
		n := testNode(fmt.Sprintf("n%d", i), float64(s.cpu), 64<<30)
		n.Devices = testDevices(s.chance.IntN(3)*2, "nvidia/gpu", "A800")
		if i > 0 && i%3 == 0 {
			n.Pool = "p"
		}
		s.board.PutNode(n.ID, n, nil)
	}
	if kind.quota {
		s.quota = s.nodes * s.cpu * 6 / 10
		for i := range projectsOfSiege {
			name := fmt.Sprintf("project-%d", i)
			s.board.PutProject(name, &structs.Project{Name: name, Quotas: []structs.Quota{{Kind: structs.QuotaCPU, Maximum: &s.quota}}})
		}
	}
	if kind.fair {
		s.board.PutPool(structs.PoolDefault, &structs.Pool{Name: structs.PoolDefault, Order: structs.OrderFair, HalfLife: structs.Duration(time.Hour)})
	}
	return s
}

func (s *siege) submit(job *structs.Job) {
	s.count++
	s.board.Submit(job, &structs.Subjob{JobID: job.ID, State: structs.JobQueued, CreateIndex: uint64(s.count)})
}

func (s *siege) smallJob() *structs.Job {
	j := testJob(fmt.Sprintf("s%06d", s.count), 1, float64(1+s.chance.IntN(max(1, s.cpu/2))), 1<<30)
	j.Project = fmt.Sprintf("project-%d", s.chance.IntN(projectsOfSiege))
	if s.chance.IntN(4) == 0 && s.nodes > 3 {
		j.Placement.Pool = "p"
	}
	return j
}

// largeJob wants at least half of the nodes that it may have, each more than
// half.
func (s *siege) largeJob() *structs.Job {
	most, pool := s.nodes, ""
	if inP := (s.nodes - 1) / 3; inP > 0 && s.chance.IntN(4) == 0 {
		most, pool = inP, "p"
	}
	j := testJob(fmt.Sprintf("large-%d", s.count), most-s.chance.IntN(most/2+1), float64(s.cpu/2+1+s.chance.IntN(s.cpu/2)), 1<<30)
	for s.quota > 0 && j.Nodes > 1 && j.Nodes*int(j.Resources[0].CPU) > s.quota {
		j.Nodes--
	}
	j.Project, j.Placement.Pool = fmt.Sprintf("project-%d", s.chance.IntN(projectsOfSiege)), pool
	return j
}

// minute lets one minute pass; it reports what went wrong, if anything did.
func (s *siege) minute(at int, kind kindOfSiege, more bool) error {
	for _, id := range slices.Sorted(maps.Keys(s.ends)) {
		if s.ends[id] <= at {
			s.board.End(id, 0)
			delete(s.ends, id)
		}
	}
	for s.small < s.backlog {
		s.submit(s.smallJob())
		s.small++
	}
	if more && len(s.large) < 3 && s.chance.IntN(20) == 0 {
		j := s.largeJob()
		// Whoever stands first starts after it was promised a time, that time has
		// slipped by as much again, and what runs then has ended.
		turn := 2*kind.most*s.longest + int(promiseSlack.Minutes()) + s.longest + 1
		s.large[j.ID] = &waitingGang{since: at, limit: (s.small + len(s.large) + 1) * turn}
		s.submit(j)
	}
	for {
		plan := s.board.Pass(s.now, 1)
		if found := s.board.CheckInvariants(); len(found) > 0 {
			return fmt.Errorf("the board is not sound: %s", found)
		}
		for _, g := range plan.Gangs {
			s.ends[g.JobID] = at + 1 + s.chance.IntN(s.longest)
			s.board.Started(g.JobID, g.Subjob, s.now)
			if wait := s.large[g.JobID]; wait != nil {
				s.worst = max(s.worst, float64(at-wait.since)/float64(wait.limit))
				delete(s.large, g.JobID)
				s.started++
			} else {
				s.small--
			}
		}
		if len(plan.Gangs) == 0 {
			break
		}
	}
	for id, wait := range s.large {
		if at-wait.since > wait.limit {
			return fmt.Errorf("minute %d: %s has waited for %d minutes, %d are allowed", at, id, at-wait.since, wait.limit)
		}
	}
	s.now = s.now.Add(time.Minute)
	return s.halfPlaced()
}

// halfPlaced reports anything that is held but by a whole gang that runs.
func (s *siege) halfPlaced() error {
	cpu, allocs := map[string]int64{}, map[string]int{}
	for r := range s.board.Running() {
		if len(r.Nodes) < r.Job.NodesMin() || len(r.Nodes) > r.Job.Nodes {
			return fmt.Errorf("%s runs on %d nodes and wants %d", r.Job.Name, len(r.Nodes), r.Job.Nodes)
		}
		if len(slices.Compact(slices.Sorted(slices.Values(r.Nodes)))) != len(r.Nodes) {
			return fmt.Errorf("%s has two ranks on one of %v", r.Job.Name, r.Nodes)
		}
		for rank, node := range r.Nodes {
			cpu[node] += structs.MilliCPU(r.Job.SpecOf(r.Spec, rank, len(r.Nodes)).CPU)
			allocs[node]++
		}
	}
	for node, usage := range s.board.Nodes() {
		held, count := int64(0), 0
		if usage != nil {
			held, count = structs.MilliCPU(usage.CPU), usage.Allocs
		}
		if held != cpu[node.ID] || count != allocs[node.ID] || held > structs.MilliCPU(node.Capacity.CPU) {
			return fmt.Errorf("%s gives %d thousandths of cores to %d, its gangs have %d for %d", node.Name, held, count, cpu[node.ID], allocs[node.ID])
		}
	}
	return nil
}

// TestLargeGangsStart: while more small work arrives than the cluster can do,
// every large gang starts within a bounded time, whatever the board expects of
// run times, and nothing is ever half placed.
func TestLargeGangsStart(t *testing.T) {
	const minutes = 600
	for name, kind := range kindsOfSiege() {
		t.Run(name, func(t *testing.T) {
			worst, started := 0.0, 0
			for seed := range uint64(*seeds) {
				s := newSiege(kind, Settings{Reservations: 1}, seed)
				for at := 0; at < minutes || len(s.large) > 0; at++ {
					if err := s.minute(at, kind, at < minutes); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
				worst, started = max(worst, s.worst), started+s.started
			}
			if started < 3**seeds {
				t.Errorf("only %d large gangs came", started)
			}
			t.Logf("%d large gangs started, the slowest after %.0f %% of what is allowed", started, 100*worst)
		})
	}
}

// TestSiegeIsReal: without reservations large gangs do starve in the same crowds,
// so the property above could fail.
func TestSiegeIsReal(t *testing.T) {
	starved := 0
	kind := kindsOfSiege()["nothing known"]
	for seed := range uint64(6) {
		s := newSiege(kind, Settings{Reservations: -9}, seed)
		for at := range 1200 {
			if err := s.minute(at, kind, at < 600); err != nil {
				starved++
				break
			}
		}
	}
	if starved == 0 {
		t.Error("no large gang starves without a reservation: the crowds are too thin to show anything")
	}
}
