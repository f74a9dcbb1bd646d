package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// drawWorld makes a small cluster that is likely to be tight in one resource
// or another.
func drawWorld(t *rapid.T) *world {
	w := newWorld()
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		n := testNode(fmt.Sprintf("n%d", i), float64(rapid.IntRange(1, 8).Draw(t, "cpu")), int64(rapid.IntRange(1, 8).Draw(t, "memory"))<<30)
		n.Capacity.PortMax = n.Capacity.PortMin + rapid.IntRange(-1, 3).Draw(t, "ports")
		n.Pool = rapid.SampledFrom([]string{"", "", "p"}).Draw(t, "pool")
		if rapid.IntRange(0, 3).Draw(t, "docker") == 0 {
			n.Drivers = append(n.Drivers, "docker")
		}
		if rapid.IntRange(0, 5).Draw(t, "away") == 0 {
			n.Status = structs.NodeLost
		}
		if rapid.IntRange(0, 2).Draw(t, "gpus") == 0 {
			n.Devices = testDevices(rapid.IntRange(1, 6).Draw(t, "devices"), "nvidia/gpu", rapid.SampledFrom([]string{"A800", "A100"}).Draw(t, "model"))
			n.Devices[0].Healthy = rapid.Bool().Draw(t, "healthy")
		}
		w.addNode(n)
	}
	return w
}

func drawJob(t *rapid.T, name string) *structs.Job {
	j := testJob(name, rapid.IntRange(1, 4).Draw(t, "gang"), float64(rapid.IntRange(0, 40).Draw(t, "cpu"))/10, int64(rapid.IntRange(0, 4).Draw(t, "memory"))<<30)
	j.Priority = rapid.SampledFrom([]structs.Priority{structs.PriorityNormal, structs.PriorityNormal, structs.PriorityUrgent}).Draw(t, "priority")
	j.Task.Driver = rapid.SampledFrom([]string{"exec", "exec", "exec", "docker"}).Draw(t, "driver")
	j.Placement.SpreadOrPack = rapid.SampledFrom([]string{"pack", "spread"}).Draw(t, "place")
	switch rapid.IntRange(0, 7).Draw(t, "flavour") {
	case 0:
		j.Distributed.Mode = structs.ModePyTorch
		j.Distributed.MasterPort = rapid.SampledFrom([]int{0, 0, 2222}).Draw(t, "master")
	case 1:
		j.Resources[0].Ports = []structs.PortRequest{{Name: "http", Static: rapid.SampledFrom([]int{0, 8080, 20000}).Draw(t, "port")}}
	case 2:
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: rapid.IntRange(1, 4).Draw(t, "count"),
			Model: rapid.SampledFrom([]string{"", "A800"}).Draw(t, "model")}}
	case 3:
		j.Placement.Pool = "p"
	case 4:
		j.Placement.Nodes = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n0", "n1", "n2", "id-n3", "n9"}), 1, 4, rapid.ID).Draw(t, "on")
		j.Nodes = min(j.Nodes, len(j.Placement.Nodes))
	case 5:
		j.Resources = append(j.Resources, structs.Resources{CPU: 1, Memory: 1 << 30})
	case 6:
		j.Batch = &structs.Batch{Count: rapid.IntRange(1, 4).Draw(t, "batch")}
	}
	return j
}

// step does one random thing to the world.
func step(t *rapid.T, w *world, i int) {
	switch rapid.IntRange(0, 6).Draw(t, "step") {
	case 0, 1, 2:
		w.submit(drawJob(t, fmt.Sprintf("j%03d", i)))
	case 3, 4:
		if running := w.running(); len(running) > 0 {
			s := rapid.SampledFrom(running).Draw(t, "ends")
			state := rapid.SampledFrom([]structs.JobState{structs.JobSucceeded, structs.JobQueued}).Draw(t, "as")
			w.end(s.JobID, s.Index, state)
			if state == structs.JobQueued {
				s.NotBefore = w.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second)
			}
		}
	case 5:
		w.now = w.now.Add(time.Second)
	case 6:
		name := fmt.Sprintf("id-n%d", rapid.IntRange(0, len(w.nodes)-1).Draw(t, "node"))
		w.nodes[name].Eligibility = rapid.SampledFrom([]structs.Eligibility{structs.NodeEligible, structs.NodeCordoned}).Draw(t, "eligibility")
	}
}

