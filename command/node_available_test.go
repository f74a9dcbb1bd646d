package command

import (
	"slices"
	"testing"

	"nomadlike/nomadlike/api"
)

// Whoever looks for a model is told of the specs that could stand beside it, by
// the numbers that they have in the job file.
func TestAvailableOfModel(t *testing.T) {
	share := func(model string) []api.DeviceShare {
		return []api.DeviceShare{{Kind: "nvidia/gpu", Model: model, Total: 8}}
	}
	found := &api.Available{
		Nodes: []api.AvailableNode{
			{Name: "a1", Devices: share("A800"), Specs: []int{0, 2}, Now: []int{2}},
			{Name: "h1", Devices: share("H100"), Specs: []int{1, 2}, Now: []int{1}},
			{Name: "c1", Specs: []int{2}, Now: []int{2}},
		},
		Specs:  []api.AvailableSpec{{Spec: 0, Label: "old", Nodes: 1}, {Spec: 1, Label: "new", Nodes: 1, Idle: 1}, {Spec: 2, Nodes: 3, Idle: 2}},
		Models: []api.DeviceDemand{{DeviceShare: share("A800")[0]}, {DeviceShare: share("H100")[0]}},
	}
	ofModel(found, "h100")
	if len(found.Nodes) != 1 || found.Nodes[0].Name != "h1" || len(found.Models) != 1 || found.Models[0].Model != "H100" {
		t.Errorf("%+v", found)
	}
	want := []api.AvailableSpec{{Spec: 1, Label: "new", Nodes: 1, Idle: 1}, {Spec: 2, Nodes: 1}}
	if !slices.EqualFunc(found.Specs, want, func(a, b api.AvailableSpec) bool {
		return a.Spec == b.Spec && a.Label == b.Label && a.Nodes == b.Nodes && a.Idle == b.Idle
	}) {
		t.Errorf("specs %+v", found.Specs)
	}
	if got := specsText(found.Specs, found.Nodes[0].Specs); got != "new 3" {
		t.Errorf("specs of the node: %q", got)
	}
}
