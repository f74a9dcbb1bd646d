package scheduler

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// still is a snapshot of prepared lists, so that a benchmark measures the
// scheduler and not the world.
type still struct{ changes structs.Changes }

func (s *still) Index() uint64                  { return 1 }
func (s *still) Changes(uint64) structs.Changes { return s.changes }

// stillOf makes nodes of 64 cores and 8 devices, of which held cores are taken,
// and a queue of jobs, each with its own spec object as jobs from users have.
func stillOf(nodes, jobs int, held float64, job func(i int) *structs.Job) *still {
	s := &still{structs.Changes{Full: true}}
	for i := range nodes {
		n := testNode(fmt.Sprintf("node-%05d", i), 64, 512<<30)
		n.Devices = testDevices(8, "nvidia/gpu", "A800")
		n.Topology = []string{fmt.Sprintf("room-%d", i/1024), fmt.Sprintf("rack-%d", i/32)}
		s.changes.Nodes = append(s.changes.Nodes, structs.NodeChange{
			ID: n.ID, Node: n,
			Usage: &structs.Usage{NodeID: n.ID, CPU: held, Ports: map[int]string{}, Devices: map[string]string{}},
		})
	}
	for i := range jobs {
		j := job(i)
		s.changes.Subjobs = append(s.changes.Subjobs, structs.SubjobChange{
			JobID: j.ID, Job: j,
			Subjob: &structs.Subjob{JobID: j.ID, State: structs.JobQueued, CreateIndex: uint64(i + 1)},
		})
	}
	return s
}

func (s *still) board(settings Settings) *Board {
	b := NewBoard(settings)
	b.Sync(s)
	return b
}

func benchGang(name string, nodes int) *structs.Job {
	j := testJob(name, nodes, 32, 64<<30)
	j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 8, Model: "A800"}}
	j.Distributed.Mode = structs.ModePyTorch
	j.TimeLimit = structs.Duration(time.Hour)
	return j
}

// BenchmarkGang places one gang on the idle cluster, on a board that is ready.
func BenchmarkGang(b *testing.B) {
	for _, size := range []struct{ nodes, gang int }{{1000, 1000}, {10000, 1}, {10000, 1000}, {10000, 10000}} {
		b.Run(fmt.Sprintf("nodes=%d/gang=%d", size.nodes, size.gang), func(b *testing.B) {
			board := stillOf(size.nodes, 0, 0, nil).board(Settings{Alone: true})
			board.Pass(1, 1)
			job := benchGang("gang", size.gang)
			b.ReportAllocs()
			for b.Loop() {
				board.Submit(job, &structs.Subjob{JobID: job.ID, State: structs.JobQueued})
				if plan := board.Pass(1, 1); len(plan.Gangs) != 1 || len(plan.Gangs[0].Placements) != size.gang {
					b.Fatal(len(plan.Gangs))
				}
				b.StopTimer()
				board.End(job.ID, 0)
				b.StartTimer()
			}
		})
	}
}

// BenchmarkSingles places ten thousand jobs of one device each, in as many
// passes as plans are needed.
func BenchmarkSingles(b *testing.B) {
	for _, nodes := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			const count = 10000
			s := stillOf(nodes, 0, 0, nil)
			jobs := make([]*structs.Job, count)
			for i := range jobs {
				jobs[i] = testJob(fmt.Sprintf("j%06d", i), 1, 1, 1<<30)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				board := s.board(Settings{Quiet: true})
				board.Pass(1, 1)
				b.StartTimer()
				for i, job := range jobs {
					board.Submit(job, &structs.Subjob{JobID: job.ID, State: structs.JobQueued, CreateIndex: uint64(i + 1)})
				}
				placed := 0
				for placed < count {
					plan := board.Pass(1, 1)
					if placed += len(plan.Gangs); len(plan.Gangs) == 0 {
						b.Fatal(placed)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/placement")
		})
	}
}

