package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// The clusters and queues of the scheduler's figures.
const (
	queueNodes      = 10_000
	queueFewNodes   = 1_000
	queueGang       = 1_000
	queueSingles    = 10_000
	queueStuck      = 100_000
	queueStuckRuns  = 50
	queueWave       = 20_000 // jobs of queueMillionOn that run at a time
	queueWaves      = 50
	queueMillionOn  = 5_000
	queueDecisions  = 2_000
	queueNodeCPU    = 64
	queueNodeMemory = 512 << 30
)

// queueFigures measures the scheduler alone, in this process and on one core:
// a board is brought to a state once, and then driven by hand. Times are told
// twice, by the clock on the wall and as processor time of the process, which
// other work on the machine disturbs less.
func queueFigures(ctx context.Context, b *bench) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, measure := range []func(context.Context, *bench) error{
		queueGangs, queueManySingles, queueNothingFree, queueMillion, queuePerDecision, queueMemory,
	} {
		if err := measure(ctx, b); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		debug.FreeOSMemory()
	}
	return nil
}

// cluster is a snapshot of prepared lists, so that the figures are those of the
// scheduler and not of the state.
type cluster struct{ changes structs.Changes }

func (c *cluster) Index() uint64                  { return 1 }
func (c *cluster) Changes(uint64) structs.Changes { return c.changes }

// newCluster makes nodes of 64 cores and 8 devices, of which held cores are
// taken.
func newCluster(nodes int, held float64) *cluster {
	c := &cluster{structs.Changes{Full: true}}
	for i := range nodes {
		n := &structs.Node{
			ID: fmt.Sprintf("%032x", i+1), Name: fmt.Sprintf("node-%05d", i), Drivers: []string{structs.DriverExec},
			Status: structs.NodeReady, Eligibility: structs.NodeEligible,
			Topology: []string{fmt.Sprintf("room-%d", i/1024), fmt.Sprintf("rack-%d", i/32)},
			Capacity: structs.Capacity{CPU: queueNodeCPU, Memory: queueNodeMemory, PortMin: 20000, PortMax: 32000},
		}
		for k := range fleetDevices {
			n.Devices = append(n.Devices, structs.Device{
				ID: fmt.Sprintf("GPU-%05d-%d", i, k), Index: k, Kind: fleetDevice, Model: "A800",
				Memory: 80 << 30, LinkGroup: fmt.Sprint(k / 4), NUMANode: k / 4, Healthy: true,
			})
		}
		c.changes.Nodes = append(c.changes.Nodes, structs.NodeChange{
			ID: n.ID, Node: n,
			Usage: &structs.Usage{NodeID: n.ID, CPU: held, Ports: map[int]string{}, Devices: map[string]string{}},
		})
	}
	return c
}

// queue adds a job to what waits. Each has a specification of its own, as jobs
// from users have.
func (c *cluster) queue(job *structs.Job) {
	c.changes.Subjobs = append(c.changes.Subjobs, structs.SubjobChange{JobID: job.ID, Job: job, Subjob: waiting(job, len(c.changes.Subjobs))})
}

func (c *cluster) board(settings scheduler.Settings) *scheduler.Board {
	board := scheduler.NewBoard(settings)
	board.Sync(c)
	return board
}

func waiting(job *structs.Job, place int) *structs.Subjob {
	return &structs.Subjob{JobID: job.ID, State: structs.JobQueued, CreateIndex: uint64(place + 1), Place: uint64(place+1) << 20}
}

// queueJob is a job as it is after admission.
func queueJob(name string, nodes int, cpu float64, devices int) *structs.Job {
	j := &structs.Job{
		ID: "id-" + name, Name: name, Project: "default", Nodes: nodes, Priority: structs.PriorityNormal,
		Distributed: structs.Distributed{Mode: structs.ModeNone},
		Resources:   []structs.Resources{{CPU: cpu, Memory: 1 << 30}},
		Task:        structs.Task{Driver: structs.DriverExec, Command: "true"},
		TimeLimit:   structs.Duration(time.Hour),
	}
	if devices > 0 {
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: fleetDevice, Count: devices, Model: "A800"}}
	}
	return j
}

