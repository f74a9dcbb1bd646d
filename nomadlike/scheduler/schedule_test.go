package scheduler

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/structs"
)

// TestPassMatchesItsTwin drives random clusters and asserts at every step that
// the plan is the slow twin's, that a board which was kept from the beginning,
// a new one, a clone, and one that was told everything in another order decide
// the same, that Apply accepts all of it, that nothing is given twice, that
// gangs are whole, that quotas hold, and that every waiting job has a reason
// that both languages know.
func TestPassMatchesItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		settings := Settings{
			Reservations: rapid.IntRange(1, 3).Draw(t, "reservations"),
			Passing:      rapid.SampledFrom([]Passing{Backfill, Backfill, Easy, NoPassing}).Draw(t, "passing"),
		}
		if rapid.Bool().Draw(t, "learned") {
			settings.Model = wrongModel(w)
		}
		kept := NewBoard(settings)
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			step(t, w, i)
			seed := uint64(i)
			twin := runTwin(w, settings, seed)
			plan := Schedule(Input{Snapshot: w, Settings: settings}, w.now, seed)
			if diff := gocmp.Diff(twin.gangs, plan.Gangs, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("plan differs from the twin's (-twin +plan):\n%s", diff)
			}
			checkKept(t, w, twin, settings, seed)
			w.shuffle = rand.New(rand.NewPCG(uint64(i), 7))
			mixed := Schedule(Input{Snapshot: w, Settings: settings}, w.now, seed)
			w.shuffle = nil
			if diff := gocmp.Diff(plan, mixed); diff != "" {
				t.Fatalf("plan depends on the snapshot's order (-sorted +mixed):\n%s", diff)
			}
			kept.Sync(w)
			clone := kept.Clone()
			if old := kept.Pass(w.now, seed); text(plan) != text(old) {
				t.Fatalf("the board that was kept decides otherwise:\nnew  %s\nkept %s", text(plan), text(old))
			}
			checkBoard(t, kept)
			if copied := clone.Pass(w.now, seed); text(plan) != text(copied) {
				t.Fatalf("the clone decides otherwise:\nnew   %s\nclone %s", text(plan), text(copied))
			}
			hasty := settings
			hasty.Quiet = true
			quiet := Schedule(Input{Snapshot: w, Settings: hasty}, w.now, seed)
			if diff := gocmp.Diff(plan.Gangs, quiet.Gangs); diff != "" {
				t.Fatalf("a quiet call decides otherwise:\n%s", diff)
			}
			checkHead(t, w, plan, settings)
			if rapid.IntRange(0, 5).Draw(t, "lost") == 0 {
				continue // the plan never arrives
			}
			w.apply(t, plan)
			w.checkNodes(t)
			w.checkGangs(t)
			w.checkQuotas(t)
			checkReasons(t, w)
			// What starts may move what is reserved to other nodes, so others start
			// in a further call; that comes to rest.
			for more := 0; ; more++ {
				again := Schedule(Input{Snapshot: w, Settings: settings}, w.now, seed)
				if len(again.Gangs) == 0 {
					break
				}
				if len(plan.Gangs) == 0 || more > len(w.subjobs) {
					t.Fatalf("a further call places %v", again.Gangs)
				}
				w.apply(t, again)
			}
			checkMirror(t, kept, w)
		}
		if w.fulls > 200 {
			t.Fatalf("%d boards read everything", w.fulls)
		}
	})
}

// wrongModel believes that everything is over within minutes, whatever it is;
// limits are longer, and gangs end when the test says so. So promises slip.
func wrongModel(w *world) Estimates {
	model := predict.NewModel()
	for i := range 40 {
		model.Learn(predict.Run{
			Project: "red", User: "ann", Name: "early", Devices: 1, Nodes: 1,
			Runtime: time.Duration(1+i%9) * time.Minute, Outcome: structs.OutcomeSucceeded, EndedAt: w.now,
		})
	}
	return model.Outlook(w.now, nil)
}

