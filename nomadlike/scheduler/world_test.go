package scheduler

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"

	"time"

	"nomadlike/nomadlike/structs"
)

// world is a small cluster for tests: what state.Apply does with plans and
// ends of jobs, written down as plainly as possible. It is the Snapshot too.
type world struct {
	index   uint64
	now     structs.UnixNano
	seed    uint64
	jobs    map[string]*structs.Job
	subjobs map[string]map[int]*structs.Subjob
	nodes   map[string]*structs.Node
	allocs  []*structs.Allocation // that hold resources, in order of placement
	shuffle *rand.Rand            // when set, sequences come in random order
}

func newWorld() *world {
	return &world{
		now: structs.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), seed: 1,
		jobs: map[string]*structs.Job{}, subjobs: map[string]map[int]*structs.Subjob{}, nodes: map[string]*structs.Node{},
	}
}

func (w *world) Index() uint64 { return w.index }

func (w *world) Queue() iter.Seq2[*structs.Job, *structs.Subjob] {
	return func(yield func(*structs.Job, *structs.Subjob) bool) {
		for _, id := range w.mixed(slices.Sorted(maps.Keys(w.jobs))) {
			for _, index := range slices.Sorted(maps.Keys(w.subjobs[id])) {
				if s := w.subjobs[id][index]; s.State == structs.JobQueued && !yield(w.jobs[id], s) {
					return
				}
			}
		}
	}
}

func (w *world) Nodes() iter.Seq2[*structs.Node, *structs.Usage] {
	return func(yield func(*structs.Node, *structs.Usage) bool) {
		for _, id := range w.mixed(slices.Sorted(maps.Keys(w.nodes))) {
			if !yield(w.nodes[id], w.usage(id)) {
				return
			}
		}
	}
}

func (w *world) Holders(nodeID string) iter.Seq[*structs.Allocation] {
	return func(yield func(*structs.Allocation) bool) {
		for _, a := range w.allocs {
			if a.NodeID == nodeID && !yield(a) {
				return
			}
		}
	}
}

func (w *world) mixed(ids []string) []string {
	if w.shuffle != nil {
		w.shuffle.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	return ids
}

// usage sums what allocations hold on a node.
func (w *world) usage(nodeID string) *structs.Usage {
	u := &structs.Usage{NodeID: nodeID, Ports: map[int]string{}, Devices: map[string]string{}}
	for _, a := range w.allocs {
		if a.NodeID != nodeID {
			continue
		}
		u.CPU += a.Spec.CPU
		u.Memory += a.Spec.Memory
		u.Allocs++
		for _, port := range a.Ports {
			u.Ports[port] = a.ID
		}
		for _, id := range a.Devices {
			u.Devices[id] = a.ID
		}
	}
	return u
}

func (w *world) addNode(n *structs.Node) {
	w.index++
	n.CreateIndex = w.index
	w.nodes[n.ID] = n
}

func (w *world) submit(job *structs.Job) {
	w.index++
	w.jobs[job.ID] = job
	w.subjobs[job.ID] = map[int]*structs.Subjob{}
	for i := range job.SubjobCount() {
		w.subjobs[job.ID][i] = &structs.Subjob{JobID: job.ID, Index: i, State: structs.JobQueued, QueuedAt: w.now, CreateIndex: w.index}
	}
}

// apply takes a plan as state.Apply would, and fails the test when a gang is
// refused: the scheduler must know every reason that Apply knows.
func (w *world) apply(t failer, plan structs.Plan) {
	t.Helper()
	w.index++
	for i := range plan.Gangs {
		gang := &plan.Gangs[i]
		job, subjob := w.jobs[gang.JobID], w.subjobs[gang.JobID][gang.Subjob]
		reason := structs.GangProblem(job, subjob, gang, worldGround{w})
		if reason != nil {
			t.Fatalf("gang %s/%d refused: %s %v", gang.JobID, gang.Subjob, reason.ID, reason.Params)
		}
		subjob.State, subjob.Attempt, subjob.Wait = structs.JobRunning, gang.Attempt, nil
		for rank, p := range gang.Placements {
			w.allocs = append(w.allocs, &structs.Allocation{
				ID:    structs.AllocID(gang.JobID, gang.Subjob, gang.Attempt, rank),
				JobID: gang.JobID, Subjob: gang.Subjob, Rank: rank, NodeID: p.NodeID,
				Spec: job.Resources[gang.Spec], Ports: p.Ports, Devices: p.Devices,
			})
		}
	}
	for _, update := range plan.Waits {
		w.subjobs[update.JobID][update.Subjob].Wait = update.Wait
	}
}

// end frees what a running subjob holds and puts it into state.
func (w *world) end(jobID string, index int, state structs.JobState) {
	w.index++
	w.allocs = slices.DeleteFunc(w.allocs, func(a *structs.Allocation) bool { return a.JobID == jobID && a.Subjob == index })
	w.subjobs[jobID][index].State = state
}

func (w *world) running() []*structs.Subjob {
	var running []*structs.Subjob
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		for _, index := range slices.Sorted(maps.Keys(w.subjobs[id])) {
			if s := w.subjobs[id][index]; s.State == structs.JobRunning {
				running = append(running, s)
			}
		}
	}
	return running
}

