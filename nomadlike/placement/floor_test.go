package placement

import (
	"fmt"
	"testing"

	"nomadlike/nomadlike/structs"
)

func testNode(i, devices int) *structs.Node {
	n := &structs.Node{ID: fmt.Sprintf("id-%d", i), Name: fmt.Sprintf("n%d", i), Drivers: []string{"exec"}, Status: structs.NodeReady,
		Eligibility: structs.NodeEligible, Capacity: structs.Capacity{CPU: 64, Memory: 512 * structs.GiB, PortMin: 20000, PortMax: 29999}}
	for k := range devices {
		n.Devices = append(n.Devices, structs.Device{ID: fmt.Sprintf("GPU-%d-%d", i, k), Index: k, Kind: "nvidia/gpu",
			Model: "NVIDIA A800-SXM4-80GB", Memory: 80 * structs.GiB, Healthy: true, Driver: "535.104.05", NUMANode: k / 4})
	}
	return n
}

func testJob(nodes, devices int) *structs.Job {
	j := &structs.Job{ID: "j", Name: "j", Nodes: nodes, Task: structs.Task{Driver: "exec"},
		Distributed: structs.Distributed{Mode: structs.ModePyTorch},
		Resources:   []structs.Resources{{CPU: 8, Memory: structs.GiB}}}
	if devices != 0 {
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: devices}}
	}
	return j
}

func TestChooseHoldRelease(t *testing.T) {
	f := NewFloor()
	for i := range 4 {
		f.Put(testNode(i, 8), nil)
	}
	need := NeedOf(testJob(4, 8), 0)
	placed, ok := f.Choose(&need, 4, Options{})
	if !ok || len(placed) != 4 || len(placed[3].Devices) != 8 || placed[0].Ports[structs.MasterPortName] == 0 {
		t.Fatalf("chose %v %v", placed, ok)
	}
	copied := f.Clone()
	f.Hold(&need, placed)
	if got := f.Fits(&need, 4, Options{}); got != 0 {
		t.Errorf("%d nodes fit a full floor", got)
	}
	if got := copied.Fits(&need, 4, Options{}); got != 4 {
		t.Errorf("%d nodes fit the copy, want 4", got)
	}
	f.Release(&need, placed)
	if got, able := f.Fits(&need, 9, Options{}), f.Able(&need); got != 4 || able != 4 {
		t.Errorf("after the release %d fit and %d could, want 4", got, able)
	}
}
