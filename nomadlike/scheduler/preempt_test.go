package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// drawKeen makes a job that may preempt, yield, or be elastic.
func drawKeen(t *rapid.T, name string, nodes int) *structs.Job {
	j := testJob(name, rapid.IntRange(1, 3).Draw(t, "gang"), float64(rapid.IntRange(1, 4).Draw(t, "cpu")), 1<<30)
	j.Priority = rapid.SampledFrom([]structs.Priority{structs.PriorityNormal, structs.PriorityNormal, structs.PriorityUrgent, structs.PriorityCritical}).Draw(t, "priority")
	j.Preemptible = rapid.Bool().Draw(t, "preemptible")
	j.Project = rapid.SampledFrom([]string{"red", "blue", "green"}).Draw(t, "project")
	j.TimeLimit = structs.Duration(rapid.SampledFrom([]int{0, 30, 600}).Draw(t, "limit")) * structs.Duration(time.Minute)
	if rapid.IntRange(0, 2).Draw(t, "gpu") == 0 {
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: rapid.IntRange(1, 3).Draw(t, "count")}}
	}
	switch rapid.IntRange(0, 4).Draw(t, "flavour") {
	case 0:
		j.Checkpoint = &structs.Checkpoint{Elastic: &structs.Elastic{MinNodes: rapid.IntRange(1, j.Nodes).Draw(t, "min"), AllowResize: rapid.Bool().Draw(t, "resize")}}
	case 1:
		machines := rapid.SliceOfNDistinct(rapid.IntRange(0, nodes-1), 1, 2, rapid.ID).Draw(t, "machines")
		j.VIP, j.Preemptible, j.Nodes = &structs.VIP{}, false, len(machines)
		j.KillsLast = rapid.IntRange(0, 2).Draw(t, "kills last") > 0
		for _, i := range machines {
			j.VIP.Machines = append(j.VIP.Machines, structs.VIPMachine{
				Node: fmt.Sprintf("n%d", i),
				Busy: rapid.SampledFrom([]string{structs.BusyWait, structs.BusyKill}).Draw(t, "busy"),
			})
		}
	case 2:
		j.Distributed.Mode = structs.ModePyTorch
	}
	return j
}

func drawKeenWorld(t *rapid.T) *world {
	w := newWorld()
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		n := testNode(fmt.Sprintf("n%d", i), float64(rapid.IntRange(2, 8).Draw(t, "cpu")), 16<<30)
		n.Devices = testDevices(rapid.IntRange(0, 4).Draw(t, "devices"), "nvidia/gpu", "A800")
		w.addNode(n)
	}
	for _, name := range []string{"red", "blue"} {
		p := &structs.Project{Name: name}
		guaranteed := rapid.IntRange(0, 8).Draw(t, "guaranteed")
		most := guaranteed + rapid.IntRange(0, 12).Draw(t, "most")
		p.Quotas = []structs.Quota{{Kind: rapid.SampledFrom([]string{structs.QuotaCPU, "nvidia/gpu"}).Draw(t, "kind"), Guaranteed: guaranteed, Maximum: &most}}
		w.addProject(p)
	}
	return w
}

// TestPreemption drives random clusters with tiers, guarantees, VIP machines and
// elastic gangs, and asserts what must hold of every plan: the state takes all of
// it, so each victim has strictly lower rank and the whole gang fits without
// them; no victim is needless; VIP jobs never yield; a gang that was nominated for
// nodes gets them when its victims have ended; what stops submitting comes to
// rest, so nobody preempts each other in turn; boards that were kept decide as
// new ones do.
func TestPreemption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawKeenWorld(t)
		board := NewBoard(Settings{})
		once := func(i int) int {
			plan := Schedule(Input{Snapshot: w}, w.now, uint64(i))
			board.Sync(w)
			if old := board.Pass(w.now, uint64(i)); text(old) != text(plan) {
				t.Fatalf("the board that was kept decides otherwise:\nnew  %s\nkept %s", text(plan), text(old))
			}
			checkVictims(t, w, plan)
			w.apply(t, plan)
			w.checkNodes(t)
			w.checkGangs(t)
			w.checkQuotas(t)
			checkNominations(t, w)
			checkReasons(t, w)
			return len(plan.Gangs)
		}
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2:
				w.submit(drawKeen(t, fmt.Sprintf("j%03d", i), len(w.nodes)))
			case 3:
				if running := w.running(); len(running) > 0 {
					s := rapid.SampledFrom(running).Draw(t, "ends")
					w.end(s.JobID, s.Index, structs.JobSucceeded)
				}
			case 4:
				w.endStopping()
			case 5:
				w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, 15 * time.Minute, 3 * time.Hour}).Draw(t, "tick"))
			case 6:
				if running := w.running(); len(running) > 0 {
					s := rapid.SampledFrom(running).Draw(t, "saves")
					a := *w.attempts[subjobID{s.JobID, s.Index}]
					a.CheckpointAt = w.now
					w.attempts[subjobID{s.JobID, s.Index}] = &a
					w.touchJob(subjobID{s.JobID, s.Index})
				}
			}
			once(i)
		}
		for i := 0; ; i++ {
			started := once(1000 + i)
			w.endStopping()
			if started == 0 && !slices.ContainsFunc(w.queued(), func(s *structs.Subjob) bool { return s.Nomination != nil && w.free(s) }) {
				break
			}
			if i > 100 {
				t.Fatalf("does not come to rest")
			}
		}
	})
}