// TestScheduleMatchesItsTwin drives random clusters and asserts at every step
// that the plan is the slow twin's, that the order of the snapshot does not
// matter, that Apply accepts all of it, that nothing is given twice, that gangs
// are whole, and that every waiting job has a reason that both languages know.
func TestScheduleMatchesItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		reservations := rapid.IntRange(1, 3).Draw(t, "reservations")
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			step(t, w, i)
			seed := uint64(i)
			plan := Schedule(Input{Snapshot: w, Reservations: reservations}, w.now, seed)
			if diff := gocmp.Diff(runTwin(w, reservations, seed), plan.Gangs); diff != "" {
				t.Fatalf("plan differs from the twin's (-twin +plan):\n%s", diff)
			}
			w.shuffle = rand.New(rand.NewPCG(uint64(i), 7))
			mixed := Schedule(Input{Snapshot: w, Reservations: reservations}, w.now, seed)
			w.shuffle = nil
			if diff := gocmp.Diff(plan, mixed); diff != "" {
				t.Fatalf("plan depends on the snapshot's order (-sorted +mixed):\n%s", diff)
			}
			quiet := Schedule(Input{Snapshot: w, Reservations: reservations, Quiet: true}, w.now, seed)
			if diff := gocmp.Diff(plan.Gangs, quiet.Gangs); diff != "" || len(quiet.Waits) > 0 {
				t.Fatalf("a quiet call decides otherwise:\n%s", diff)
			}
			checkHead(t, w, plan)
			w.apply(t, plan)
			w.checkNodes(t)
			w.checkGangs(t)
			checkReasons(t, w)
			if again := Schedule(Input{Snapshot: w, Reservations: reservations}, w.now, seed); len(again.Gangs) > 0 {
				t.Fatalf("a second call places %v", again.Gangs)
			}
		}
	})
}

// checkReasons asserts that every queued subjob says why it waits.
func checkReasons(t *rapid.T, w *world) {
	for job, s := range w.Queue() {
		if s.Wait == nil {
			t.Fatalf("%s/%d waits without a reason", job.Name, s.Index)
		}
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if !messages.Has(language, s.Wait.ID) {
				t.Fatalf("no %s text for %s", language, s.Wait.ID)
			}
		}
	}
}

// checkHead asserts the lemma behind "no starvation": what the plan starts
// behind the first blocked gang leaves that gang as near to starting as before.
func checkHead(t *rapid.T, w *world, plan structs.Plan) {
	var head *entry
	for _, e := range queueOf(w) {
		placed := slices.ContainsFunc(plan.Gangs, func(g structs.GangPlan) bool { return g.JobID == e.job.ID && g.Subjob == e.subjob.Index })
		if head == nil && !placed && e.subjob.NotBefore <= w.now && fitsEmptyCluster(w, e.job) {
			head = &e
		}
		if head != nil {
			break
		}
	}
	if head == nil {
		return
	}
	ahead := slices.DeleteFunc(slices.Clone(plan.Gangs), func(g structs.GangPlan) bool {
		return Compare(w.jobs[g.JobID], w.subjobs[g.JobID][g.Subjob], head.job, head.subjob) > 0
	})
	before, after := nearest(w, head.job, ahead), nearest(w, head.job, plan.Gangs)
	for i := range before {
		if after[i] < before[i] {
			t.Fatalf("jobs behind %s took from it: nearness %v became %v", head.job.Name, before, after)
		}
	}
}

func fitsEmptyCluster(w *world, job *structs.Job) bool {
	walk := &walk{hall: newHall(seatsOf(w)), shapes: shapes{byKey: map[string]*shape{}}}
	return walk.judge(walk.of(job)).reason == nil
}

