package structs

import (
	"fmt"
	"maps"
)

// Parameter servers of TensorFlow stand beside the workers of their gang: the
// server with index i on the node of worker i modulo the number of workers, as
// an allocation of its own whose rank follows those of the workers. Planning
// sees one share for each node, the worker's with those of its servers;
// Spread parts it when the gang is placed. A gang with servers is never elastic.

// What a parameter server gets; nobody can ask for more or less.
const (
	ServerCPU    = 1.0 // cores
	ServerMemory = GiB // bytes
)

// serverPortName starts the names under which a node's share holds the ports
// of its servers, until Spread assigns each its own.
const serverPortName = "ps-"

// Servers is how many parameter servers stand beside the workers.
func (j *Job) Servers() int {
	if j.Distributed.Mode != ModeTensorFlow {
		return 0
	}
	return max(j.Distributed.ParameterServers, 0)
}

// IsServer reports whether a rank is a parameter server: those come after the workers.
func (j *Job) IsServer(rank int) bool { return j.Servers() > 0 && rank >= j.Nodes }

// RanksOf is how many ranks a gang on the given number of nodes has: one on
// each, and the parameter servers.
func (j *Job) RanksOf(nodes int) int { return nodes + j.Servers() }

// NodesOf is how many workers, each on a node of its own, a gang of ranks has.
func (j *Job) NodesOf(ranks int) int { return ranks - j.Servers() }

// serversBeside is how many servers stand beside a worker, serversMost how many
// beside the first one, which has the most.
func (j *Job) serversBeside(worker int) int {
	n, workers := j.Servers(), max(j.Nodes, 1)
	beside := n / workers
	if worker < n%workers {
		beside++
	}
	return beside
}

func (j *Job) serversMost() int { return j.serversBeside(0) }

// ServerCPUSpare is what SpecAt of all workers together counts more, in
// thousandths of cores, than their servers have: SpecAt is the largest share.
func (j *Job) ServerCPUSpare() int64 {
	return int64(j.serversMost()*max(j.Nodes, 1)-j.Servers()) * MilliCPU(ServerCPU)
}

// withServers is spec and what n servers beside it get.
func withServers(spec Resources, n int) Resources {
	spec.CPU += ServerCPU * float64(n)
	spec.Memory += ServerMemory * int64(n)
	return spec
}

// serverSpec is what a parameter server gets.
func serverSpec() Resources { return Resources{CPU: ServerCPU, Memory: ServerMemory} }

// serverPorts asks for the ports of the servers beside a worker: as many on
// every node, so that all but rank 0 ask for the same.
func (j *Job) serverPorts() []PortRequest {
	var requests []PortRequest
	for i := range j.serversMost() {
		requests = append(requests, PortRequest{Name: fmt.Sprint(serverPortName, i)})
	}
	return requests
}

// Spread returns every rank of a gang its own placement: the nodes' shares
// without the ports of servers, and after them the servers.
func (j *Job) Spread(nodes []RankPlacement) []RankPlacement {
	servers := j.Servers()
	if servers == 0 || len(nodes) == 0 {
		return nodes
	}
	ranks := make([]RankPlacement, 0, len(nodes)+servers)
	for _, node := range nodes {
		node.Ports = maps.Clone(node.Ports)
		for i := range j.serversMost() {
			delete(node.Ports, fmt.Sprint(serverPortName, i))
		}
		ranks = append(ranks, node)
	}
	for i := range servers {
		beside := nodes[i%len(nodes)]
		port := beside.Ports[fmt.Sprint(serverPortName, i/len(nodes))]
		ranks = append(ranks, RankPlacement{NodeID: beside.NodeID, Ports: map[string]int{MasterPortName: port}})
	}
	return ranks
}