// BenchmarkStuck passes over a long queue of which nothing can start: again
// after nothing changed, and after one gang ended and another took its place.
func BenchmarkStuck(b *testing.B) {
	various := func(i int) *structs.Job {
		j := testJob(fmt.Sprintf("v%06d", i), 1+i%7, float64(33+i%20), 1<<30)
		j.Project = fmt.Sprintf("p%d", i%10)
		j.TimeLimit = structs.Duration(1+i%5) * structs.Duration(time.Hour)
		if i%3 > 0 {
			j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: i % 3, Model: "A800"}}
		}
		return j
	}
	for _, nodes := range []int{1000, 10000} {
		s := stillOf(nodes, 100000, 32, various)
		for _, quiet := range []bool{true, false} {
			board := s.board(Settings{Quiet: quiet, Alone: true})
			for { // until every job is explained
				if plan := board.Pass(1, 1); len(plan.Waits) == 0 {
					break
				}
			}
			b.Run(fmt.Sprintf("same/nodes=%d/quiet=%t", nodes, quiet), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					board.queue.soilAll()
					if plan := board.Pass(1, 1); len(plan.Gangs) != 0 {
						b.Fatal(len(plan.Gangs))
					}
				}
			})
			b.Run(fmt.Sprintf("anew/nodes=%d/quiet=%t", nodes, quiet), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					board.PutPool(structs.PoolDefault, nil)
					if plan := board.Pass(1, 1); len(plan.Gangs) != 0 {
						b.Fatal(len(plan.Gangs))
					}
				}
			})
			filler := testJob("filler", 1, 16, 1<<30)
			b.Run(fmt.Sprintf("end/nodes=%d/quiet=%t", nodes, quiet), func(b *testing.B) {
				b.ReportAllocs()
				filler.Priority = structs.PriorityCritical
				board.Submit(filler, &structs.Subjob{JobID: filler.ID, State: structs.JobQueued})
				board.Pass(1, 1)
				for b.Loop() {
					board.End(filler.ID, 0)
					board.Submit(filler, &structs.Subjob{JobID: filler.ID, State: structs.JobQueued})
					if plan := board.Pass(1, 1); len(plan.Gangs) != 1 {
						b.Fatal(len(plan.Gangs))
					}
				}
				board.End(filler.ID, 0)
			})
		}
	}
}

// BenchmarkStuckOnQuota passes over a long queue behind quotas: the first gang of
// each project waits for room and keeps quota, the others are too large for what
// is left or have none.
func BenchmarkStuckOnQuota(b *testing.B) {
	s := stillOf(10000, 100000, 32, func(i int) *structs.Job {
		j := testJob(fmt.Sprintf("v%06d", i), 1+i%7, float64(33+i%20), 1<<30)
		j.Project = fmt.Sprintf("p%d", i%10)
		j.TimeLimit = structs.Duration(1+i%50) * structs.Duration(time.Hour)
		return j
	})
	for i := range 10 {
		most := 50 + 30*i
		s.changes.Projects = append(s.changes.Projects, structs.ProjectChange{
			Name:    fmt.Sprintf("p%d", i),
			Project: &structs.Project{Quotas: []structs.Quota{{Kind: structs.QuotaCPU, Maximum: &most}}},
		})
	}
	board := s.board(Settings{Alone: true})
	for len(board.Pass(1, 1).Waits) > 0 {
	}
	b.ReportAllocs()
	for b.Loop() {
		board.queue.soilAll()
		if plan := board.Pass(1, 1); len(plan.Gangs) != 0 {
			b.Fatal(len(plan.Gangs))
		}
	}
}

// BenchmarkMillion places a million jobs on 5,000 nodes: waves of jobs of one
// core fill a part of the cluster, and end.
func BenchmarkMillion(b *testing.B) {
	const nodes, wave, waves = 5000, 20000, 50
	s := stillOf(nodes, 0, 0, nil)
	jobs := make([]*structs.Job, wave)
	for i := range jobs {
		jobs[i] = testJob(fmt.Sprintf("j%06d", i), 1, 1, 1<<30)
	}
	for b.Loop() {
		board := s.board(Settings{Quiet: true})
		placed := 0
		for range waves {
			for i, job := range jobs {
				board.Submit(job, &structs.Subjob{JobID: job.ID, State: structs.JobQueued, CreateIndex: uint64(i + 1)})
			}
			for left := wave; left > 0; {
				plan := board.Pass(1, 1)
				left -= len(plan.Gangs)
				placed += len(plan.Gangs)
			}
			for _, job := range jobs {
				board.End(job.ID, 0)
			}
		}
		if placed != wave*waves {
			b.Fatal(placed)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(wave*waves), "ns/placement")
}

// busyBoard has running gangs of a few nodes and as many queued.
func busyBoard(nodes, running, queued int) *Board {
	board := stillOf(nodes, 0, 0, nil).board(Settings{Quiet: true, Alone: true})
	for i := range running + queued {
		j := testJob(fmt.Sprintf("b%06d", i), 1+i%2, 8, 64<<30)
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 1 + i%8}}
		j.Project = fmt.Sprintf("p%d", i%8)
		j.TimeLimit = structs.Duration(1+i%97) * structs.Duration(time.Minute)
		board.Submit(j, &structs.Subjob{JobID: j.ID, State: structs.JobQueued, CreateIndex: uint64(i + 1)})
		if i == running-1 {
			for len(board.Pass(1, 1).Gangs) > 0 {
			}
		}
	}
	board.Pass(1, 1)
	return board
}