// text writes a plan in full.
func text(plan structs.Plan) string {
	data, err := json.Marshal(plan)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// checkKept compares the reservations with the twin's.
func checkKept(t *rapid.T, w *world, twin *twin, settings Settings, seed uint64) {
	b := NewBoard(settings)
	b.Sync(w)
	b.Pass(w.now, seed)
	byID := map[subjobID]*twinReservation{}
	for _, k := range twin.reservations {
		byID[k.id] = k
	}
	if len(b.Reservations()) != len(byID) {
		t.Fatalf("%d reservations, the twin has %d", len(b.Reservations()), len(byID))
	}
	for _, r := range b.Reservations() {
		k := byID[subjobID{r.JobID, r.Subjob}]
		if k == nil || r.Strict != k.strict || r.At != k.expected && (r.At != 0 || k.expected != never) || len(r.Nodes) != len(k.spare) {
			t.Fatalf("reservation %+v, the twin's is %+v", r, k)
		}
		for _, node := range r.Nodes {
			if _, ok := k.spare[node]; !ok {
				t.Fatalf("reservation %+v, the twin's is %+v", r, k)
			}
		}
	}
}

// checkBoard asserts that the parts of a board agree in themselves and with each
// other.
func checkBoard(t interface{ Fatalf(string, ...any) }, b *Board) {
	if found := b.CheckInvariants(); len(found) > 0 {
		t.Fatalf("the board is not sound:\n%s", strings.Join(found, "\n"))
	}
}

// checkMirror asserts that a synced board knows what the world knows.
func checkMirror(t *rapid.T, b *Board, w *world) {
	b.Sync(w)
	checkBoard(t, b)
	for id, node := range w.nodes {
		got, usage := b.Node(id)
		want := w.usage(id)
		if got != node || structs.MilliCPU(usage.CPU) != structs.MilliCPU(want.CPU) || usage.Memory != want.Memory || usage.Allocs != want.Allocs ||
			len(usage.Ports) != len(want.Ports) || len(usage.Devices) != len(want.Devices) {
			t.Fatalf("the board has %+v on %s, the world %+v", usage, id, want)
		}
		at, _ := b.nodes.floor.Index(id)
		if room := b.nodes.room(int32(at)); room != node.Free(want) {
			t.Fatalf("the board has room %+v on %s, the world %+v", room, id, node.Free(want))
		}
	}
	running, queued := 0, 0
	for range b.Running() {
		running++
	}
	for range b.Queued() {
		queued++
	}
	if running != len(w.running()) || queued != len(w.queued()) {
		t.Fatalf("the board has %d running and %d queued, the world %d and %d", running, queued, len(w.running()), len(w.queued()))
	}
}

// checkReasons asserts that every queued subjob says why it waits.
func checkReasons(t *rapid.T, w *world) {
	for _, s := range w.queued() {
		if s.Wait == nil {
			t.Fatalf("%s/%d waits without a reason", s.JobID, s.Index)
		}
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if !messages.Has(language, s.Wait.ID) {
				t.Fatalf("no %s text for %s", language, s.Wait.ID)
			}
		}
	}
}

