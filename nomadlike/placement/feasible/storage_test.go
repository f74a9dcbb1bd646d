package feasible

import (
	"testing"

	"nomadlike/nomadlike/structs"
)

func TestNodeWithoutStorages(t *testing.T) {
	job := &structs.Job{
		Task:       structs.Task{Driver: "exec"},
		Algorithms: []structs.DataRef{{Name: "a"}}, Datasets: []structs.DataRef{{Name: "z", Storage: "nas"}}, Output: "o", OutputStorage: "big",
	}
	node := &structs.Node{Drivers: []string{"exec"}, Storages: []string{"dataset/nas"}}
	if reason := NodeProblem(job, node); reason == nil || reason.ID != "scheduler.node_storage" || reason.Params["kind"] != "algorithm" {
		t.Errorf("a node without the storages: %+v", reason)
	}
	node.Storages = append(node.Storages, "algorithm/x", "output/big")
	if reason := NodeProblem(job, node); reason != nil {
		t.Errorf("a node with the storages: %+v", reason)
	}
}
