package prepare

import (
	"errors"
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
)

// ranks is the first rank of a gang on nodes.
func ranks(nodes ...string) *structs.Assignment {
	a := &structs.Assignment{Job: &structs.Job{Task: structs.Task{Driver: structs.DriverExec}}, Alloc: &structs.Allocation{NodeID: nodes[0]}}
	for rank, node := range nodes {
		a.Members = append(a.Members, structs.Member{Rank: rank, NodeID: node})
	}
	return a
}

func TestFitness(t *testing.T) {
	a := ranks("n1", "n2")
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
		if _, found := fitness(a, node, devices, free, err); found == nil || found.Check != map[bool]string{true: "disk", false: want}[want == "disk "] {
			t.Errorf("%s: %+v", want, found)
		}
	}
}

// Ranks may talk over a port of an RDMA card, whose faults go by the port's
// name, and a gang with RDMA needs all of them.
func TestFitnessOfLinks(t *testing.T) {
	for _, c := range []struct {
		name       string
		rdma       bool
		attributes map[string]string
		want       string
	}{
		{"well", true, map[string]string{"net.link": "mlx5_0:1"}, ""},
		{"port behind the interface", false, map[string]string{"net.link": "mlx5_0:1", "net.fault.mlx5_0:1": "device.link_lost"}, "network mlx5_0:1"},
		{"port that only RDMA uses", true, map[string]string{"net.link": "ens1", "net.fault.mlx5_1:1": "device.link_gone"}, "network mlx5_1:1"},
		{"the same without RDMA", false, map[string]string{"net.link": "ens1", "net.fault.mlx5_1:1": "device.link_gone"}, ""},
		{"slow port beside", true, map[string]string{"net.link": "ens1", "net.fault.mlx5_1:1": "device.link_slow"}, ""},
		{"card beside", true, map[string]string{"net.link": "ens1", "net.fault.ens2": "device.link_lost"}, ""},
	} {
		a := ranks("n1", "n2")
		a.Alloc.Spec.RDMA = c.rdma
		c.attributes["net.interface"] = "ens1"
		_, found := fitness(a, &structs.Node{Drivers: []string{"exec"}, Attributes: c.attributes}, nil, diskLeast, nil)
		got := ""
		if found != nil {
			got = found.Check
		}
		if got != c.want {
			t.Errorf("%s: unfit for %q, want %q", c.name, got, c.want)
		}
	}
}

// Memory below that of the devices is told to jobs that use some, and keeps nobody away.
func TestShortMemoryIsTold(t *testing.T) {
	a := ranks("n1")
	node := &structs.Node{Capacity: structs.Capacity{Memory: 512 << 30}}
	for range 8 {
		node.Devices = append(node.Devices, structs.Device{Memory: 80 << 30})
	}
	for _, c := range []struct {
		devices []string
		memory  int64
		want    bool
	}{{[]string{"GPU-1"}, 512 << 30, true}, {nil, 512 << 30, false}, {[]string{"GPU-1"}, 580 << 30, false}} {
		a.Alloc.Devices, node.Capacity.Memory = c.devices, c.memory
		told := structs.Told{Params: map[string]string{"checks": "disk"}}
		doubtful(a, node, &told)
		if got := told.Severity == "warn" && told.Params["checks"] == "disk, memory 512GiB, less than the 640GiB of the node's devices" && told.Params["checks_zh"] != ""; got != c.want {
			t.Errorf("%+v: %+v", c, told)
		}
	}
}
