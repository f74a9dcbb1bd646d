package trace

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Workload shapes a synthetic trace. The zero value of a field means its
// default. A caller that takes values from people refuses those above the bounds below.
type Workload struct {
	Seed     uint64
	Jobs     int // 10,000
	Days     int // over which they are submitted; 30
	Users    int // 60
	Pools    int // 3, of different sizes
	Nodes    int // of all pools together; 24
	NodeGPUs int // 8
	// Load is the share of the pools' device time that the jobs would take if
	// none waited, in per cent; 85. Run times are stretched to meet it.
	Load int
}

// Bounds of Workload.
const (
	GenerateDaysMax     = 3660
	GenerateUsersMax    = 100_000
	GenerateNodesMax    = 100_000
	GenerateNodeGPUsMax = 1024
	GenerateLoadMax     = 1000
)

func (w Workload) withDefaults() Workload {
	w.Jobs = cmp.Or(w.Jobs, 10_000)
	w.Days = cmp.Or(w.Days, 30)
	w.Users = cmp.Or(w.Users, 60)
	w.Pools = cmp.Or(w.Pools, 3)
	w.Nodes = cmp.Or(w.Nodes, 24)
	w.NodeGPUs = cmp.Or(w.NodeGPUs, 8)
	w.Load = cmp.Or(w.Load, 85)
	w.Pools = min(w.Pools, w.Nodes)
	return w
}

const day = 24 * time.Hour

// Generate makes a trace and the pools that it is for. The same workload makes
// the same trace on every machine of one architecture.
//
// What it imitates: users of very different zeal with a home pool, working
// hours and quiet weekends; sessions in which one experiment is submitted
// several times in a row, with little or much variation; run times that differ
// by orders of magnitude between experiments and little within one; runs that
// crash early, are killed, or hit their limit; gangs of powers of two up to
// several nodes; and time limits as people choose them: round, often the same
// for everything, usually far more than is needed.
func Generate(w Workload) (*Trace, []Pool) {
	w = w.withDefaults()
	g := &generator{w: w, rng: rand.New(rand.NewPCG(w.Seed, 0x7472616365))}
	g.makePools()
	g.makeUsers()
	t := &Trace{Jobs: make([]Job, 0, w.Jobs)}
	for len(t.Jobs) < w.Jobs {
		t.Jobs = append(t.Jobs, g.session(w.Jobs-len(t.Jobs))...)
	}
	g.stretch(t.Jobs)
	sortJobs(t.Jobs)
	for i := range t.Jobs {
		t.Jobs[i].ID = fmt.Sprintf("j%06d", i+1)
	}
	return t, g.pools
}

type generator struct {
	w     Workload
	rng   *rand.Rand
	pools []Pool
	users []person
	zeal  []float64 // running sums over users, for drawing one
	plans []plan    // by job, as they were made
}

// person is a user with habits.
type person struct {
	name        string
	pool        int
	begins      float64 // hour of the day at which work begins
	hours       float64 // of work on a day
	weekend     float64 // chance to work on a day of the weekend
	careless    float64 // share of runs that crash early
	impatient   float64 // share of runs that are killed
	limitHabit  int
	limitFactor float64
	experiments []experiment
}

// The ways in which people choose time limits.
const (
	limitAlwaysSame = iota // one large value for everything
	limitGenerous          // several times what the experiment usually takes
	limitCareful           // near what it usually takes
)

// experiment is what a user submits again and again.
type experiment struct {
	name   string
	gpus   int
	median float64 // seconds
	spread float64 // of the logarithm, within the experiment
}

// plan is the length of a run before it is stretched, and how it ends.
type plan struct {
	person, pool int
	median, full float64 // seconds: of the experiment, and of this run
	cut          float64 // share of the run that happens, 1: all
	crash        float64 // seconds after which it crashes, 0: it does not
}

// makePools assigns half of the nodes to the first pool, half of the rest to the
// second, and so on, at least one to each.
func (g *generator) makePools() {
	left := g.w.Nodes
	for i := range g.w.Pools {
		nodes := left
		if rest := g.w.Pools - i - 1; rest > 0 {
			nodes = max(1, min((left+1)/2, left-rest))
		}
		left -= nodes
		g.pools = append(g.pools, Pool{Name: fmt.Sprintf("vc%d", i+1), Nodes: nodes, GPUs: g.w.NodeGPUs})
	}
}

func (g *generator) makeUsers() {
	total := 0.0
	for i := range g.w.Users {
		p := person{
			name: fmt.Sprintf("user%02d", i+1), pool: g.homePool(),
			begins: 7 + 5*g.rng.Float64(), hours: 6 + 7*g.rng.Float64(), weekend: 0.35 * g.rng.Float64(),
			careless: 0.05 + 0.25*g.rng.Float64(), impatient: 0.15 * g.rng.Float64(),
			limitHabit: g.pick(0.35, 0.5, 0.15), limitFactor: 2 + 8*g.rng.Float64()*g.rng.Float64()*2,
		}
		for k := range 1 + g.rng.IntN(6) {
			p.experiments = append(p.experiments, g.experiment(p.pool, k))
		}
		g.users = append(g.users, p)
		total += 1 / math.Pow(float64(i+1), 0.9)
		g.zeal = append(g.zeal, total)
	}
}

// homePool draws a pool by its size.
func (g *generator) homePool() int {
	n := g.rng.IntN(g.w.Nodes)
	for i, pool := range g.pools {
		if n -= pool.Nodes; n < 0 {
			return i
		}
	}
	return 0
}

