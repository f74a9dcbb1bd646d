package httpapi

import (
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
)

func TestCodeOfJobs(t *testing.T) {
	job := &structs.Job{
		Algorithms: []structs.DataRef{{Name: "yolo"}, {Name: "tools", From: "favorite"}, {Name: "yolo", From: "private"}},
		Datasets:   []structs.DataRef{{Name: "cifar10", From: "favorite", Version: 3}, {Name: "own"}},
		Models:     []structs.DataRef{{Name: "resnet", From: "pretrained"}, {Name: "vit", From: "favorite", Version: 1}},
		Batch:      &structs.Batch{Subtasks: []structs.BatchSubtask{{Name: "a", Algorithm: "eval"}, {Name: "b"}}},
	}
	if got, want := codeOf(job), []string{"yolo", "favorite/tools", "eval", "favorite/cifar10", "favorite/vit"}; !slices.Equal(got, want) {
		t.Errorf("code %v, want %v", got, want)
	}
}
