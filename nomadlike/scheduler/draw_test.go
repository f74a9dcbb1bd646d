package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// drawWorld makes a small cluster that is likely to be tight in one resource
// or another.
func drawWorld(t *rapid.T) *world {
	w := newWorld()
	if w.plain = rapid.Bool().Draw(t, "plain"); w.plain {
		drawPlainNodes(t, w)
		return w
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		n := testNode(fmt.Sprintf("n%d", i), float64(rapid.IntRange(1, 8).Draw(t, "cpu")), int64(rapid.IntRange(1, 8).Draw(t, "memory"))<<30)
		n.Capacity.PortMax = n.Capacity.PortMin + rapid.IntRange(-1, 3).Draw(t, "ports")
		n.Pool = rapid.SampledFrom([]string{"", "", "p", "q"}).Draw(t, "pool")
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
	for _, name := range []string{structs.PoolDefault, "p", "q"} {
		if rapid.IntRange(0, 2).Draw(t, "record") == 0 {
			p := &structs.Pool{Name: name, Dedicated: name == "q" && rapid.Bool().Draw(t, "dedicated")}
			p.Order = rapid.SampledFrom([]structs.QueueOrder{"", structs.OrderFair}).Draw(t, "order")
			p.AgeWeight = float64(rapid.IntRange(0, 1).Draw(t, "age"))
			p.Ceilings.Nodes = rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "ceiling")
			w.addPool(p)
		}
	}
	for _, name := range []string{"red", "blue"} {
		if rapid.Bool().Draw(t, "project") {
			p := &structs.Project{Name: name, Weight: float64(rapid.IntRange(0, 2).Draw(t, "weight"))}
			most := rapid.IntRange(1, 8).Draw(t, "most")
			p.Quotas = []structs.Quota{{
				Kind:       rapid.SampledFrom([]string{structs.QuotaCPU, "nvidia/gpu"}).Draw(t, "kind"),
				Guaranteed: rapid.IntRange(0, most).Draw(t, "guaranteed"), Maximum: &most,
			}}
			w.addProject(p)
		}
	}
	return w
}

// drawPlainNodes makes a cluster on which everything hangs on room, time and
// quota: a crowded one with several reserved starts.
func drawPlainNodes(t *rapid.T, w *world) {
	for i := range rapid.IntRange(4, 8).Draw(t, "nodes") {
		n := testNode(fmt.Sprintf("n%d", i), float64(rapid.IntRange(4, 8).Draw(t, "cpu")), 16<<30)
		n.Devices = testDevices(rapid.IntRange(0, 2).Draw(t, "devices"), "nvidia/gpu", "A800")
		w.addNode(n)
	}
	if rapid.Bool().Draw(t, "quota") {
		most := rapid.IntRange(6, 16).Draw(t, "most")
		w.addProject(&structs.Project{Name: "red", Quotas: []structs.Quota{{Kind: structs.QuotaCPU, Maximum: &most}}})
	}
	if rapid.IntRange(0, 3).Draw(t, "fair") == 0 {
		w.addPool(&structs.Pool{Name: structs.PoolDefault, Order: structs.OrderFair})
	}
}

// drawPlainJob makes a job that ends at a known time, for the most part.
func drawPlainJob(t *rapid.T, name string) *structs.Job {
	j := testJob(name, rapid.IntRange(1, 3).Draw(t, "gang"), float64(rapid.IntRange(1, 6).Draw(t, "cpu")), 1<<30)
	j.Project = rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "project")
	j.TimeLimit = structs.Duration(rapid.SampledFrom([]int{5, 30, 90, 600, 600, 0}).Draw(t, "limit")) * structs.Duration(time.Minute)
	if rapid.IntRange(0, 3).Draw(t, "gpu") == 0 {
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: rapid.IntRange(1, 2).Draw(t, "count")}}
	}
	if rapid.IntRange(0, 3).Draw(t, "alternative") == 0 {
		j.Resources = append(j.Resources, structs.Resources{CPU: float64(rapid.IntRange(1, 6).Draw(t, "other")), Memory: 1 << 30})
	}
	return j
}