// experiment draws what a user works on: mostly one device, seldom several
// nodes, and never more than half of the pool.
func (g *generator) experiment(pool, k int) experiment {
	sizes := []int{1, 2, 4, 8, 16, 32}
	gpus := sizes[g.pick(0.62, 0.1, 0.12, 0.11, 0.04, 0.01)]
	most := max(1, g.pools[pool].Nodes*g.pools[pool].GPUs/2)
	names := []string{"resnet", "bert", "gpt", "llama", "vit", "unet", "whisper", "eval", "sweep", "debug"}
	return experiment{
		name: fmt.Sprintf("%s-%d", names[g.rng.IntN(len(names))], k+1), gpus: min(gpus, most),
		median: math.Exp(7.2 + 1.9*g.rng.NormFloat64()), spread: 0.15 + 0.75*g.rng.Float64(),
	}
}

// pick draws an index with the given weights, which sum to one.
func (g *generator) pick(weights ...float64) int {
	x := g.rng.Float64()
	for i, weight := range weights {
		if x -= weight; x < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// session is one sitting of one user: an experiment submitted once or several
// times, the runs seconds or minutes apart.
func (g *generator) session(most int) []Job {
	at := g.rng.Float64() * g.zeal[len(g.zeal)-1]
	who, _ := slices.BinarySearch(g.zeal, at)
	who = min(who, len(g.users)-1)
	p := &g.users[who]
	kind := p.experiments[g.rng.IntN(len(p.experiments))]
	start := g.moment(p)
	count := 1
	if g.rng.Float64() < 0.3 {
		count += 1 + int(g.rng.ExpFloat64()*6)
	}
	var jobs []Job
	for range min(count, most) {
		jobs = append(jobs, Job{
			User: p.name, Group: g.pools[p.pool].Name, Name: kind.name, Submit: start.Truncate(time.Second),
			Start: -1, GPUs: kind.gpus, Nodes: (kind.gpus + g.w.NodeGPUs - 1) / g.w.NodeGPUs,
		})
		g.plans = append(g.plans, g.run(who, kind))
		start += time.Duration(g.rng.ExpFloat64() * float64(40*time.Second))
	}
	return jobs
}

// moment draws when a user sits down: on a day they work, within their hours,
// seldom late at night.
func (g *generator) moment(p *person) time.Duration {
	for {
		date := g.rng.IntN(g.w.Days)
		if date%7 >= 5 && g.rng.Float64() > p.weekend { // the trace begins on a Monday
			continue
		}
		hour := p.begins + p.hours*g.rng.Float64()
		if g.rng.Float64() < 0.07 {
			hour = 24 * g.rng.Float64()
		}
		return time.Duration(date)*day + time.Duration(hour*float64(time.Hour))
	}
}

// run draws one run of an experiment.
func (g *generator) run(who int, kind experiment) plan {
	p := &g.users[who]
	made := plan{person: who, pool: p.pool, median: kind.median, cut: 1, full: kind.median * math.Exp(kind.spread*g.rng.NormFloat64())}
	switch x := g.rng.Float64(); {
	case x < p.careless:
		made.crash = 5 + g.rng.ExpFloat64()*90
	case x < p.careless+p.impatient:
		made.cut = g.rng.Float64()
	}
	return made
}

// stretch scales the run times of each pool so that its load is what was
// asked for, fixes limits, and cuts the runs that reach theirs. The longest
// runs are bounded, so a few rounds are needed.
func (g *generator) stretch(jobs []Job) {
	scale := make([]float64, len(g.pools))
	for i := range scale {
		scale[i] = 1
	}
	for range 12 {
		taken := make([]float64, len(g.pools))
		for i := range jobs {
			taken[g.plans[i].pool] += float64(jobs[i].GPUs) * g.plans[i].seconds(scale[g.plans[i].pool])
		}
		for i, pool := range g.pools {
			want := float64(pool.Nodes*pool.GPUs) * float64(g.w.Days) * day.Seconds() * float64(g.w.Load) / 100
			if taken[i] > 0 {
				scale[i] = min(1e4, max(1e-4, scale[i]*want/taken[i]))
			}
		}
	}
	for i := range jobs {
		g.settle(&jobs[i], g.plans[i], scale[g.plans[i].pool])
	}
}

// runMax bounds one run, in seconds.
const runMax = 14 * 24 * 3600

func (p plan) seconds(scale float64) float64 {
	length := min(runMax, max(1, p.full*scale)) * p.cut
	if p.crash > 0 {
		length = min(length, p.crash)
	}
	return max(1, length)
}

// settle sets the run time, limit and end of a job.
func (g *generator) settle(job *Job, p plan, scale float64) {
	job.Duration = time.Duration(p.seconds(scale)) * time.Second
	job.Limit = g.limit(&g.users[p.person], min(runMax, p.median*scale))
	job.State = "Pass"
	switch {
	case job.Duration >= job.Limit:
		job.Duration, job.State = job.Limit, "Timeout"
	case p.crash > 0:
		job.State = "Failed"
	case p.cut < 1:
		job.State = "Killed"
	}
}

// limit chooses a round number of hours as people do.
func (g *generator) limit(p *person, usual float64) time.Duration {
	round := []time.Duration{
		time.Hour / 2, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
		day, 2 * day, 3 * day, 7 * day, 14 * day, 21 * day,
	}
	want := usual * 1.5
	switch p.limitHabit {
	case limitAlwaysSame:
		want = max(want, 2*day.Seconds())
	case limitGenerous:
		want = usual * p.limitFactor * (1 + g.rng.Float64())
	}
	for _, limit := range round {
		if limit.Seconds() >= want {
			return limit
		}
	}
	return round[len(round)-1]
}
