package scheduler

import (
	"fmt"
	"iter"
	"testing"

	"nomadlike/nomadlike/structs"
)

// still is a snapshot of prepared lists, so that a benchmark measures the
// scheduler and not the world.
type still struct {
	queue []entry
	nodes []*structs.Node
	usage []*structs.Usage
	alloc *structs.Allocation
}

func (s *still) Index() uint64 { return 1 }

func (s *still) Queue() iter.Seq2[*structs.Job, *structs.Subjob] {
	return func(yield func(*structs.Job, *structs.Subjob) bool) {
		for i := range s.queue {
			if !yield(s.queue[i].job, s.queue[i].subjob) {
				return
			}
		}
	}
}

func (s *still) Nodes() iter.Seq2[*structs.Node, *structs.Usage] {
	return func(yield func(*structs.Node, *structs.Usage) bool) {
		for i := range s.nodes {
			if !yield(s.nodes[i], s.usage[i]) {
				return
			}
		}
	}
}

func (s *still) Holders(string) iter.Seq[*structs.Allocation] {
	return func(yield func(*structs.Allocation) bool) {
		if s.alloc != nil {
			yield(s.alloc)
		}
	}
}

// stillOf makes nodes of 64 cores and 8 devices, of which held are taken, and
// a queue of jobs, each with its own spec object as jobs from users have.
func stillOf(nodes, jobs int, held float64, job func(i int) *structs.Job) *still {
	s := &still{alloc: &structs.Allocation{JobID: "id-holder"}}
	for i := range nodes {
		n := testNode(fmt.Sprintf("node-%05d", i), 64, 512<<30)
		n.Devices = testDevices(8, "nvidia/gpu", "A800")
		s.nodes = append(s.nodes, n)
		s.usage = append(s.usage, &structs.Usage{NodeID: n.ID, CPU: held, Ports: map[int]string{}, Devices: map[string]string{}})
	}
	for i := range jobs {
		j := job(i)
		s.queue = append(s.queue, entry{j, &structs.Subjob{JobID: j.ID, State: structs.JobQueued, CreateIndex: uint64(i)}})
	}
	return s
}

// explain gives every waiting job what a call explains, as the state would
// after some calls.
func (s *still) explain() {
	for {
		plan := Schedule(Input{Snapshot: s}, 1, 1)
		if len(plan.Waits) == 0 {
			return
		}
		byID := make(map[string]*structs.WaitReason, len(plan.Waits))
		for _, u := range plan.Waits {
			byID[u.JobID] = u.Wait
		}
		for _, e := range s.queue {
			if wait := byID[e.job.ID]; wait != nil {
				e.subjob.Wait = wait
			}
		}
	}
}

// BenchmarkSchedule measures one call. "start" places a thousand trivial jobs
// (in plans of at most GangsMax), "gangs" a hundred gangs of four whole nodes as
// far as they fit, "wait" finds that nothing of the queue can start.
func BenchmarkSchedule(b *testing.B) {
	trivial := func(i int) *structs.Job { return testJob(fmt.Sprintf("j%06d", i), 1, 0.01, 1<<20) }
	gang := func(i int) *structs.Job {
		j := testJob(fmt.Sprintf("g%06d", i), 4, 32, 64<<30)
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 8, Model: "A800"}}
		j.Distributed.Mode = structs.ModePyTorch
		return j
	}
	various := func(i int) *structs.Job { return testJob(fmt.Sprintf("v%06d", i), 1+i%7, float64(33+i%20), 1<<30) }
	for _, nodes := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("start1000/nodes=%d", nodes), func(b *testing.B) {
			s := stillOf(nodes, 1000, 0, trivial)
			b.ReportAllocs()
			for b.Loop() {
				if plan := Schedule(Input{Snapshot: s}, 1, 1); len(plan.Gangs) != GangsMax {
					b.Fatal(len(plan.Gangs))
				}
			}
		})
		b.Run(fmt.Sprintf("start1/nodes=%d", nodes), func(b *testing.B) {
			s := stillOf(nodes, 1, 0, trivial)
			b.ReportAllocs()
			for b.Loop() {
				if plan := Schedule(Input{Snapshot: s}, 1, 1); len(plan.Gangs) != 1 {
					b.Fatal(len(plan.Gangs))
				}
			}
		})
		b.Run(fmt.Sprintf("gangs100/nodes=%d", nodes), func(b *testing.B) {
			s := stillOf(nodes, 100, 0, gang)
			b.ReportAllocs()
			for b.Loop() {
				if plan := Schedule(Input{Snapshot: s}, 1, 1); len(plan.Gangs) != min(100, nodes/4) {
					b.Fatal(len(plan.Gangs))
				}
			}
		})
		for _, queue := range []int{1000, 100000} {
			b.Run(fmt.Sprintf("wait%d/nodes=%d", queue, nodes), func(b *testing.B) {
				s := stillOf(nodes, queue, 32, various)
				s.explain()
				b.ReportAllocs()
				for b.Loop() {
					if plan := Schedule(Input{Snapshot: s}, 1, 1); len(plan.Gangs)+len(plan.Waits) != 0 {
						b.Fatal(len(plan.Gangs), len(plan.Waits))
					}
				}
			})
		}
	}
}
