package placement

import (
	"strconv"
	"sync/atomic"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// Need is what the gangs of one shape ask for under one of their alternatives.
// It is made once and then read only, by any goroutine.
type Need struct {
	job     *structs.Job // what placement reads of it, and no more
	index   int          // into job.Resources
	key     string
	viewKey string // equal for needs that share views

	spec  structs.Resources // of every rank but perhaps the last
	last  *Need             // of the last rank of a whole gang; nil: as the others
	ports portPlan          // of every rank but the first
	head  portPlan          // of rank 0, those of the others among them
	names []string          // nodes by name or id, in the order of preference; nil: any

	amount capacity.Amount
	level  int  // free devices that a node must have at least
	byID   bool // a request names devices
	cache  *needCache
}

// needCache remembers what was found out on the floor that asked last.
type needCache struct {
	view atomic.Pointer[view]
	able atomic.Pointer[ableNodes]
}

// ableNodes is which nodes of a build of a floor could hold a rank. It is never
// changed.
type ableNodes struct {
	build     *byte
	positions capacity.Set
	nodes     int
}

// NeedOf compiles what a gang of job asks for under alternative spec, an index
// into job.Resources. SKU multiples must be resolved.
func NeedOf(job *structs.Job, spec int) Need {
	n := needOf(trimmed(job), spec, job.SpecAt(spec))
	if last := job.SpecOf(spec, job.Nodes-1, job.Nodes); last.LastDevices > 0 && len(last.Devices) == 1 {
		needed := needOf(n.job, spec, last)
		n.last = &needed
	}
	return n
}

func needOf(job *structs.Job, index int, spec structs.Resources) Need {
	n := Need{job: job, index: index, spec: spec, cache: &needCache{}}
	if len(job.Placement.Nodes) > 0 {
		n.names = job.Placement.Nodes
	}
	n.ports, n.head = planPorts(job.PortRequests(spec, 1)), planPorts(job.PortRequests(spec, 0))
	if job.VIP != nil {
		n.names = make([]string, len(job.VIP.Machines))
		for i, machine := range job.VIP.Machines {
			n.names[i] = machine.Node
		}
	}
	n.amount = spec.Amount()
	for _, request := range feasible.ChoosingOrder(spec.Devices) {
		n.level = min(n.level+max(request.Count, 1), levelMax)
		n.byID = n.byID || len(request.IDs) > 0
	}
	place := appendPlaceKey(nil, job, &spec)
	n.viewKey = string(place)
	n.key = string(appendSizeKey(place, job, &spec))
	return n
}

// trimmed is a job with the fields that feasibility reads, so that a need keeps
// nothing else alive.
func trimmed(job *structs.Job) *structs.Job {
	return &structs.Job{
		Name: job.Name, Nodes: job.Nodes, Distributed: job.Distributed, Resources: job.Resources,
		Placement: job.Placement, VIP: job.VIP, Task: structs.Task{Driver: job.Task.Driver, Secrets: job.Task.Secrets},
		Algorithms: job.Algorithms, Datasets: job.Datasets, Models: job.Models, Volumes: job.Volumes, Mounts: job.Mounts,
		Output: job.Output, OutputStorage: job.OutputStorage, Workdir: job.Workdir,
	}
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
func (n *Need) specOf(rank, size int) *structs.Resources { return &n.of(rank, size).spec }

// of is the need of one rank of a gang of the given size.
func (n *Need) of(rank, size int) *Need {
	if n.last != nil && rank == size-1 && size == n.job.Nodes {
		return n.last
	}
	return n
}

// keyWriter writes values so that no two lists of them read the same.
type keyWriter []byte

func (b *keyWriter) text(s string) {
	b.number(int64(len(s)))
	*b = append(*b, s...)
}

func (b *keyWriter) number(n int64) { *b = append(strconv.AppendInt(*b, n, 10), ' ') }

func (b *keyWriter) texts(list []string) {
	b.number(int64(len(list)))
	for _, s := range list {
		b.text(s)
	}
}

func (b *keyWriter) flag(set bool) {
	if set {
		b.number(1)
	} else {
		b.number(0)
	}
}

// appendPlaceKey writes everything that bears on which nodes are open to a need
// whatever they hold. A field that placement comes to read must be added here or
// in appendSizeKey; TestKeySeesEveryField holds them together.
func appendPlaceKey(b keyWriter, job *structs.Job, r *structs.Resources) keyWriter {
	b.text(job.Task.Driver)
	b.text(job.Placement.Pool)
	b.text(job.Placement.DriverVersion)
	b.texts(job.Placement.Nodes)
	b.texts(job.StorageNeeds())
	b.number(int64(job.Task.SecretsProtocol()))
	b.flag(job.Task.HoldsSecrets())
	b.flag(job.Workdir != nil)
	b.flag(job.NamesData())
	b.flag(job.VIP != nil)
	if job.VIP != nil {
		b.number(int64(len(job.VIP.Machines)))
		for _, machine := range job.VIP.Machines {
			b.text(machine.Node)
		}
	}
	b.flag(r.RDMA)
	b.flag(r.RDMAByNodes)
	b.number(int64(len(r.Devices)))
	for i := range r.Devices {
		d := &r.Devices[i]
		b.text(d.Kind)
		b.number(int64(d.Count))
		b.text(d.Model)
		b.texts(d.Models)
		b.number(d.Memory)
		b.texts(d.IDs)
	}
	return b
}

// appendSizeKey writes the rest of what placement reads.
func appendSizeKey(b keyWriter, job *structs.Job, r *structs.Resources) keyWriter {
	b.number(int64(job.Nodes))
	b.number(int64(job.Servers()))
	b.text(job.Placement.SpreadOrPack)
	b.number(structs.MilliCPU(r.CPU))
	b.number(r.Memory)
	b.number(int64(r.LastDevices))
	for rank := range 2 {
		ports := job.PortRequests(*r, rank)
		b.number(int64(len(ports)))
		for _, p := range ports {
			b.text(p.Name)
			b.number(int64(p.Static))
		}
	}
	return b
}
