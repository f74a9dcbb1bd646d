package scheduler

import (
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestPreparedDataIsPreferred: a job goes where copies of its datasets are, if
// there is room, and others are placed as if there were none.
func TestPreparedDataIsPreferred(t *testing.T) {
	asked := 0
	settings := Settings{
		Prefer:  func(job *structs.Job, node *structs.Node) int { asked++; return node.HoldsData(job) },
		Prefers: func(job *structs.Job) bool { return len(job.PreparedData()) > 0 },
	}
	place := func(job *structs.Job) string {
		t.Helper()
		w := newWorld()
		for _, name := range []string{"a", "b", "c"} {
			node := &structs.Node{ID: name, Name: name, Status: structs.NodeReady, Eligibility: structs.NodeEligible, Drivers: []string{"exec"},
				Storages: []string{"dataset/nas"}, Capacity: structs.Capacity{CPU: 8, Memory: 8 << 30}}
			if name == "c" {
				node.Data = []string{"p///digits/1"}
			}
			w.addNode(node)
		}
		w.submit(job)
		plan := Schedule(Input{Snapshot: w, Settings: settings}, 1, 1)
		if len(plan.Gangs) != 1 {
			t.Fatalf("plan %+v", plan)
		}
		return plan.Gangs[0].Placements[0].NodeID
	}
	job := func(prepare bool) *structs.Job {
		return &structs.Job{ID: "j", Name: "j", Project: "p", Nodes: 1, Task: structs.Task{Driver: "exec"},
			Resources: []structs.Resources{{CPU: 1, Memory: 1 << 20}}, Datasets: []structs.DataRef{{Name: "digits", Version: 1, ReadOnly: true, Prepare: prepare}}}
	}
	if node := place(job(true)); node != "c" || asked == 0 {
		t.Errorf("placed on %s", node)
	}
	asked = 0
	if node := place(job(false)); node != "a" || asked != 0 {
		t.Errorf("without preparation placed on %s, asked %d times", node, asked)
	}
}
