package launch

import (
	"encoding/json"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// tfConfig is TF_CONFIG as tf.distribute reads it. The index is a text: older
// platforms write it so, and TensorFlow reads both.
type tfConfig struct {
	Cluster struct {
		Chief  []string `json:"chief,omitempty"`
		PS     []string `json:"ps,omitempty"`
		Worker []string `json:"worker,omitempty"`
	} `json:"cluster"`
	Task struct {
		Type  string `json:"type"`
		Index string `json:"index"`
	} `json:"task"`
	Environment string `json:"environment"`
}

// tensorflow runs the command on every node with TF_CONFIG: every node is a
// worker and listens at its own port (AllReduce). With chief the first node is
// the chief and the workers count from the second on. Parameter servers run the
// same command, told by TF_CONFIG what they are; they see no accelerators.
func (b *build) tensorflow() error {
	var config tfConfig
	config.Task.Type, config.Environment = "worker", "cloud"
	index := b.rank
	for i := range b.members {
		address := b.members[i].Name
		if !b.node.PrivateHosts {
			address = b.members[i].Addr
		}
		address = hostPort(address, b.portOf(i))
		if b.job.IsServer(i) {
			config.Cluster.PS = append(config.Cluster.PS, address)
			continue
		}
		if b.job.Distributed.Chief && i == 0 {
			config.Cluster.Chief = []string{address}
			continue
		}
		config.Cluster.Worker = append(config.Cluster.Worker, address)
	}
	switch {
	case b.job.IsServer(b.rank):
		config.Task.Type, index = "ps", b.rank-b.job.Nodes
		b.env.set("CUDA_VISIBLE_DEVICES", "-1") // a server on a machine with cards would take their memory
	case b.job.Distributed.Chief && b.rank == 0:
		config.Task.Type = "chief"
	case b.job.Distributed.Chief:
		index--
	}
	config.Task.Index = strconv.Itoa(index)
	text, err := json.Marshal(config)
	if err != nil {
		return structs.NewError(structs.CodeInternal, "launch.input", "what", "TF_CONFIG can not be written").Because(err)
	}
	b.env.set("TF_CONFIG", string(text))
	b.env.set("VK_TASK_INDEX", config.Task.Index)
	b.env.suggest("NCCL_SOCKET_IFNAME", b.node.Interface)
	return b.plain()
}

// portOf is the port at which a rank listens for its peers.
func (b *build) portOf(rank int) int {
	if port := b.members[rank].Ports[structs.MasterPortName]; port > 0 {
		return port
	}
	if b.job.Distributed.MasterPort > 0 {
		return b.job.Distributed.MasterPort
	}
	return MasterPortDefault
}