// BenchmarkClone copies a board with a thousand running gangs and a thousand
// queued ones.
func BenchmarkClone(b *testing.B) {
	board := busyBoard(900, 1000, 1000)
	running, queued := 0, 0
	for range board.Running() {
		running++
	}
	for range board.Queued() {
		queued++
	}
	b.ReportAllocs()
	for b.Loop() {
		board.Clone()
	}
	b.ReportMetric(float64(running), "running")
	b.ReportMetric(float64(queued), "queued")
}

// BenchmarkFuture plays a clone forward, end by end, until all has run.
func BenchmarkFuture(b *testing.B) {
	board := busyBoard(500, 1000, 1000)
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		future := board.Clone()
		events = playOut(future)
	}
	b.ReportMetric(float64(events), "events")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

// playOut ends the gangs of a board at their limits, one instant after another,
// and counts the ends.
func playOut(b *Board) int {
	events := 0
	for len(b.queue.runs) > 0 {
		next := never
		for _, r := range b.queue.runs {
			next = min(next, r.end)
		}
		var over []subjobID
		for _, r := range b.queue.runs {
			if r.end == next {
				over = append(over, subjobID{b.queue.entries[r.entry].jobID, b.queue.entries[r.entry].index})
			}
		}
		for _, id := range over {
			b.End(id.job, id.index)
			events++
		}
		for len(b.Pass(next, 1).Gangs) > 0 {
		}
	}
	return events
}

// TestMemoryOfQueue: a hundred thousand queued jobs on the board stay within
// 100 MB, their own specs not counted.
func TestMemoryOfQueue(t *testing.T) {
	const queued, most = 100_000, 100 << 20
	s := stillOf(100, queued, 32, func(i int) *structs.Job {
		j := testJob(fmt.Sprintf("v%06d", i), 1+i%7, float64(33+i%20), 1<<30)
		j.Project = fmt.Sprintf("p%d", i%10)
		return j
	})
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	board := s.board(Settings{})
	board.Pass(1, 1)
	after := heap()
	if after-before > most {
		t.Errorf("%d queued jobs take %d MB", queued, (after-before)>>20)
	}
	t.Logf("%d queued jobs take %.1f MB", queued, float64(after-before)/(1<<20))
	runtime.KeepAlive(board)
	runtime.KeepAlive(s)
}

// BenchmarkHeld passes over a queue beside which so many wait for other jobs: what
// changes each time is one more job that starts.
func BenchmarkHeld(b *testing.B) {
	for _, count := range []int{0, 10_000, 100_000} {
		b.Run(fmt.Sprintf("held=%d", count), func(b *testing.B) {
			s := stillOf(100, count, 0, func(i int) *structs.Job { return testJob(fmt.Sprintf("j%06d", i), 1, 1, 1<<30) })
			for i := range s.changes.Subjobs {
				s.changes.Subjobs[i].Subjob.Pending = []string{"other"}
			}
			board := s.board(Settings{Alone: true})
			board.Pass(1, 1)
			job := testJob("starts", 1, 1, 1<<30)
			for b.Loop() {
				board.Submit(job, &structs.Subjob{JobID: job.ID, State: structs.JobQueued})
				if plan := board.Pass(1, 1); len(plan.Gangs) != 1 {
					b.Fatal(len(plan.Gangs))
				}
				board.End(job.ID, 0)
			}
		})
	}
}