// checkHead asserts the lemma behind "no starvation": what the plan starts
// behind a gang with a strict reservation, the first of the queue, leaves that
// gang as near to starting as before.
func checkHead(t *rapid.T, w *world, plan structs.Plan, settings Settings) {
	b := NewBoard(settings)
	b.Sync(w)
	b.Pass(w.now, 1)
	for _, r := range b.Reservations() {
		id := subjobID{r.JobID, r.Subjob}
		if !r.Strict {
			continue
		}
		head, subjob := w.jobs[id.job], w.subjobs[id]
		twin := &twin{world: w, now: w.now, started: map[subjobID]*structs.GangPlan{}}
		sum := func() (sum int32) {
			for _, node := range r.Nodes {
				best := int32(0)
				for _, spec := range head.Resources {
					room, rank := w.nodes[node].Free(twin.usage(node)), twin.rank(spec, node)
					best = max(best, min(part(room.CPU, rank.CPU), part(room.Memory, rank.Memory), part(room.Devices, rank.Devices)))
				}
				sum += best
			}
			return sum
		}
		var ahead, behind []structs.GangPlan
		for _, g := range plan.Gangs {
			if poolOf(w.jobs[g.JobID]) != r.Pool || len(head.Resources) > 1 {
				return // another order between them
			}
			if Compare(w.jobs[g.JobID], w.subjobs[subjobID{g.JobID, g.Subjob}], head, subjob) > 0 {
				behind = append(behind, g)
			} else {
				ahead = append(ahead, g)
			}
		}
		if pool := w.pools[r.Pool]; pool != nil && pool.Order == structs.OrderFair || twin.anyGuarantee() {
			return
		}
		for i := range ahead {
			twin.started[subjobID{ahead[i].JobID, ahead[i].Subjob}] = &ahead[i]
		}
		before := sum()
		for i := range behind {
			twin.started[subjobID{behind[i].JobID, behind[i].Subjob}] = &behind[i]
		}
		if after := sum(); after < before {
			t.Fatalf("jobs behind %s took from it: nearness %v became %v", head.Name, before, after)
		}
	}
}

// crowd runs a cluster that small jobs fill to the last core all the time, and
// reports how many minutes a gang that needs four whole nodes waits for its start.
// What the board expects of the jobs is made up.
func crowd(t *testing.T, settings Settings, minutes int, seed uint64) int {
	chance := rand.New(rand.NewPCG(seed, 1))
	w := newWorld()
	for i := range 10 {
		w.addNode(testNode(fmt.Sprintf("n%d", i), 8, 16<<30))
	}
	settings.Quiet = true
	board := NewBoard(settings)
	ends := map[string]int{}
	for i := range minutes {
		for k := range 12 {
			w.submit(testJob(fmt.Sprintf("s%04d-%d", i, k), 1, float64(1+chance.IntN(4)), 1<<30))
		}
		if i == 20 {
			w.submit(testJob("wide", 4, 8, 1<<30))
		}
		for _, s := range w.running() {
			if ends[s.JobID] <= i {
				w.end(s.JobID, s.Index, structs.JobSucceeded)
			}
		}
		board.Sync(w)
		plan := board.Pass(w.now, seed)
		w.apply(t, plan)
		w.checkNodes(t)
		for _, g := range plan.Gangs {
			if g.JobID == "id-wide" {
				return i - 20
			}
			ends[g.JobID] = i + 1 + chance.IntN(25)
		}
		w.now = w.now.Add(time.Minute)
		w.forget()
	}
	return -1
}

// forget drops jobs that have ended.
func (w *world) forget() {
	for id, s := range w.subjobs {
		if s.State.Terminal() && w.touched["j"+id.key()] < w.index {
			delete(w.jobs, id.job)
			delete(w.subjobs, id)
		}
	}
}

// TestWideGangIsNotStarved: with a reservation the wide gang starts, whether
// nothing is known of run times, or what is expected is wrong every time: far too
// short, far too long, or anything. Without a reservation it never does, which
// shows that the crowd is a real one.
func TestWideGangIsNotStarved(t *testing.T) {
	expectations := map[string]func(job *structs.Job, subjob int) time.Duration{
		"nothing":   nil,
		"too short": func(*structs.Job, int) time.Duration { return time.Second },
		"too long":  func(*structs.Job, int) time.Duration { return 100 * time.Hour },
		"anything": func(job *structs.Job, _ int) time.Duration {
			return time.Duration(portStart(job.ID, 0, 0, 3)%6000) * time.Second
		},
	}
	for name, expected := range expectations {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(max(1, *seeds/3)) {
				waited := crowd(t, Settings{Runtime: expected}, 400, seed)
				if waited < 0 {
					t.Errorf("seed %d: the wide gang never started", seed)
				}
				t.Logf("seed %d: the wide gang waited %d minutes", seed, waited)
			}
		})
	}
	for seed := range uint64(max(1, *seeds/3)) {
		if waited := crowd(t, Settings{Reservations: -1}, 150, seed); waited >= 0 {
			t.Errorf("seed %d: the wide gang started after %d minutes without a reservation; the crowd is too thin to show anything", seed, waited)
		}
	}
}

