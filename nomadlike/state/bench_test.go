package state

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"

	"nomadlike/nomadlike/structs"
)

// lives makes the log of n single-node jobs that are submitted, placed, run
// and complete, in rounds of so many at a time.
func lives(n, round int) []Entry {
	var log []Entry
	add := func(kind structs.CommandKind, body any) {
		log = append(log, Entry{Index: uint64(len(log) + 1), Command: encode(kind, structs.UnixNano(len(log)+1), body)})
	}
	const nodes = 16
	for i := range nodes {
		node := testNode(i)
		node.Capacity.CPU, node.Capacity.Memory = 1e6, 1<<60
		add(structs.CommandNodeRegister, &structs.NodeRegister{Node: node})
	}
	for from := 0; from < n; from += round {
		plan := &structs.Plan{}
		for i := from; i < from+round; i++ {
			job := testJob(fmt.Sprintf("j%d", i), 1)
			add(structs.CommandJobSubmit, &structs.JobSubmit{Job: job})
			plan.Gangs = append(plan.Gangs, structs.GangPlan{
				JobID: job.ID, Attempt: 1,
				Placements: []structs.RankPlacement{{NodeID: fmt.Sprintf("node-%d", i%nodes)}},
			})
		}
		add(structs.CommandPlan, plan)
		for _, status := range []structs.AllocStatus{structs.AllocRunning, structs.AllocComplete} {
			for i := from; i < from+round; i++ {
				add(structs.CommandAllocReports, &structs.AllocReports{
					NodeID:  fmt.Sprintf("node-%d", i%nodes),
					Reports: []structs.AllocReport{{AllocID: structs.AllocID(fmt.Sprintf("job-j%d", i), 0, 1, 0), Attempt: 1, Status: status}},
				})
			}
		}
	}
	return log
}

// BenchmarkJobLives applies whole lives of single-node jobs. One op is a job:
// a submission, its share of a plan, and two reports in entries of their own.
func BenchmarkJobLives(b *testing.B) {
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			log := lives(b.N, min(b.N, 32))
			store := New()
			b.ResetTimer()
			for rest := log; len(rest) > 0; {
				n := min(batch, len(rest))
				for _, result := range store.ApplyBatch(rest[:n]) {
					if result.Err != nil {
						b.Fatal(result.Err)
					}
				}
				rest = rest[n:]
			}
			b.StopTimer()
			b.ReportMetric(float64(len(log))/b.Elapsed().Seconds(), "entries/s")
			ended := 0
			for view := range store.Snapshot().Jobs() {
				if view.Status.State == structs.JobSucceeded {
					ended++
				}
			}
			if ended < b.N {
				b.Fatalf("%d of %d jobs succeeded", ended, b.N)
			}
		})
	}
}

// BenchmarkGang places and ends one gang of a thousand nodes; every rank
// reports three times.
func BenchmarkGang(b *testing.B) {
	const nodes = 1000
	for range b.N {
		b.StopTimer()
		store, index := New(), uint64(0)
		apply := func(kind structs.CommandKind, body any) {
			index++
			if result := store.Apply(index, encode(kind, 1, body)); result.Err != nil {
				b.Fatal(result.Err)
			}
		}
		gang := structs.GangPlan{JobID: "job-big", Attempt: 1}
		for i := range nodes {
			apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: testNode(i)})
			gang.Placements = append(gang.Placements, structs.RankPlacement{NodeID: fmt.Sprintf("node-%d", i)})
		}
		apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: testJob("big", nodes)})
		b.StartTimer()
		apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{gang}})
		for _, status := range []structs.AllocStatus{structs.AllocPrepared, structs.AllocRunning, structs.AllocComplete} {
			for i := range nodes {
				apply(structs.CommandAllocReports, &structs.AllocReports{
					NodeID:  fmt.Sprintf("node-%d", i),
					Reports: []structs.AllocReport{{AllocID: structs.AllocID("job-big", 0, 1, i), Attempt: 1, Status: status}},
				})
			}
		}
		if view, _ := store.Snapshot().Job("job-big"); view.Status.State != structs.JobSucceeded {
			b.Fatalf("the gang is %s", view.Status.State)
		}
	}
}

// BenchmarkPersist writes a state of ten thousand ended jobs.
func BenchmarkPersist(b *testing.B) {
	store := New()
	store.ApplyBatch(lives(10_000, 1000))
	b.ResetTimer()
	for range b.N {
		if err := store.Snapshot().Persist(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestore reads that state again.
func BenchmarkRestore(b *testing.B) {
	store := New()
	store.ApplyBatch(lives(10_000, 1000))
	var stored bytes.Buffer
	if err := store.Snapshot().Persist(&stored); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(stored.Len()))
	b.ResetTimer()
	for range b.N {
		if err := New().Restore(bytes.NewReader(stored.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWatchedApply applies reports while a thousand readers wait for
// other objects.
func BenchmarkWatchedApply(b *testing.B) {
	log := lives(b.N, min(b.N, 32))
	store := New()
	snapshot := store.Snapshot()
	var readers sync.WaitGroup
	done := make(chan struct{})
	for i := range 1000 {
		readers.Go(func() {
			select {
			case <-snapshot.WatchJob(fmt.Sprintf("other-%d", i)):
			case <-done:
			}
		})
	}
	b.ResetTimer()
	for _, entry := range log {
		store.Apply(entry.Index, entry.Command)
	}
	b.StopTimer()
	close(done)
	readers.Wait()
}