// samples gathers the times of one figure, in seconds.
type samples struct{ wall, cpu []float64 }

// time runs what is measured.
func (s *samples) time(do func()) {
	begin, spent := time.Now(), processorTime()
	do()
	s.cpu = append(s.cpu, (processorTime() - spent).Seconds())
	s.wall = append(s.wall, time.Since(begin).Seconds())
}

// report prints both times in a unit of which a second has perSecond.
func (s *samples) report(name, unit string, perSecond float64) {
	for i := range s.wall {
		s.wall[i] *= perSecond
		s.cpu[i] *= perSecond
	}
	report(name+"_"+unit, unit, s.wall)
	report(name+"_cpu_"+unit, unit, s.cpu)
}

// processorTime is what the process has used so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // of this process: always known
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// queueGangs places one gang on idle nodes.
func queueGangs(_ context.Context, b *bench) error {
	board := newCluster(queueNodes, 0).board(scheduler.Settings{Alone: true})
	board.Pass(1, 1)
	for _, size := range []int{queueGang, queueNodes} {
		job := queueJob("gang", size, 32, fleetDevices)
		job.Distributed.Mode = structs.ModePyTorch
		var s samples
		for range max(b.runs, 5) {
			var plan structs.Plan
			s.time(func() {
				board.Submit(job, waiting(job, 0))
				plan = board.Pass(1, 1)
			})
			if len(plan.Gangs) != 1 || len(plan.Gangs[0].Placements) != size {
				return fmt.Errorf("the gang of %d did not start", size)
			}
			board.End(job.ID, 0)
		}
		s.report(fmt.Sprintf("queue_gang_%d_of_%d", size, queueNodes), "ms", 1e3)
	}
	return nil
}

// queueManySingles places jobs of one node each that all wait at once.
func queueManySingles(_ context.Context, b *bench) error {
	idle := newCluster(queueNodes, 0)
	for _, shape := range []struct {
		name    string
		cpu     float64
		devices int
	}{{"one_core", 1, 0}, {"whole_nodes", queueNodeCPU, fleetDevices}} {
		jobs := make([]*structs.Job, queueSingles)
		for i := range jobs {
			jobs[i] = queueJob(fmt.Sprintf("single-%d", i), 1, shape.cpu, shape.devices)
		}
		var s samples
		for range max(b.runs, 3) {
			board := idle.board(scheduler.Settings{Quiet: true})
			board.Pass(1, 1)
			placed := 0
			s.time(func() { placed = placeAll(board, jobs) })
			if placed != queueSingles {
				return fmt.Errorf("%d of %d jobs started", placed, queueSingles)
			}
		}
		s.report(fmt.Sprintf("queue_%d_singles_%s", queueSingles, shape.name), "s", 1)
	}
	return nil
}

// placeAll submits jobs and passes until nothing starts any more; it reports how
// many started.
func placeAll(board *scheduler.Board, jobs []*structs.Job) int {
	for i, job := range jobs {
		board.Submit(job, waiting(job, i))
	}
	for placed := 0; ; {
		plan := board.Pass(1, 1)
		if len(plan.Gangs) == 0 {
			return placed
		}
		placed += len(plan.Gangs)
	}
}

// stuckCluster has half of every node held by what nobody knows the end of, and
// a long queue of jobs that need more than the other half.
func stuckCluster() *cluster {
	c := newCluster(queueNodes, queueNodeCPU/2)
	for i := range queueStuck {
		j := queueJob(fmt.Sprintf("stuck-%06d", i), 1+i%7, float64(queueNodeCPU/2+1+i%20), i%3)
		j.Project = fmt.Sprintf("project-%d", i%10)
		j.TimeLimit = structs.Duration(1+i%5) * structs.Duration(time.Hour)
		c.queue(j)
	}
	return c
}