// TestPromisedStartHolds runs random jobs that all have limits, of which they use any
// part and which some outrun, while what is expected of them is wrong every time. The
// first blocked gang has a promise that limits keep: at every pass they give it
// its nodes by then, reckoned by the slow twin, and it starts by then but for what others outran.
func TestPromisedStartHolds(t *testing.T) {
	promises := 0
	rapid.Check(t, func(t *rapid.T) {
		w, lasts := newWorld(), map[string]time.Duration{}
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			n := testNode(fmt.Sprintf("n%d", i), float64(rapid.IntRange(2, 8).Draw(t, "cpu")), 16<<30)
			n.Devices = testDevices(rapid.IntRange(0, 4).Draw(t, "devices"), "nvidia/gpu", "A800")
			w.addNode(n)
		}
		for i := range rapid.IntRange(2, 30).Draw(t, "jobs") {
			j := testJob(fmt.Sprintf("j%03d", i), rapid.IntRange(1, 3).Draw(t, "gang"), float64(rapid.IntRange(0, 8).Draw(t, "cpu")), 1<<30)
			if rapid.Bool().Draw(t, "gpu") {
				j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: rapid.IntRange(1, 3).Draw(t, "count")}}
			}
			limit := rapid.IntRange(1, 300).Draw(t, "limit")
			j.TimeLimit = structs.Duration(limit) * structs.Duration(time.Minute)
			lasts[j.ID] = time.Duration(rapid.IntRange(1, limit+10).Draw(t, "minutes")) * time.Minute
			w.submit(j)
		}
		settings := Settings{
			Quiet: true, Reservations: rapid.IntRange(1, 4).Draw(t, "reservations"),
			Runtime: func(job *structs.Job, _ int) time.Duration {
				return time.Duration(1+portStart(job.ID, 0, 0, 3)%300) * time.Minute
			},
		}
		board, promised, outran := NewBoard(settings), map[string]structs.UnixNano{}, time.Duration(0)
		for range 200 {
			board.Sync(w)
			plan := board.Pass(w.now, 1)
			for _, g := range plan.Gangs {
				if at, ok := promised[g.JobID]; ok && w.now > at.Add(outran) {
					t.Fatalf("%s starts at %s, and was promised %s", g.JobID, w.now.Time(), at.Time())
				}
			}
			w.apply(t, plan)
			for q := range board.Queued() {
				if board.judge(board.queue.shapes.of(q.Job)).reason != nil {
					continue
				}
				checkPromise(t, w, board, q.Job, promised, outran)
				break // only the first one is delayed by nobody
			}
			next := never
			for _, s := range w.running() {
				next = min(next, w.attempts[subjobID{s.JobID, 0}].PlacedAt.Add(lasts[s.JobID]))
			}
			if next == never {
				break
			}
			w.now = next
			for _, s := range w.running() {
				if w.attempts[subjobID{s.JobID, 0}].PlacedAt.Add(lasts[s.JobID]) == next {
					outran = max(outran, lasts[s.JobID]-w.jobs[s.JobID].TimeLimit.Std())
					w.end(s.JobID, 0, structs.JobSucceeded)
				}
			}
		}
		promises += len(promised)
	})
	if promises < 50 {
		t.Errorf("only %d promises were made", promises)
	}
}

