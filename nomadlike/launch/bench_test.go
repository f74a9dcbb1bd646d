package launch

import (
	"testing"

	"nomadlike/nomadlike/structs"
)

// BenchmarkThousandRanks plans the launch of every rank of a gang of a thousand
// nodes, with what they have in common worked out once.
func BenchmarkThousandRanks(b *testing.B) {
	const ranks = 1000
	job := &structs.Job{
		ID: "job", Name: "train", Project: "p", Nodes: ranks, Distributed: structs.Distributed{Mode: structs.ModePyTorch},
		Resources: []structs.Resources{{CPU: 8, Memory: 1 << 30, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 8}}}},
		Task:      structs.Task{Driver: "exec", Command: "python3 train.py --epochs 90"},
	}
	members := make([]structs.Member, ranks)
	for rank := range members {
		members[rank] = structs.Member{Rank: rank, Name: structs.RankName(job, 0, 1, rank), AllocID: "a", Addr: "192.0.2.1", Ports: map[string]int{"master": 20000}}
	}
	for b.Loop() {
		gang, err := NewGang(members)
		if err != nil {
			b.Fatal(err)
		}
		for rank := range members {
			_, err := Build(Input{
				Job: job, Members: members, Gang: gang, Node: NodeFacts{TaskDir: "/task", AgentPath: "/nomadlike", PrivateHosts: true},
				Alloc: &structs.Allocation{ID: "a", Attempt: 1, Rank: rank, Name: members[rank].Name, Spec: job.Resources[0], Ports: members[rank].Ports},
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkOneOfThousand is the launch of one rank, which is what a node waits for.
func BenchmarkOneOfThousand(b *testing.B) {
	const ranks = 1000
	job := &structs.Job{
		ID: "job", Name: "train", Project: "p", Nodes: ranks, Distributed: structs.Distributed{Mode: structs.ModePyTorch},
		Resources: []structs.Resources{{CPU: 8, Memory: 1 << 30}}, Task: structs.Task{Driver: "exec", Command: "python3 train.py"},
	}
	members := make([]structs.Member, ranks)
	for rank := range members {
		members[rank] = structs.Member{Rank: rank, Name: structs.RankName(job, 0, 1, rank), AllocID: "a", Addr: "192.0.2.1", Ports: map[string]int{"master": 20000}}
	}
	for b.Loop() {
		_, err := Build(Input{
			Job: job, Members: members, Node: NodeFacts{TaskDir: "/task", AgentPath: "/nomadlike", PrivateHosts: true},
			Alloc: &structs.Allocation{ID: "a", Attempt: 1, Rank: 7, Name: members[7].Name, Spec: job.Resources[0], Ports: members[7].Ports},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