func drawJob(t *rapid.T, name string) *structs.Job {
	j := testJob(name, rapid.IntRange(1, 4).Draw(t, "gang"), float64(rapid.IntRange(0, 40).Draw(t, "cpu"))/10, int64(rapid.IntRange(0, 4).Draw(t, "memory"))<<30)
	j.Priority = rapid.SampledFrom([]structs.Priority{structs.PriorityNormal, structs.PriorityNormal, structs.PriorityUrgent}).Draw(t, "priority")
	j.Task.Driver = rapid.SampledFrom([]string{"exec", "exec", "exec", "docker"}).Draw(t, "driver")
	j.Placement.SpreadOrPack = rapid.SampledFrom([]string{"pack", "spread"}).Draw(t, "place")
	j.Placement.Pool = rapid.SampledFrom([]string{"", "", "", "p", "q"}).Draw(t, "pool")
	j.Project = rapid.SampledFrom([]string{"red", "blue", "green"}).Draw(t, "project")
	j.TimeLimit = structs.Duration(rapid.SampledFrom([]int{0, 1, 5, 30, 30, 90}).Draw(t, "limit")) * structs.Duration(time.Minute)
	switch rapid.IntRange(0, 8).Draw(t, "flavour") {
	case 0:
		j.Distributed.Mode = structs.ModePyTorch
		j.Distributed.MasterPort = rapid.SampledFrom([]int{0, 0, 2222}).Draw(t, "master")
	case 1:
		j.Resources[0].Ports = []structs.PortRequest{{Name: "http", Static: rapid.SampledFrom([]int{0, 8080, 20000}).Draw(t, "port")}}
	case 2:
		j.Resources[0].Devices = []structs.DeviceRequest{{
			Kind: "nvidia/gpu", Count: rapid.SampledFrom([]int{1, 2, 3, 4, structs.DevicesAll}).Draw(t, "count"),
			Model: rapid.SampledFrom([]string{"", "A800"}).Draw(t, "model"),
		}}
	case 3:
		j.Checkpoint = &structs.Checkpoint{Elastic: &structs.Elastic{MinNodes: rapid.IntRange(1, j.Nodes).Draw(t, "min")}}
	case 4:
		j.Placement.Pool = ""
		j.Placement.Nodes = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n0", "n1", "n2", "id-n3", "n9"}), 1, 4, rapid.ID).Draw(t, "on")
		j.Nodes = min(j.Nodes, len(j.Placement.Nodes))
	case 5:
		j.Resources = append(j.Resources, structs.Resources{CPU: 1, Memory: 1 << 30})
	case 6:
		j.Batch = &structs.Batch{Count: rapid.IntRange(1, 4).Draw(t, "batch")}
	}
	return j
}

// drawWindows draws the windows of maintenance of a node: none, one or two.
func drawWindows(t *rapid.T, now structs.UnixNano) []structs.NodeMaintenance {
	var windows []structs.NodeMaintenance
	at := now
	for i := range rapid.IntRange(0, 2).Draw(t, "windows") {
		start := at.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "ahead")) * time.Minute)
		w := structs.NodeMaintenance{
			ID: fmt.Sprintf("w%d", i), Start: start, End: start.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "length")) * time.Minute),
			KeepRunning: rapid.Bool().Draw(t, "keeps"),
		}
		w.Begun = w.Start <= now && rapid.Bool().Draw(t, "begun")
		windows, at = append(windows, w), w.Start
	}
	return windows
}

// step does one random thing to the world.
func step(t *rapid.T, w *world, i int) {
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 0, 1, 2:
		if !w.plain {
			job := drawJob(t, fmt.Sprintf("j%03d", i))
			if others := slices.Sorted(maps.Keys(w.jobs)); len(others) > 0 && rapid.IntRange(0, 4).Draw(t, "waits") == 0 {
				job.After = []structs.After{{Job: "other", When: structs.UntilEnded, ID: rapid.SampledFrom(others).Draw(t, "after")}}
			}
			w.submit(job)
			return
		}
		for k := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			w.submit(drawPlainJob(t, fmt.Sprintf("j%03d-%d", i, k)))
		}
	case 3, 4:
		if running := w.running(); len(running) > 0 {
			s := rapid.SampledFrom(running).Draw(t, "ends")
			state := rapid.SampledFrom([]structs.JobState{structs.JobSucceeded, structs.JobQueued}).Draw(t, "as")
			w.end(s.JobID, s.Index, state)
			if state == structs.JobQueued {
				delay := time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second
				w.set(subjobID{s.JobID, s.Index}, func(s *structs.Subjob) { s.NotBefore = w.now.Add(delay) })
			}
		}
	case 5:
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 20 * time.Minute}).Draw(t, "tick"))
	case 6:
		name := fmt.Sprintf("id-n%d", rapid.IntRange(0, len(w.nodes)-1).Draw(t, "node"))
		closes := rapid.IntRange(0, 2).Draw(t, "closes") == 0
		w.setNode(name, func(n *structs.Node) {
			if closes {
				n.Maintenance = drawWindows(t, w.now)
				return
			}
			n.Eligibility = rapid.SampledFrom([]structs.Eligibility{structs.NodeEligible, structs.NodeCordoned}).Draw(t, "eligibility")
		})
	case 7:
		if queued := w.queued(); len(queued) > 0 {
			s := rapid.SampledFrom(queued).Draw(t, "moved")
			place := uint64(rapid.IntRange(1, 50).Draw(t, "place")) << 20
			w.set(subjobID{s.JobID, s.Index}, func(s *structs.Subjob) { s.Place, s.Moved = place, true })
		}
	case 8:
		if queued := w.queued(); len(queued) > 0 {
			s := rapid.SampledFrom(queued).Draw(t, "urgent")
			job := *w.jobs[s.JobID]
			job.Priority = structs.PriorityUrgent
			w.jobs[s.JobID] = &job
			for i := range job.SubjobCount() {
				w.touchJob(subjobID{s.JobID, i})
			}
		}
	}
}
