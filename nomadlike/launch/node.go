package launch

import "nomadlike/nomadlike/structs"

// What a node says of its RDMA network.
const (
	AttrRDMACards   = "rdma.cards" // for NCCL_IB_HCA: "mlx5_0:1,mlx5_1:1"
	AttrRDMALayer   = "rdma.layer" // LayerInfiniBand | Ethernet
	LayerInfiniBand = "InfiniBand"
)

// OfNode is as much of NodeFacts as a node's record tells, for those who start the
// job there and for those who only look what it would run.
func OfNode(job *structs.Job, spec *structs.Resources, attributes map[string]string) NodeFacts {
	kind := job.Task.Driver
	name, network := RanksNetwork(kind, attributes)
	return NodeFacts{
		Interface:    name,
		Network:      network,
		PrivateHosts: attributes["driver."+kind+".namespaces"] == "true",
		Image:        kind == structs.DriverDocker,
		Defaults:     RDMADefaults(spec, attributes, SeesNode(kind, attributes)),
	}
}

// SeesNode reports whether tasks of a driver see the node's files where they are.
func SeesNode(driver string, attributes map[string]string) bool {
	return driver == structs.DriverExec && attributes[structs.AttrIsolation] == structs.IsolationNone
}

// RanksNetwork is the interface and the network that a driver's tasks use, ""
// where the driver keeps them off the node's own: a name from there would be
// unknown to them, and NCCL would not start.
func RanksNetwork(driver string, attributes map[string]string) (name, network string) {
	if attributes["driver."+driver+".host_network"] == "false" {
		return "", ""
	}
	return attributes["net.interface"], attributes["net.network"]
}

// RDMADefaults are variables of NCCL on a node with RDMA, which a job may set
// otherwise. One that asked for RDMA has the ports that were chosen, by their states
// and rates, and the patience with which NCCL outlives a link that flaps (4 µs · 2^22,
// seven times). One that did not sees no RDMA cards, unless it sees the node's files,
// and NCCL is told not to look for InfiniBand; RoCE is never switched off.
func RDMADefaults(spec *structs.Resources, attributes map[string]string, seesNode bool) map[string]string {
	cards := attributes[AttrRDMACards]
	switch {
	case cards != "" && spec.RDMA:
		return map[string]string{"NCCL_IB_HCA": cards, "NCCL_IB_TIMEOUT": "22", "NCCL_IB_RETRY_CNT": "7", "NCCL_IB_DISABLE": "0"}
	case cards != "" && !seesNode && attributes[AttrRDMALayer] == LayerInfiniBand:
		return map[string]string{"NCCL_IB_DISABLE": "1"}
	}
	return nil
}
