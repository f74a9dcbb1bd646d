package stage

import (
	"context"
	"fmt"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// machine is a kind of node.
type machine struct {
	kind, model string
	cards       int
	cardMemory  int64 // bytes
	cores       float64
	memory      int64 // bytes
	pool        string
}

// The machines of the stories.
var (
	a800   = machine{"nvidia/gpu", "NVIDIA A800-SXM4-80GB", 8, 80 << 30, 128, 1 << 40, "train"}
	h800   = machine{"nvidia/gpu", "NVIDIA H800", 8, 80 << 30, 192, 2 << 40, "h800"}
	ascend = machine{"huawei/npu", "910B", 8, 64 << 30, 192, 1 << 40, "ascend"}
	single = machine{"nvidia/gpu", "NVIDIA A800-SXM4-80GB", 4, 80 << 30, 64, 512 << 30, ""}
	plain  = machine{"", "", 0, 0, 64, 256 << 30, ""}
)

// register makes a node known, or known again with what change makes of it.
func (s *Stage) register(ctx context.Context, name, rack string, m machine, change func(*structs.Node)) error {
	known := s.node(name)
	node := structs.Node{
		Name: name, OwnPool: m.pool, Topology: []string{"room-a", rack}, RDMA: m.cards == 8, Version: version, Incarnation: 1,
		Drivers: []string{"exec", "docker"}, Storages: []string{"output/nas", "dataset/nas", "model/nas"},
		Attributes: map[string]string{"kernel.version": "6.1.0-28-amd64", "os.name": "Debian GNU/Linux 12", "cpu.model": "Intel Xeon Platinum 8462Y+", structs.AttrIsolation: "view,cgroup,user"},
		Capacity:   structs.Capacity{CPU: m.cores, Memory: m.memory, PortMin: 20000, PortMax: 20999},
		Status:     structs.NodeReady,
	}
	if known == nil {
		s.seats++
		node.ID = fmt.Sprintf("%032x", 0xa0000+s.seats*0x1357)
		node.Addr = fmt.Sprintf("10.2.%d.%d", s.seats/250, s.seats%250+1)
	} else {
		node.ID, node.Addr = known.ID, known.Addr
	}
	node.RPCAddr = node.Addr + ":4646"
	for i := range m.cards {
		node.Devices = append(node.Devices, structs.Device{
			ID: fmt.Sprintf("GPU-%08x-%02d", 0x5eed0+s.seats*0x1357, i), Index: i, Kind: m.kind, Model: m.model, Memory: m.cardMemory,
			PCIBus: fmt.Sprintf("00000000:%02x:00.0", 0x10+i*0x0b), NUMANode: i >> 2, LinkGroup: "0", Healthy: true, Driver: "535.161.08",
			Attrs: map[string]string{device.AttrMinor: fmt.Sprint(i), device.AttrLinkKind: "nvswitch", device.AttrNIC: fmt.Sprintf("mlx5_%d", i/2)},
		})
	}
	if known != nil {
		node.Devices = known.Devices
	}
	if change != nil {
		devices := make([]structs.Device, len(node.Devices))
		copy(devices, node.Devices)
		node.Devices = devices
		change(&node)
	}
	register := structs.NodeRegister{Node: node}
	if known != nil {
		for alloc := range s.replica.Store().Snapshot().Occupants(node.ID) {
			register.Inventory = append(register.Inventory, structs.InventoryItem{AllocID: alloc.ID, Attempt: alloc.Attempt})
		}
	}
	if err := s.put(ctx, structs.CommandNodeRegister, &register); err != nil {
		return err
	}
	if known == nil {
		return s.nodes.add(&node)
	}
	return nil
}

// node is a node by its name, nil where there is none.
func (s *Stage) node(name string) *structs.Node {
	for _, node := range s.replica.Store().Snapshot().NodesNamed(name) {
		return node
	}
	return nil
}

// lose has a node be gone.
func (s *Stage) lose(ctx context.Context, name string) error {
	node := s.node(name)
	return s.put(ctx, structs.CommandNodeStatus, &structs.NodeStatusChange{NodeID: node.ID, Incarnation: node.Incarnation, Status: structs.NodeLost})
}

// ail has a card break with an XID.
func ail(card, xid int, action device.Action) func(*structs.Node) {
	return func(node *structs.Node) {
		d := &node.Devices[card]
		attrs := map[string]string{device.AttrFault: fmt.Sprintf("xid-%d", xid), device.AttrFaultSince: before(sickSince).Format(time.RFC3339), device.AttrAction: string(action)}
		for key, value := range d.Attrs {
			attrs[key] = value
		}
		d.Healthy, d.Attrs = false, attrs
		d.Health = structs.NewReason(fmt.Sprintf("device.nvidia_xid_%d", xid), "card", d.Index, "bus", d.PCIBus, "xid", xid)
	}
}