// nearest gives the nearness of the nodes that would be kept for the gang, that
// of rank 0 first, after gangs took their share.
func nearest(w *world, job *structs.Job, gangs []structs.GangPlan) []int {
	hall := &walk{hall: newHall(seatsOf(w)), shapes: shapes{byKey: map[string]*shape{}}}
	n := &hall.of(job).needs[hall.judge(hall.of(job)).need]
	for i := range gangs {
		g := &gangs[i]
		taken := needOf(w.jobs[g.JobID], g.Spec)
		for k := range g.Placements {
			at := slices.IndexFunc(hall.seats, func(s seat) bool { return s.node.ID == g.Placements[k].NodeID })
			hall.seats[at].hold(&taken, &g.Placements[k], g.JobID)
		}
	}
	chosen := hall.nearest(n, slices.Collect(hall.able(job, n)), job.Nodes)
	near := []int{hall.seats[chosen[0]].nearness(n, n.ports0)}
	for _, i := range chosen[1:] {
		near = append(near, hall.seats[i].nearness(n, n.ports))
	}
	return near
}

// crowd runs a cluster that small jobs fill to the last core all the time, and
// tells how many steps a gang that needs four whole nodes waits for its start.
func crowd(t *testing.T, reservations, steps int, seed uint64) int {
	chance := rand.New(rand.NewPCG(seed, 1))
	w := newWorld()
	for i := range 10 {
		w.addNode(testNode(fmt.Sprintf("n%d", i), 8, 16<<30))
	}
	ends := map[string]int{}
	for i := range steps {
		for k := range 12 {
			w.submit(testJob(fmt.Sprintf("s%04d-%d", i, k), 1, float64(1+chance.IntN(4)), 1<<30))
		}
		if i == 20 {
			w.submit(testJob("wide", 4, 8, 1<<30))
		}
		for _, s := range w.running() {
			if ends[s.JobID] <= i {
				w.end(s.JobID, s.Index, structs.JobSucceeded)
				delete(w.jobs, s.JobID)
				delete(w.subjobs, s.JobID)
			}
		}
		plan := Schedule(Input{Snapshot: w, Reservations: reservations, Quiet: true}, w.now, seed)
		w.apply(t, plan)
		w.checkNodes(t)
		for _, g := range plan.Gangs {
			if g.JobID == "id-wide" {
				return i - 20
			}
			ends[g.JobID] = i + 1 + chance.IntN(5)
		}
	}
	return -1
}

// TestWideGangIsNotStarved: with a reservation the wide gang starts within
// about the longest run of the small jobs once it leads the queue; without one
// it never does, which shows that the crowd is a real one.
func TestWideGangIsNotStarved(t *testing.T) {
	for seed := range uint64(5) {
		if waited := crowd(t, 1, 400, seed); waited < 0 {
			t.Errorf("seed %d: the wide gang never started", seed)
		}
		if waited := crowd(t, -1, 100, seed); waited >= 0 {
			t.Errorf("seed %d: the wide gang started after %d steps without a reservation; the crowd is too thin to show anything", seed, waited)
		}
	}
}

// TestEveryJobEnds runs random jobs of all kinds, stops submitting, and
// asserts that all that fit the ready cluster end: nobody waits for ever.
func TestEveryJobEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
			w.submit(drawJob(t, fmt.Sprintf("j%03d", i)))
		}
		for range 200 {
			plan := Schedule(Input{Snapshot: w, Quiet: true}, w.now, 1)
			w.apply(t, plan)
			running := w.running()
			if len(running) == 0 {
				break
			}
			s := rapid.SampledFrom(running).Draw(t, "ends")
			w.end(s.JobID, s.Index, structs.JobSucceeded)
		}
		for job := range w.Queue() {
			if fitsEmptyCluster(w, job) {
				t.Fatalf("%s fits the cluster and never started", job.Name)
			}
		}
	})
}