// checkNodes asserts that no node gives more than it has and that ports and
// devices have one holder each.
func (w *world) checkNodes(t failer) {
	t.Helper()
	for id, node := range w.nodes {
		var cpu, memory int64
		ports, devices := map[int]bool{}, map[string]bool{}
		for _, a := range w.allocs {
			if a.NodeID != id {
				continue
			}
			cpu += structs.MilliCPU(a.Spec.CPU)
			memory += a.Spec.Memory
			for _, port := range a.Ports {
				if ports[port] {
					t.Fatalf("node %s: port %d has two holders", id, port)
				}
				ports[port] = true
			}
			for _, device := range a.Devices {
				if devices[device] {
					t.Fatalf("node %s: device %s has two holders", id, device)
				}
				devices[device] = true
			}
		}
		if cpu > structs.MilliCPU(node.Capacity.CPU) || memory > node.Capacity.Memory {
			t.Fatalf("node %s gives cpu %d of %v, memory %d of %d", id, cpu, node.Capacity.CPU, memory, node.Capacity.Memory)
		}
	}
}

// checkGangs asserts that every running subjob has each of its ranks once, on
// nodes of their own.
func (w *world) checkGangs(t failer) {
	t.Helper()
	for _, s := range w.running() {
		ranks, nodes := map[int]bool{}, map[string]bool{}
		for _, a := range w.allocs {
			if a.JobID == s.JobID && a.Subjob == s.Index {
				ranks[a.Rank], nodes[a.NodeID] = true, true
			}
		}
		if want := w.jobs[s.JobID].Nodes; len(ranks) != want || len(nodes) != want {
			t.Fatalf("%s/%d runs with ranks %v on nodes %v, want %d of each", s.JobID, s.Index, ranks, nodes, want)
		}
	}
}

// testNode is a ready node with room for tests.
func testNode(name string, cpu float64, memory int64) *structs.Node {
	return &structs.Node{
		ID: "id-" + name, Name: name, Drivers: []string{"exec"}, Status: structs.NodeReady, Eligibility: structs.NodeEligible,
		Capacity: structs.Capacity{CPU: cpu, Memory: memory, PortMin: 20000, PortMax: 20099},
	}
}

// testJob is a training job of equal nodes.
func testJob(name string, nodes int, cpu float64, memory int64) *structs.Job {
	return &structs.Job{
		ID: "id-" + name, Name: name, Nodes: nodes, Priority: structs.PriorityNormal,
		Distributed: structs.Distributed{Mode: structs.ModeNone},
		Resources:   []structs.Resources{{CPU: cpu, Memory: memory}},
		Task:        structs.Task{Driver: "exec", Command: "true"},
	}
}

func testDevices(count int, kind, model string) []structs.Device {
	var devices []structs.Device
	for i := range count {
		devices = append(devices, structs.Device{ID: fmt.Sprintf("dev-%d", i), Kind: kind, Model: model,
			Memory: 80 << 30, LinkGroup: fmt.Sprint(i / 4), Healthy: true})
	}
	return devices
}

// failer is what testing.T and rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// worldGround lets feasibility stand on the test's world.
type worldGround struct{ *world }

func (g worldGround) Node(id string) (*structs.Node, *structs.Usage) { return g.nodes[id], g.usage(id) }
func (worldGround) Pool(string) *structs.Pool                        { return nil }
func (worldGround) Project(string) *structs.Project                  { return nil }
func (worldGround) ProjectUsage(string) *structs.ProjectUsage        { return nil }
