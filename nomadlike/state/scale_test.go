package state

import (
	"fmt"
	"runtime"
	"testing"

	"nomadlike/nomadlike/structs"
)

// bigNode is a machine with eight cards, described as fully as agents do.
func bigNode(i int) structs.Node {
	node := structs.Node{
		ID: fmt.Sprintf("%032x", i+1), Name: fmt.Sprintf("gpu-%05d", i), Addr: "10.0.0.1", RPCAddr: "10.0.0.1:4646",
		Version: "0.1.0", Incarnation: 1, Drivers: []string{"exec", "docker"}, Topology: []string{"hall-1", fmt.Sprintf("rack-%d", i/20)},
		Capacity: structs.Capacity{CPU: 96, Memory: 1 << 40, PortMin: 20000, PortMax: 29999},
		Attributes: map[string]string{
			"kernel": "5.15.0-91-generic", "os": "ubuntu", "os.version": "22.04", "cpu.arch": "amd64",
			"cpu.model": "AMD EPYC 7763 64-Core Processor", "memory": "1TiB",
		},
	}
	for d := range 8 {
		node.Devices = append(node.Devices, structs.Device{
			ID: fmt.Sprintf("GPU-%08x-%d", i, d), Index: d, Kind: "nvidia/gpu",
			Model: "NVIDIA A800-SXM4-80GB", Memory: 80 << 30, PCIBus: fmt.Sprintf("0000:%02x:00.0", d), NUMANode: d / 4,
			LinkGroup: "nvlink-0", Healthy: true, Driver: "535.104.05",
		})
	}
	return node
}

// fullJob is a job as the guides show it, with its job file.
func fullJob(i int) *structs.Job {
	job := testJob(fmt.Sprintf("resnet50-%06d", i), 1)
	job.ID = fmt.Sprintf("%032x", i+1)
	job.Project, job.User, job.Description = "vision", "li.wei", "baseline, lr 0.1"
	job.Resources = []structs.Resources{{CPU: 8, Memory: 64 << 30, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 1, Model: "A800"}}}}
	job.Task = structs.Task{
		Driver: "exec", Command: "python3 train.py --epochs 90 --lr 0.1 --data /data/imagenet",
		Env: map[string]string{"LR": "0.1", "SEED": "42"},
	}
	job.TimeLimit, job.Preemptible = structs.Duration(48*3600e9), true
	job.Source = fmt.Sprintf(`job "resnet50-%06d" {
  project    = "vision"
  time_limit = "48h"
  resources {
    cpu    = 8
    memory = "64GiB"
    device "nvidia/gpu" { count = 1, model = "A800" }
  }
  task {
    driver  = "exec"
    command = "python3 train.py --epochs 90 --lr 0.1 --data /data/imagenet"
    env     = { LR = "0.1", SEED = "42" }
  }
}
`, i)
	return job
}

// crowd returns a store with nodes and queued jobs.
func crowd(tb testing.TB, nodes, jobs int) (*Store, uint64) {
	store, index := New(), uint64(0)
	var batch []Entry
	add := func(kind structs.CommandKind, body any) {
		index++
		if batch = append(batch, Entry{index, encode(kind, structs.UnixNano(index), body)}); len(batch) == 512 {
			for _, result := range store.ApplyBatch(batch) {
				if result.Err != nil {
					tb.Fatal(result.Err)
				}
			}
			batch = batch[:0]
		}
	}
	for i := range nodes {
		add(structs.CommandNodeRegister, &structs.NodeRegister{Node: bigNode(i)})
	}
	for i := range jobs {
		add(structs.CommandJobSubmit, &structs.JobSubmit{Job: fullJob(i)})
	}
	store.ApplyBatch(batch)
	return store, index
}

// BenchmarkPlan applies one plan of ten thousand single-node gangs.
func BenchmarkPlan(b *testing.B) {
	const gangs = 10_000
	for range b.N {
		b.StopTimer()
		store, index := crowd(b, gangs, gangs)
		plan := &structs.Plan{}
		for i := range gangs {
			plan.Gangs = append(plan.Gangs, structs.GangPlan{JobID: fmt.Sprintf("%032x", i+1), Attempt: 1, Placements: []structs.RankPlacement{{
				NodeID: fmt.Sprintf("%032x", i+1), Devices: []string{fmt.Sprintf("GPU-%08x-0", i)},
			}}})
		}
		entry := Entry{index + 1, encode(structs.CommandPlan, 1, plan)}
		b.ReportMetric(float64(len(entry.Command)), "bytes/plan")
		runtime.GC()
		b.StartTimer()
		if result := store.ApplyBatch([]Entry{entry})[0]; result.Plan.Accepted != gangs {
			b.Fatalf("%d gangs are accepted: %v", result.Plan.Accepted, result.Plan.Refused[0])
		}
	}
}