// checkPromise notes what is promised to the first blocked gang, and asserts that
// limits keep it.
func checkPromise(t *rapid.T, w *world, board *Board, job *structs.Job, promised map[string]structs.UnixNano, outran time.Duration) {
	at, ok := promised[job.ID]
	if !ok {
		for _, r := range board.promises.reservations {
			if r != nil && r.jobID == job.ID && r.bounded {
				at = r.at
				promised[job.ID], ok = at, true
			}
		}
	}
	if !ok {
		return
	}
	slow := &twin{world: w, now: w.now, settings: board.settings}
	spec := job.Resources[0]
	if _, sure := slow.soonest(job, spec, slow.ableOn(job, spec), job.NodesMin(), true); sure > max(at.Add(outran), w.now.Add(overdue)) {
		t.Fatalf("limits give %s its nodes at %s, and it was promised %s", job.ID, sure.Time(), at.Time())
	}
}

// TestEveryJobEnds runs random jobs of all kinds, stops submitting, and
// asserts that all that could start end: nobody waits for ever.
func TestEveryJobEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
			w.submit(drawJob(t, fmt.Sprintf("j%03d", i)))
		}
		board := NewBoard(Settings{Quiet: true})
		for range 300 {
			board.Sync(w)
			w.apply(t, board.Pass(w.now, 1))
			running := w.running()
			if len(running) == 0 {
				break
			}
			s := rapid.SampledFrom(running).Draw(t, "ends")
			w.now = w.now.Add(time.Minute)
			w.end(s.JobID, s.Index, structs.JobSucceeded)
		}
		twin := &twin{world: w, now: w.now, started: map[subjobID]*structs.GangPlan{}}
		for _, s := range w.queued() {
			if id := (subjobID{s.JobID, s.Index}); twin.able(id) && !twin.overQuota(id) {
				t.Fatalf("%s could start and never did", s.JobID)
			}
		}
	})
}

// TestShapeSeesEveryField changes each field that deciding reads and expects
// another shape; equal shapes share what was found out for the first.
func TestShapeSeesEveryField(t *testing.T) {
	b := NewBoard(Settings{})
	shape := func(change func(*structs.Job)) int32 {
		j := testJob("a", 3, 1, 1<<30)
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 1}}
		j.Resources[0].Ports = []structs.PortRequest{{Name: "http"}}
		change(j)
		return b.queue.shapes.of(j).id
	}
	plain := shape(func(*structs.Job) {})
	elastic := func(least int, resize bool) func(*structs.Job) {
		return func(j *structs.Job) {
			j.Checkpoint = &structs.Checkpoint{Elastic: &structs.Elastic{MinNodes: least, AllowResize: resize}}
		}
	}
	vip := func(busy string) func(*structs.Job) {
		return func(j *structs.Job) { j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1", Busy: busy}}} }
	}
	changes := map[string]func(*structs.Job){
		"nodes":          func(j *structs.Job) { j.Nodes = 4 },
		"fewest nodes":   elastic(2, false),
		"resize":         elastic(2, true),
		"vip":            vip(structs.BusyWait),
		"vip, kill":      vip(structs.BusyKill),
		"driver":         func(j *structs.Job) { j.Task.Driver = "docker" },
		"pool":           func(j *structs.Job) { j.Placement.Pool = "p" },
		"spread":         func(j *structs.Job) { j.Placement.SpreadOrPack = "spread" },
		"named":          func(j *structs.Job) { j.Placement.Nodes = []string{"n1"} },
		"driver version": func(j *structs.Job) { j.Placement.DriverVersion = ">= 5" },
		"cpu":            func(j *structs.Job) { j.Resources[0].CPU = 1.5 },
		"memory":         func(j *structs.Job) { j.Resources[0].Memory++ },
		"rdma":           func(j *structs.Job) { j.Resources[0].RDMA = true },
		"alternative":    func(j *structs.Job) { j.Resources = append(j.Resources, structs.Resources{}) },
		"device kind":    func(j *structs.Job) { j.Resources[0].Devices[0].Kind = "huawei/npu" },
		"device model":   func(j *structs.Job) { j.Resources[0].Devices[0].Model = "A800" },
		"device models":  func(j *structs.Job) { j.Resources[0].Devices[0].Models = []string{"A800"} },
		"device count":   func(j *structs.Job) { j.Resources[0].Devices[0].Count = 2 },
		"device memory":  func(j *structs.Job) { j.Resources[0].Devices[0].Memory = 1 },
		"device ids":     func(j *structs.Job) { j.Resources[0].Devices[0].IDs = []string{"x"} },
		"last devices": func(j *structs.Job) {
			j.Resources[0].Devices[0].Count, j.Resources[0].LastDevices = 2, 1
		},
		"port":      func(j *structs.Job) { j.Resources[0].Ports[0].Static = 80 },
		"port name": func(j *structs.Job) { j.Resources[0].Ports[0].Name = "web" },
		"master":    func(j *structs.Job) { j.Distributed.Mode = structs.ModePyTorch },
	}
	seen := map[int32]string{plain: "no change"}
	for name, change := range changes {
		id := shape(change)
		if other, ok := seen[id]; ok {
			t.Errorf("%s has the shape of %s", name, other)
		}
		seen[id] = name
	}
	if shape(func(j *structs.Job) { j.Name, j.ID, j.Task.Command = "b", "id-b", "false" }) != plain {
		t.Error("what deciding does not read changes the shape")
	}
}