// checkVictims asserts that no victim of a plan is VIP or needless.
func checkVictims(t *rapid.T, w *world, plan structs.Plan) {
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		for k, key := range g.Victims {
			if key.JobID == g.JobID {
				continue // a change of size
			}
			if w.jobs[key.JobID].VIP != nil {
				t.Fatalf("%s is VIP and yields to %s", key.JobID, g.JobID)
			}
			if g.Nominate {
				continue // on a machine to kill
			}
			others := slices.Delete(slices.Clone(g.Victims), k, k+1)
			if w.fitsSomehow(g, others, plan.Gangs[:i]) {
				t.Fatalf("%s need not end for %s: %s", key.JobID, g.JobID, text(plan))
			}
		}
	}
}

// fitsSomehow reports whether the gang would have room on the nodes of its plan if
// only some of its victims ended, and the gangs before it started.
func (w *world) fitsSomehow(g *structs.GangPlan, victims []structs.AttemptKey, before []structs.GangPlan) bool {
	less := w.without(victims)
	for i := range before {
		b := &before[i]
		if b.Nominate || len(b.Victims) > 0 {
			continue
		}
		for rank, p := range b.Placements {
			less.allocs = append(less.allocs, &structs.Allocation{
				JobID: b.JobID, NodeID: p.NodeID, Ports: p.Ports, Devices: p.Devices,
				Spec: w.jobs[b.JobID].SpecOf(b.Spec, rank, len(b.Placements)),
			})
		}
	}
	job := w.jobs[g.JobID]
	for rank, p := range g.Placements {
		spec := job.SpecOf(g.Spec, rank, len(g.Placements))
		n, u := less.nodes[p.NodeID], less.usage(p.NodeID)
		_, devices := feasible.ChooseDevices(n, u, spec.Devices)
		_, ports := feasible.ChoosePorts(n, u, job.PortRequests(spec, rank), 0)
		if feasible.RoomProblem(n, u, spec) != nil || !devices || !ports {
			return false
		}
	}
	return true
}

// free reports whether nothing stands on the nodes nominated for s any
// more that has to leave.
func (w *world) free(s *structs.Subjob) bool {
	for _, key := range s.Nomination.Victims {
		if a := w.attempts[subjobID{key.JobID, key.Subjob}]; a != nil && a.Number == key.Number {
			return false
		}
	}
	return s.Nomination.Gang.Nominate == false
}

// checkNominations asserts that a nomination without victims left to wait for, other
// than one of VIP machines, has been fulfilled, and that no node is nominated twice or
// to nobody.
func checkNominations(t *rapid.T, w *world) {
	for node, key := range w.nominations {
		found := slices.ContainsFunc(w.queuedOrStopping(), func(s *structs.Subjob) bool {
			return s.Nomination != nil && structs.SubjobKey(s.JobID, s.Index) == key
		})
		if !found {
			t.Fatalf("node %s is nominated for %s, which knows nothing of it", node, key)
		}
	}
	for _, s := range w.queued() {
		if s.Nomination != nil && len(s.Nomination.Victims) > 0 && w.free(s) {
			t.Fatalf("%s has no victims left and still waits for its nodes", s.JobID)
		}
	}
}

func (w *world) queuedOrStopping() []*structs.Subjob {
	var list []*structs.Subjob
	for _, s := range w.subjobs {
		if s.State == structs.JobQueued || s.State == structs.JobStopping {
			list = append(list, s)
		}
	}
	return list
}

// TestAloneDecidesAsTheStateCarriesOut drives the same jobs through a board that
// is alone and through a world whose gangs end at once when they are told to,
// and asserts that the same gangs run on the same nodes.
func TestAloneDecidesAsTheStateCarriesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawKeenWorld(t)
		live := NewBoard(Settings{Quiet: true})
		live.Sync(w)
		alone := live.Clone()
		settings := alone.Settings()
		settings.Alone = true
		alone.SetSettings(settings)
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				j := drawKeen(t, fmt.Sprintf("j%03d", i), len(w.nodes))
				w.submit(j)
				alone.Submit(j, w.subjobs[subjobID{j.ID, 0}])
			case 2:
				if running := w.running(); len(running) > 0 {
					s := rapid.SampledFrom(running).Draw(t, "ends")
					w.end(s.JobID, s.Index, structs.JobSucceeded)
					if !alone.End(s.JobID, s.Index) {
						t.Fatalf("%s runs in the world and not on the board", s.JobID)
					}
				}
			case 3:
				w.now = w.now.Add(15 * time.Minute)
			}
			for {
				live.Sync(w)
				plan := live.Pass(w.now, 1)
				checkBoard(t, live)
				w.apply(t, plan)
				w.endStopping()
				w.fulfil()
				if len(plan.Gangs) == 0 {
					break
				}
			}
			for {
				plan := alone.Pass(w.now, 1)
				checkBoard(t, alone)
				for k := range plan.Gangs {
					alone.Started(plan.Gangs[k].JobID, plan.Gangs[k].Subjob, w.now)
				}
				if len(plan.Gangs) == 0 {
					break
				}
			}
			live.Sync(w)
			if a, b := live.tellRunning(), alone.tellRunning(); a != b {
				t.Fatalf("the state and the lonely board differ:\nstate %s\nalone %s", a, b)
			}
		}
	})
}

// tellRunning writes what runs where.
func (b *Board) tellRunning() string {
	text := ""
	for r := range b.Running() {
		nodes := slices.Clone(r.Nodes)
		slices.Sort(nodes)
		text += fmt.Sprintf("%s#%d%v ", r.Job.Name, r.Attempt, nodes)
	}
	return text
}
