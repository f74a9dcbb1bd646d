package feasible

import (
	"fmt"
	"testing"

	"nomadlike/nomadlike/structs"
)

// BenchmarkGangProblem checks a plan for 1,000 whole nodes of 8 devices, as
// state.Apply does.
func BenchmarkGangProblem(b *testing.B) {
	nodes := make(map[string]*structs.Node)
	job := &structs.Job{
		ID: "j", Nodes: 1000, Task: structs.Task{Driver: "exec"},
		Resources: []structs.Resources{{CPU: 8, Memory: structs.GiB, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 8, Model: "A800"}}}},
	}
	gang := &structs.GangPlan{Attempt: 1}
	for i := range job.Nodes {
		n := &structs.Node{
			ID: fmt.Sprintf("id-%d", i), Name: fmt.Sprintf("n%d", i), Drivers: []string{"exec"}, Status: structs.NodeReady, Eligibility: structs.NodeEligible,
			Capacity: structs.Capacity{CPU: 64, Memory: 512 * structs.GiB},
		}
		p := structs.RankPlacement{NodeID: n.ID}
		for k := range 8 {
			d := structs.Device{ID: fmt.Sprintf("GPU-%d-%d", i, k), Kind: "nvidia/gpu", Model: "NVIDIA A800-SXM4-80GB", Healthy: true}
			n.Devices, p.Devices = append(n.Devices, d), append(p.Devices, d.ID)
		}
		nodes[n.ID] = n
		gang.Placements = append(gang.Placements, p)
	}
	view := nodesOnly(func(id string) (*structs.Node, *structs.Usage) { return nodes[id], nil })
	subjob := &structs.Subjob{JobID: "j", State: structs.JobQueued}
	for b.Loop() {
		if reason := GangProblem(job, subjob, gang, view); reason != nil {
			b.Fatal(reason.ID)
		}
	}
}