// queueNothingFree passes over a long queue of which nothing can start, with
// explanations: after a change of the cluster that concerns everybody, after a
// gang ended and another took its place, and after another job came.
func queueNothingFree(_ context.Context, _ *bench) error {
	board := stuckCluster().board(scheduler.Settings{Alone: true})
	var first samples
	first.time(func() { board.Pass(1, 1) })
	first.report(fmt.Sprintf("queue_%d_stuck_first_pass", queueStuck), "ms", 1e3)
	for len(board.Pass(1, 1).Waits) > 0 { // until everybody has been told
	}
	filler := queueJob("filler", 1, queueNodeCPU/2, 0)
	filler.Priority = structs.PriorityCritical
	board.Submit(filler, waiting(filler, 0))
	board.Pass(1, 1)
	var all, ended, came samples
	for i := range queueStuckRuns {
		board.PutPool(structs.PoolDefault, nil)
		all.time(func() { board.Pass(1, 1) })
		board.End(filler.ID, 0)
		board.Submit(filler, waiting(filler, 0))
		ended.time(func() { board.Pass(1, 1) })
		late := queueJob(fmt.Sprintf("late-%d", i), 2, queueNodeCPU, 0)
		board.Submit(late, waiting(late, 2*queueStuck+i))
		came.time(func() { board.Pass(1, 1) })
	}
	all.report(fmt.Sprintf("queue_%d_stuck_all_anew", queueStuck), "ms", 1e3)
	ended.report(fmt.Sprintf("queue_%d_stuck_after_an_end", queueStuck), "ms", 1e3)
	came.report(fmt.Sprintf("queue_%d_stuck_after_a_job", queueStuck), "ms", 1e3)
	return nil
}

// queueMillion places a million jobs: waves of jobs of one core fill a part of
// the cluster, and end.
func queueMillion(ctx context.Context, _ *bench) error {
	idle := newCluster(queueMillionOn, 0)
	jobs := make([]*structs.Job, queueWave)
	for i := range jobs {
		jobs[i] = queueJob(fmt.Sprintf("one-%d", i), 1, 1, 0)
	}
	board := idle.board(scheduler.Settings{Quiet: true, Alone: true})
	placed := 0
	var s samples
	s.time(func() {
		for range queueWaves {
			placed += placeAll(board, jobs)
			for _, job := range jobs {
				board.End(job.ID, 0)
			}
			if ctx.Err() != nil {
				return
			}
		}
	})
	if placed != queueWave*queueWaves {
		return fmt.Errorf("%d of %d jobs started", placed, queueWave*queueWaves)
	}
	s.report(fmt.Sprintf("queue_million_on_%d", queueMillionOn), "s", 1)
	return nil
}

// queuePerDecision places jobs one by one on a half full cluster, a pass for
// each, on few and on many nodes.
func queuePerDecision(_ context.Context, _ *bench) error {
	for _, nodes := range []int{queueFewNodes, queueNodes} {
		board := newCluster(nodes, queueNodeCPU/2).board(scheduler.Settings{Alone: true})
		board.Pass(1, 1)
		var s samples
		for i := range queueDecisions {
			job := queueJob(fmt.Sprintf("d-%d", i), 1, float64(1+i%16), i%9)
			s.time(func() {
				board.Submit(job, waiting(job, i))
				board.Pass(1, 1)
			})
		}
		s.report(fmt.Sprintf("queue_decision_%d_nodes", nodes), "us", 1e6)
	}
	return nil
}

// queueMemory weighs the board of a long queue with the jobs in it, their
// specifications counted.
func queueMemory(context.Context, *bench) error {
	empty := newCluster(queueNodes, queueNodeCPU/2).board(scheduler.Settings{})
	empty.Pass(1, 1)
	before := heapInUse()
	full := stuckCluster()
	board := full.board(scheduler.Settings{})
	for range 2 {
		board.Pass(1, 1)
	}
	after := heapInUse()
	nodes := newCluster(queueNodes, queueNodeCPU/2)
	bare := heapInUse() - after
	report(fmt.Sprintf("queue_%d_stuck_mb", queueStuck), "MB", []float64{float64(after-before-bare) / 1e6})
	runtime.KeepAlive(empty)
	runtime.KeepAlive(board)
	runtime.KeepAlive(full)
	runtime.KeepAlive(nodes)
	return nil
}

// heapInUse is what is reachable now.
func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