// TestAlternativesStartTogether: the first alternative has room nowhere, the
// second has room for all; one call starts them all.
func TestAlternativesStartTogether(t *testing.T) {
	w := newWorld()
	w.addNode(testNode("n1", 8, 16<<30))
	w.submit(testJob("wide", 1, 4, 1<<30))
	w.apply(t, Schedule(Input{Snapshot: w}, w.now, 1))
	for i := range 3 {
		job := testJob(fmt.Sprintf("either%d", i), 1, 8, 1<<30)
		job.Resources = append(job.Resources, structs.Resources{CPU: 1, Memory: 1 << 30})
		w.submit(job)
	}
	if plan := Schedule(Input{Snapshot: w}, w.now, 1); len(plan.Gangs) != 3 {
		t.Errorf("one call starts %d of 3:\n%s", len(plan.Gangs), w.tell(plan))
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
	kept := NewBoard(Settings{})
	for _, want := range []struct{ gangs, waits int }{{GangsMax, 0}, {10, WaitsMax}, {0, 10}, {0, 0}} {
		plan := Schedule(Input{Snapshot: w}, w.now, 1)
		if len(plan.Gangs) != want.gangs || len(plan.Waits) != want.waits {
			t.Fatalf("plan has %d gangs and %d waits, want %+v", len(plan.Gangs), len(plan.Waits), want)
		}
		kept.Sync(w)
		if old := kept.Pass(w.now, 1); text(old) != text(plan) {
			t.Fatalf("the board that was kept decides otherwise")
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
		"negative device":  func(j *structs.Job) { j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "k", Count: -2}} },
		"huge cores":       func(j *structs.Job) { j.Resources[0].CPU = 1e300 },
		"nothing and none": func(j *structs.Job) { j.Nodes, j.Resources = 0, nil },
		"no machines":      func(j *structs.Job) { j.VIP = &structs.VIP{} },
		"unknown machine":  func(j *structs.Job) { j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n9"}}} },
		"elastic to none":  func(j *structs.Job) { j.Checkpoint = &structs.Checkpoint{Elastic: &structs.Elastic{MinNodes: -3}} },
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
			if w.subjobs[subjobID{"id-even", 0}].State != structs.JobRunning && w.subjobs[subjobID{"id-odd", 0}].State != structs.JobRunning {
				t.Errorf("nothing runs: %v", w.tell(plan))
			}
		})
	}
}
