package launch

import (
	"encoding/json"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// TF_CONFIG as tf.distribute reads it.
type (
	tfCluster struct {
		Chief  []string `json:"chief,omitempty"`
		PS     []string `json:"ps,omitempty"`
		Worker []string `json:"worker,omitempty"`
	}
	// The index is a text: older platforms write it so, and TensorFlow reads both.
	tfTask struct {
		Type  string `json:"type"`
		Index string `json:"index"`
	}
)

// tensorflow runs the command on every node with TF_CONFIG: every node is a
// worker and listens at its own port (AllReduce). With chief the first node is
// the chief and the workers count from the second on. Parameter servers run the
// same command, told by TF_CONFIG what they are; they see no accelerators.
func (b *build) tensorflow() error {
	form := 0
	if b.node.PrivateHosts {
		form = 1
	}
	cluster, err := b.gang.cluster[form].by(b.tfClusterText)
	if err != nil {
		return err
	}
	task, index := tfTask{Type: "worker"}, b.rank
	switch {
	case b.job.IsServer(b.rank):
		task.Type, index = "ps", b.rank-b.job.Nodes
		b.env.set("CUDA_VISIBLE_DEVICES", "-1") // a server on a machine with cards would take their memory
	case b.job.Distributed.Chief && b.rank == 0:
		task.Type = "chief"
	case b.job.Distributed.Chief:
		index--
	}
	task.Index = strconv.Itoa(index)
	own, err := json.Marshal(task)
	if err != nil {
		return structs.NewError(structs.CodeInternal, "launch.input", "what", "TF_CONFIG can not be written").Because(err)
	}
	// Put together by hand: an encoder would read the cluster again for every rank.
	b.env.set("TF_CONFIG", `{"cluster":`+cluster+`,"task":`+string(own)+`,"environment":"cloud"}`)
	b.env.set("VK_TASK_INDEX", task.Index)
	b.env.suggest("NCCL_SOCKET_IFNAME", b.node.Interface)
	return b.plain()
}

// tfClusterText is who takes part, and where each listens.
func (b *build) tfClusterText() (string, error) {
	var cluster tfCluster
	for i := range b.members {
		address := b.members[i].Name
		if !b.node.PrivateHosts {
			address = b.members[i].Addr
		}
		address = hostPort(address, b.portOf(i))
		switch {
		case b.job.IsServer(i):
			cluster.PS = append(cluster.PS, address)
		case b.job.Distributed.Chief && i == 0:
			cluster.Chief = []string{address}
		default:
			cluster.Worker = append(cluster.Worker, address)
		}
	}
	text, err := json.Marshal(cluster)
	if err != nil {
		return "", structs.NewError(structs.CodeInternal, "launch.input", "what", "TF_CONFIG can not be written").Because(err)
	}
	return string(text), nil
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
