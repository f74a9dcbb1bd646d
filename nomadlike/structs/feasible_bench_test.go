package structs

import (
	"fmt"
	"testing"
)

// BenchmarkGangProblem checks a plan for 1,000 whole nodes of 8 devices, as
// state.Apply does.
func BenchmarkGangProblem(b *testing.B) {
	nodes := make(map[string]*Node)
	job := &Job{
		ID: "j", Nodes: 1000, Task: Task{Driver: "exec"},
		Resources: []Resources{{CPU: 8, Memory: GiB, Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 8, Model: "A800"}}}},
	}
	gang := &GangPlan{Attempt: 1}
	for i := range job.Nodes {
		n := &Node{
			ID: fmt.Sprintf("id-%d", i), Name: fmt.Sprintf("n%d", i), Drivers: []string{"exec"}, Status: NodeReady, Eligibility: NodeEligible,
			Capacity: Capacity{CPU: 64, Memory: 512 * GiB},
		}
		p := RankPlacement{NodeID: n.ID}
		for k := range 8 {
			d := Device{ID: fmt.Sprintf("GPU-%d-%d", i, k), Kind: "nvidia/gpu", Model: "NVIDIA A800-SXM4-80GB", Healthy: true}
			n.Devices, p.Devices = append(n.Devices, d), append(p.Devices, d.ID)
		}
		nodes[n.ID] = n
		gang.Placements = append(gang.Placements, p)
	}
	ground := nodesOnly(func(id string) (*Node, *Usage) { return nodes[id], nil })
	subjob := &Subjob{JobID: "j", State: JobQueued}
	for b.Loop() {
		if reason := GangProblem(job, subjob, gang, ground); reason != nil {
			b.Fatal(reason.ID)
		}
	}
}