// BenchmarkRegister registers nodes in batches, as a busy log does. One op is
// a node.
func BenchmarkRegister(b *testing.B) {
	var log []Entry
	for i := range min(b.N, NodesMax) {
		log = append(log, Entry{uint64(i + 1), encode(structs.CommandNodeRegister, 1, &structs.NodeRegister{Node: bigNode(i)})})
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += len(log) {
		store := New()
		for rest := log; len(rest) > 0; {
			n := min(64, len(rest))
			store.ApplyBatch(rest[:n])
			rest = rest[n:]
		}
	}
}

// BenchmarkQueuedMemory reports what a queued job costs.
func BenchmarkQueuedMemory(b *testing.B) {
	const jobs = 100_000
	var before, after runtime.MemStats
	for range b.N {
		runtime.GC()
		runtime.ReadMemStats(&before)
		store, _ := crowd(b, 0, jobs)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/jobs, "B/job")
		if n := store.Snapshot().LiveCount(); n != jobs {
			b.Fatalf("%d jobs are queued", n)
		}
	}
}

// BenchmarkChanges reads what a plan of a hundred gangs changed among a hundred
// thousand queued jobs.
func BenchmarkChanges(b *testing.B) {
	store, index := crowd(b, 100, 100_000)
	plan := &structs.Plan{}
	for i := range 100 {
		plan.Gangs = append(plan.Gangs, structs.GangPlan{JobID: fmt.Sprintf("%032x", i+1), Attempt: 1, Placements: []structs.RankPlacement{{
			NodeID: fmt.Sprintf("%032x", i+1), Devices: []string{fmt.Sprintf("GPU-%08x-0", i)},
		}}})
	}
	store.Apply(index+1, encode(structs.CommandPlan, 1, plan))
	snapshot := store.Snapshot()
	b.Run("some", func(b *testing.B) {
		for range b.N {
			if changes := snapshot.Changes(index); len(changes.Subjobs) != 100 || len(changes.Nodes) != 100 {
				b.Fatalf("%d subjobs and %d nodes changed", len(changes.Subjobs), len(changes.Nodes))
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for range b.N {
			snapshot.Changes(0)
		}
	})
}

// BenchmarkClaim clears a thousand nodes for one gang: a thousand victims, each
// of which ends in an entry of its own.
func BenchmarkNomination(b *testing.B) {
	const nodes = 1_000
	for range b.N {
		b.StopTimer()
		store, index := crowd(b, nodes, nodes)
		apply := func(kind structs.CommandKind, body any) structs.ApplyResult {
			index++
			return store.Apply(index, encode(kind, structs.UnixNano(index), body))
		}
		big := testJob("big", nodes)
		big.Priority, big.Resources[0].CPU = structs.PriorityCritical, 90
		gang := structs.GangPlan{JobID: big.ID, Attempt: 1}
		plan := &structs.Plan{}
		for i := range nodes {
			job, node := fmt.Sprintf("%032x", i+1), fmt.Sprintf("%032x", i+1)
			plan.Gangs = append(plan.Gangs, structs.GangPlan{JobID: job, Attempt: 1, Placements: []structs.RankPlacement{{
				NodeID: node, Devices: []string{fmt.Sprintf("GPU-%08x-0", i)},
			}}})
			gang.Victims = append(gang.Victims, structs.AttemptKey{JobID: job, Number: 1})
			gang.Placements = append(gang.Placements, structs.RankPlacement{NodeID: node})
		}
		apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: big})
		apply(structs.CommandPlan, plan)
		b.StartTimer()
		if result := apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{gang}}); result.Plan.Accepted != 1 {
			b.Fatalf("the nomination is refused: %v", result.Plan.Refused)
		}
		for i := range nodes {
			apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: fmt.Sprintf("%032x", i+1), Reports: []structs.AllocReport{{
				AllocID: structs.AllocID(fmt.Sprintf("%032x", i+1), 0, 1, 0), Attempt: 1, Status: structs.AllocKilled,
			}}})
		}
		if attempt := store.Snapshot().Attempt(big.ID, 0, 1); attempt == nil {
			b.Fatal("the gang was not placed")
		}
	}
}
