package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// benchCluster returns servers over real raft, without disks, and three nodes
// that answer at once.
func benchCluster(b *testing.B, servers int) *cluster {
	b.Helper()
	c := newRaftCluster(b, servers, 8192)
	leader := c.leader()
	for i := range 3 {
		c.newNode(fmt.Sprintf("n%d", i)).connect(i % servers)
	}
	c.eventually(leader, 10*time.Second, "nodes are ready", func(s *state.Snapshot) bool {
		ready := 0
		for node := range s.Nodes() {
			if node.Schedulable() {
				ready++
			}
		}
		return ready == 3
	})
	return c
}

// BenchmarkJobs submits single-node jobs from many callers, and waits until
// all have succeeded. One op is a job.
func BenchmarkJobs(b *testing.B) {
	for _, servers := range []int{1, 3} {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			c := benchCluster(b, servers)
			b.ResetTimer()
			var callers sync.WaitGroup
			next := make(chan int)
			for range 64 {
				callers.Go(func() {
					for n := range next {
						name := fmt.Sprintf("j%d", n)
						if _, err := admitAndSubmit(b.Context(), c.servers[n%servers], "", testJob(name, 1)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for n := range b.N {
				next <- n
			}
			close(next)
			callers.Wait()
			c.awaitEnd(b, b.N)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(c.servers[0].Store().Snapshot().Index())/float64(b.N), "entries/job")
		})
	}
}

// BenchmarkSubmit is what a submission costs between its request and the log's
// answer: it is completed, checked and proposed, and the log refuses its token, so
// that the state stays as it is.
func BenchmarkSubmit(b *testing.B) {
	c := newCluster(b, 1)
	c.eventually(0, 10*time.Second, "the cluster is there", func(s *state.Snapshot) bool { return s.Cluster() != nil })
	over := structs.Guard{TokenID: "over"}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		admitted, refusal := Admit(c.servers[0].Store().Snapshot(), testJob("one", 1))
		if refusal != nil {
			b.Fatal(refusal)
		}
		admitted.Job() // a handler looks at it
		if _, _, err := c.servers[0].SubmitJob(b.Context(), over, "ann", "", admitted); structs.CodeOf(err) != structs.CodeUnauthorized {
			b.Fatal(err)
		}
	}
}

// BenchmarkBatch submits one batch; one op is a subjob.
func BenchmarkBatch(b *testing.B) {
	for _, servers := range []int{1, 3} {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			c := benchCluster(b, servers)
			b.ResetTimer()
			for rest, n := b.N, 0; rest > 0; n++ {
				job := testJob(fmt.Sprintf("b%d", n), 1)
				job.Type, job.Batch = structs.JobTypeBatch, &structs.Batch{Count: min(rest, 1000)}
				rest -= job.Batch.Count
				c.submit(0, job)
			}
			c.awaitEnd(b, (b.N+999)/1000)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "subjobs/s")
		})
	}
}

// awaitEnd waits until so many jobs have succeeded.
func (c *cluster) awaitEnd(b *testing.B, jobs int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		ended := 0
		for view := range c.servers[0].Store().Snapshot().Jobs() {
			if view.Status.State == structs.JobSucceeded {
				ended++
			}
		}
		if ended == jobs {
			return
		}
		pass(2 * time.Millisecond)
	}
	b.Fatal("jobs did not end")
}

// BenchmarkLatency submits one job after the other and measures how long each
// takes until it is told to its node, and until it is reported running.
func BenchmarkLatency(b *testing.B) {
	c := benchCluster(b, 3)
	store := c.servers[0].Store()
	var placed, running []time.Duration
	b.ResetTimer()
	for n := range b.N {
		began := time.Now()
		id := c.submit(0, testJob(fmt.Sprintf("j%d", n), 1))
		if _, err := store.Block(b.Context(), func(s *state.Snapshot) (bool, <-chan struct{}) {
			return s.Subjob(id, 0).Attempt == 1, s.WatchSubjobs(id)
		}); err != nil {
			b.Fatal(err)
		}
		placed = append(placed, time.Since(began))
		if _, err := store.Block(b.Context(), func(s *state.Snapshot) (bool, <-chan struct{}) {
			return s.Subjob(id, 0).StartedAt != 0, s.WatchSubjobs(id)
		}); err != nil {
			b.Fatal(err)
		}
		running = append(running, time.Since(began))
	}
	b.StopTimer()
	slices.Sort(placed)
	slices.Sort(running)
	ms := func(all []time.Duration, percent int) float64 {
		return float64(all[len(all)*percent/100].Microseconds()) / 1000
	}
	b.ReportMetric(ms(placed, 50), "placed-p50-ms")
	b.ReportMetric(ms(running, 50), "running-p50-ms")
	b.ReportMetric(ms(running, 99), "running-p99-ms")
}

// BenchmarkTick looks at ten thousand nodes that are heard.
func BenchmarkTick(b *testing.B) {
	const nodes = 10_000
	machine := NewLiveness(LivenessTimings{}, 1)
	var report structs.LivenessReport
	for i := range nodes {
		id := fmt.Sprintf("node-%05d", i)
		machine.Know(0, &structs.Node{ID: id, Incarnation: 1, Status: structs.NodeReady, RegisterIndex: 1})
		report.Nodes = append(report.Nodes, structs.NodeHeartbeat{NodeID: id, Incarnation: 1})
	}
	now := time.Duration(0)
	b.ResetTimer()
	for range b.N {
		now += 50 * time.Millisecond
		for _, heartbeat := range report.Nodes {
			machine.Hear(now, heartbeat)
		}
		if effects := machine.Tick(now); len(effects) > 0 {
			b.Fatalf("a node that is heard is suspected: %+v", effects[0])
		}
	}
}
