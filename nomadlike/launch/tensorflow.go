package launch

import (
	"strconv"

	"nomadlike/nomadlike/structs"
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
	kind, index := b.tfKind(b.rank), b.rank
	switch {
	case kind == tfServer:
		index -= b.job.Nodes
		b.env.set("CUDA_VISIBLE_DEVICES", "-1") // a server on a machine with cards would take their memory
	case kind == tfWorker && b.job.Distributed.Chief:
		index--
	}
	number := strconv.Itoa(index)
	// The index is a text: older platforms write it so, and TensorFlow reads both.
	// The cluster is written once for all: it is most of the text.
	b.env.set("TF_CONFIG", `{"cluster":`+cluster+`,"task":{"type":"`+kind+`","index":"`+number+`"},"environment":"cloud"}`)
	b.env.set("VK_TASK_INDEX", number)
	return b.plain()
}

// What a rank is to tf.distribute.
const (
	tfChief  = "chief"
	tfServer = "ps"
	tfWorker = "worker"
)

func (b *build) tfKind(rank int) string {
	switch {
	case b.job.IsServer(rank):
		return tfServer
	case b.job.Distributed.Chief && rank == 0:
		return tfChief
	default:
		return tfWorker
	}
}

// tfClusterText is who takes part, and where each listens. Kinds that nobody is
// of are not named.
func (b *build) tfClusterText() (string, error) {
	const ofRank = 64
	w := jsonText{text: make([]byte, 0, len(b.members)*ofRank)}
	w.open('{')
	for _, kind := range [...]string{tfChief, tfServer, tfWorker} {
		some := false
		for i := range b.members {
			if b.tfKind(i) != kind {
				continue
			}
			if !some {
				w.list(kind)
				some = true
			}
			address := b.members[i].Name
			if !b.node.PrivateHosts {
				address = b.members[i].Addr
			}
			w.element(hostPort(address, b.portOf(i)))
		}
		if some {
			w.close(']')
		}
	}
	w.close('}')
	return string(w.text), nil
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
