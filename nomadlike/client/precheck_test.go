package client

import (
	"errors"
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
)

func TestFitness(t *testing.T) {
	a := gang("g", 1, "true", "n1", "n2")[0]
	a.Alloc.Devices = []string{"GPU-1"}
	good := func() (*structs.Node, []structs.Device) {
		return &structs.Node{Drivers: []string{"exec"}, Attributes: map[string]string{"net.interface": "eth0", "net.fault.eth9": "x"}},
			[]structs.Device{{ID: "GPU-1"}}
	}
	node, devices := good()
	if checks, found := fitness(a, node, devices, diskLeast, nil); found != nil || !slices.Equal(checks, []string{"driver exec", "devices 1", "network eth0", "disk"}) {
		t.Errorf("a good node: %v, %+v", checks, found)
	}
	for want, spoil := range map[string]func(*structs.Node, *[]structs.Device, *int64, *error){
		"driver exec":  func(n *structs.Node, _ *[]structs.Device, _ *int64, _ *error) { n.Drivers = nil },
		"device GPU-1": func(_ *structs.Node, d *[]structs.Device, _ *int64, _ *error) { *d = nil },
		"network eth0": func(n *structs.Node, _ *[]structs.Device, _ *int64, _ *error) {
			n.Attributes["net.fault.eth0"] = "down"
		},
		"disk":  func(_ *structs.Node, _ *[]structs.Device, free *int64, _ *error) { *free-- },
		"disk ": func(_ *structs.Node, _ *[]structs.Device, _ *int64, err *error) { *err = errors.New("gone") },
	} {
		node, devices := good()
		free, err := int64(diskLeast), error(nil)
		spoil(node, &devices, &free, &err)
		if _, found := fitness(a, node, devices, free, err); found == nil || found.check != map[bool]string{true: "disk", false: want}[want == "disk "] {
			t.Errorf("%s: %+v", want, found)
		}
	}
}
