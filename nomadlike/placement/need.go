package placement

import (
	"slices"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// Need is what the gangs of one shape ask for under one of their alternatives.
// It is made once and then read only, by any goroutine.
type Need struct {
	job   *structs.Job // what placement reads of it, and no more
	index int          // into job.Resources
	key   string

	spec  structs.Resources     // of every rank but perhaps the last
	last  *structs.Resources    // of the last rank of a whole gang, nil: as the others
	ports []structs.PortRequest // of every rank but the first
	head  []structs.PortRequest // of rank 0, those of the others among them
	names []string              // nodes by name or id, in the order of preference; nil: any

	cpu     int64 // thousandths of cores
	memory  int64 // bytes
	devices int   // of all requests that count
}

// NeedOf compiles what a gang of job asks for under alternative spec, an index
// into job.Resources. SKU multiples must be resolved.
func NeedOf(job *structs.Job, spec int) Need {
	n := Need{job: trimmed(job), index: spec, spec: job.SpecAt(spec)}
	n.ports, n.head = job.PortRequests(n.spec, 1), job.PortRequests(n.spec, 0)
	if last := job.SpecOf(spec, job.Nodes-1, job.Nodes); last.DeviceCount() != n.spec.DeviceCount() {
		n.last = &last
	}
	n.names = job.Placement.Nodes
	if job.VIP != nil {
		n.names = make([]string, len(job.VIP.Machines))
		for i, machine := range job.VIP.Machines {
			n.names[i] = machine.Node
		}
	}
	n.cpu, n.memory, n.devices = structs.MilliCPU(n.spec.CPU), n.spec.Memory, n.spec.DeviceCount()
	n.key = string(appendKey(nil, job, spec))
	return n
}

// trimmed is a job with the fields that feasibility reads, so that a need keeps
// nothing else alive.
func trimmed(job *structs.Job) *structs.Job {
	return &structs.Job{Name: job.Name, Nodes: job.Nodes, Distributed: job.Distributed, Resources: job.Resources,
		Placement: job.Placement, VIP: job.VIP, Task: structs.Task{Driver: job.Task.Driver}}
}

// Key is equal for needs to which every floor answers the same. It is unique
// among needs that differ, and no text for people.
func (n *Need) Key() string { return n.key }

// Spec is what every rank asks for, the last of a whole gang perhaps less.
func (n *Need) Spec() structs.Resources { return n.spec }

// Index is the alternative's index into Job.Resources.
func (n *Need) Index() int { return n.index }

// Nodes is how many nodes a whole gang has.
func (n *Need) Nodes() int { return n.job.Nodes }

// Names lists the nodes that the job names, or its VIP machines; nil: any node.
func (n *Need) Names() []string { return n.names }

// specOf is what one rank of a gang of the given size asks for.
func (n *Need) specOf(rank, size int) *structs.Resources {
	if n.last != nil && rank == size-1 && size == n.job.Nodes {
		return n.last
	}
	return &n.spec
}

// portsOf is what one rank asks for.
func (n *Need) portsOf(rank int) []structs.PortRequest {
	if rank == 0 {
		return n.head
	}
	return n.ports
}

// appendKey writes everything that placement reads of one alternative. A field
// that placement comes to read must be added here; TestKeySeesEveryField holds
// the two together.
func appendKey(b []byte, job *structs.Job, spec int) []byte {
	text := func(s string) {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(b, ':')
		b = append(b, s...)
	}
	number := func(n int64) {
		b = strconv.AppendInt(b, n, 10)
		b = append(b, ' ')
	}
	flag := func(set bool) {
		if set {
			b = append(b, '!')
		}
		b = append(b, ';')
	}
	number(int64(job.Nodes))
	text(job.Task.Driver)
	text(job.Placement.Pool)
	text(job.Placement.SpreadOrPack)
	text(job.Placement.DriverVersion)
	number(int64(len(job.Placement.Nodes)))
	for _, name := range job.Placement.Nodes {
		text(name)
	}
	flag(job.VIP != nil)
	if job.VIP != nil {
		number(int64(len(job.VIP.Machines)))
		for _, machine := range job.VIP.Machines {
			text(machine.Node)
		}
	}
	r := job.SpecAt(spec)
	number(structs.MilliCPU(r.CPU))
	number(r.Memory)
	number(int64(r.LastDevices))
	flag(r.RDMA)
	number(int64(len(r.Devices)))
	for _, d := range r.Devices {
		text(d.Kind)
		text(d.Model)
		number(int64(d.Count))
		number(d.Memory)
		number(int64(len(d.Models)))
		for _, model := range d.Models {
			text(model)
		}
		number(int64(len(d.IDs)))
		for _, id := range d.IDs {
			text(id)
		}
	}
	for rank := range 2 {
		ports := job.PortRequests(r, rank)
		number(int64(len(ports)))
		for _, p := range ports {
			text(p.Name)
			number(int64(p.Static))
		}
	}
	return b
}

// namesNode tells where a node stands among the named ones, -1 when it does not.
func (n *Need) namesNode(node *structs.Node) int {
	return slices.IndexFunc(n.names, func(name string) bool { return name == node.Name || name == node.ID })
}