// TestShapeSeesEveryPlacementField changes each field that placement reads and
// expects another shape; equal shapes share what was found out for the first.
func TestShapeSeesEveryPlacementField(t *testing.T) {
	key := func(change func(*structs.Job)) string {
		j := testJob("a", 2, 1, 1<<30)
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 1}}
		j.Resources[0].Ports = []structs.PortRequest{{Name: "http"}}
		change(j)
		return string(appendShape(nil, j))
	}
	plain := key(func(*structs.Job) {})
	changes := map[string]func(*structs.Job){
		"nodes":         func(j *structs.Job) { j.Nodes = 3 },
		"driver":        func(j *structs.Job) { j.Task.Driver = "docker" },
		"pool":          func(j *structs.Job) { j.Placement.Pool = "p" },
		"spread":        func(j *structs.Job) { j.Placement.SpreadOrPack = "spread" },
		"named":         func(j *structs.Job) { j.Placement.Nodes = []string{"n1"} },
		"cpu":           func(j *structs.Job) { j.Resources[0].CPU = 1.5 },
		"memory":        func(j *structs.Job) { j.Resources[0].Memory++ },
		"alternative":   func(j *structs.Job) { j.Resources = append(j.Resources, structs.Resources{}) },
		"device kind":   func(j *structs.Job) { j.Resources[0].Devices[0].Kind = "huawei/npu" },
		"device model":  func(j *structs.Job) { j.Resources[0].Devices[0].Model = "A800" },
		"device count":  func(j *structs.Job) { j.Resources[0].Devices[0].Count = 2 },
		"device memory": func(j *structs.Job) { j.Resources[0].Devices[0].Memory = 1 },
		"device ids":    func(j *structs.Job) { j.Resources[0].Devices[0].IDs = []string{"x"} },
		"port":          func(j *structs.Job) { j.Resources[0].Ports[0].Static = 80 },
		"port name":     func(j *structs.Job) { j.Resources[0].Ports[0].Name = "web" },
		"master":        func(j *structs.Job) { j.Distributed.Mode = structs.ModePyTorch },
	}
	seen := map[string]string{plain: "no change"}
	for name, change := range changes {
		k := key(change)
		if other, ok := seen[k]; ok {
			t.Errorf("%s has the shape of %s", name, other)
		}
		seen[k] = name
	}
	if key(func(j *structs.Job) { j.Name, j.ID, j.Task.Command = "b", "id-b", "false" }) != plain {
		t.Error("what placement does not read changes the shape")
	}
}

// TestPlanIsBounded: a plan that would be too large is cut, and the next call
// takes the rest.
func TestPlanIsBounded(t *testing.T) {
	w := newWorld()
	w.addNode(testNode("n1", 10000, 1<<50))
	job := testJob("many", 1, 0.001, 1)
	job.Batch = &structs.Batch{Count: GangsMax + 10}
	w.submit(job)
	stuck := testJob("stuck", 2, 1, 1)
	stuck.Batch = &structs.Batch{Count: WaitsMax + 10}
	w.submit(stuck)
	for _, want := range []struct{ gangs, waits int }{{GangsMax, 0}, {10, WaitsMax}, {0, 10}, {0, 0}} {
		plan := Schedule(Input{Snapshot: w}, w.now, 1)
		if len(plan.Gangs) != want.gangs || len(plan.Waits) != want.waits {
			t.Fatalf("plan has %d gangs and %d waits, want %+v", len(plan.Gangs), len(plan.Waits), want)
		}
		w.apply(t, plan)
	}
}

// TestOddJobs: what admission should never let in harms nobody here.
func TestOddJobs(t *testing.T) {
	odd := map[string]func(*structs.Job){
		"no resources":     func(j *structs.Job) { j.Resources = nil },
		"no nodes":         func(j *structs.Job) { j.Nodes = 0 },
		"negative nodes":   func(j *structs.Job) { j.Nodes = -1 },
		"too many nodes":   func(j *structs.Job) { j.Nodes = structs.RanksMax + 1 },
		"same port twice":  func(j *structs.Job) { j.Resources[0].Ports = []structs.PortRequest{{Name: "a"}, {Name: "a"}} },
		"port of no range": func(j *structs.Job) { j.Resources[0].Ports = []structs.PortRequest{{Name: "a", Static: 70000}} },
		"negative device":  func(j *structs.Job) { j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "k", Count: -1}} },
		"huge cores":       func(j *structs.Job) { j.Resources[0].CPU = 1e300 },
		"nothing and none": func(j *structs.Job) { j.Nodes, j.Resources = 0, nil },
	}
	for name, change := range odd {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.addNode(testNode("n1", 8, 16<<30))
			j := testJob("odd", 1, 1, 1<<30)
			change(j)
			w.submit(j)
			w.submit(testJob("even", 1, 8, 1<<30))
			plan := Schedule(Input{Snapshot: w}, w.now, 1)
			w.apply(t, plan)
			if w.subjobs["id-even"][0].State != structs.JobRunning && w.subjobs["id-odd"][0].State != structs.JobRunning {
				t.Errorf("nothing runs: %v", w.tell(plan))
			}
		})
	}
}
