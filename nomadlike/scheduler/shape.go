package scheduler

import (
	"fmt"
	"strconv"
	"strings"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// shape is all that the choice of nodes depends on. Jobs of one shape are
// equal to placement, so what was found out for the first holds for all. It is
// made once, read only then, and shared by all clones.
type shape struct {
	id     int32
	nodes  int  // of a whole gang
	min    int  // fewest nodes of a gang
	resize bool // may change its size while it runs
	vip    *structs.VIP
	pool   string   // that it names
	named  []string // nodes that it names
	needs  []need   // by alternative
	odd    bool     // no such gang can be placed anywhere
}

// need is one alternative of a shape.
type need struct {
	placement.Need
	job   *structs.Job          // what feasibility reads of it, and no more
	rank  capacity.Amount       // of every rank, but perhaps less for the last
	ports []structs.PortRequest // of every rank but the first
	heads []structs.PortRequest // of rank 0
	all   bool                  // asks for all devices of a node
	least structs.QuotaUsage    // what the smallest gang counts in a quota at least; never changed
	at    int32                 // its row in the board's table of what classes can run
}

// shapes finds the shape of a job. Boards share it with their clones until one
// of them meets a new shape.
type shapes struct {
	byKey  map[string]*shape
	list   []*shape
	needs  int32 // alternatives of all shapes
	shared bool
}

// of returns the shape of a job, and makes it when it is new.
func (s *shapes) of(job *structs.Job) *shape {
	needs := make([]placement.Need, len(job.Resources))
	var key []byte
	for i := range needs {
		needs[i] = placement.NeedOf(job, i)
		key = append(key, needs[i].Key()...)
		key = append(key, '|')
	}
	key = strconv.AppendInt(key, int64(job.Nodes), 10)
	key = append(key, '-')
	key = strconv.AppendInt(key, int64(job.NodesMin()), 10)
	if servers := job.Servers(); servers > 0 {
		key = strconv.AppendInt(append(key, 's'), int64(servers), 10)
	}
	if job.Resizes() {
		key = append(key, 'r')
	}
	if job.VIP != nil {
		for _, m := range job.VIP.Machines {
			key = append(key, m.Busy...)
			key = append(key, ',')
		}
	}
	if sh, ok := s.byKey[string(key)]; ok {
		return sh
	}
	s.own()
	sh := &shape{
		id: int32(len(s.list)), pool: job.Placement.Pool, nodes: job.Nodes, min: job.NodesMin(), resize: job.Resizes(),
		vip: job.VIP, needs: make([]need, len(needs)),
		odd: job.Nodes < 1 || job.Nodes > structs.RanksMax || len(needs) == 0,
	}
	form := &structs.Job{
		Name: job.Name, Nodes: job.Nodes, Distributed: job.Distributed, Resources: job.Resources,
		Placement: job.Placement, VIP: job.VIP, Checkpoint: job.Checkpoint, Task: structs.Task{Driver: job.Task.Driver, Secrets: job.Task.Secrets},
		Algorithms: job.Algorithms, Datasets: job.Datasets, Models: job.Models, Volumes: job.Volumes, Mounts: job.Mounts,
		Output: job.Output, OutputStorage: job.OutputStorage, Workdir: job.Workdir,
	}
	for i := range needs {
		spec := needs[i].Spec()
		n := need{Need: needs[i], job: form, at: s.needs, least: leastUsage(spec, sh.min)}
		n.least[structs.QuotaCPU] -= job.ServerCPUSpare()
		n.ports, n.heads = job.PortRequests(spec, 1), job.PortRequests(spec, 0)
		n.rank = spec.Amount()
		for _, request := range spec.Devices {
			n.all = n.all || request.Count == structs.DevicesAll
		}
		sh.needs[i] = n
		sh.named = n.Names()
		s.needs++
	}
	s.byKey[string(key)] = sh
	s.list = append(s.list, sh)
	return sh
}

// own makes the registry the board's alone, before it is changed.
func (s *shapes) own() {
	if !s.shared {
		return
	}
	byKey := make(map[string]*shape, len(s.byKey)+1)
	for key, sh := range s.byKey {
		byKey[key] = sh
	}
	s.byKey, s.list, s.shared = byKey, s.list[:len(s.list):len(s.list)], false
}

// text describes what each node of the shape needs, for people, in words that
// every language shares.
func (s *shape) text() string {
	texts := make([]string, len(s.needs))
	for i := range s.needs {
		texts[i] = s.needs[i].text()
	}
	return strings.Join(texts, " | ")
}

func (n *need) text() string {
	spec := n.Spec()
	var b strings.Builder
	fmt.Fprintf(&b, "cpu %s, memory %s", structs.FormatMilliCPU(n.rank.CPU), structs.FormatSize(n.rank.Memory))
	for _, d := range spec.Devices {
		fmt.Fprintf(&b, ", %s", d.Kind)
		if model := deviceModel(d); model != "" {
			fmt.Fprintf(&b, " %s", model)
		}
		if d.Count == structs.DevicesAll {
			b.WriteString(" × all")
		} else {
			fmt.Fprintf(&b, " × %d", d.Count)
		}
	}
	for _, p := range spec.Ports {
		if p.Static != 0 {
			fmt.Fprintf(&b, ", port %d", p.Static)
		}
	}
	if spec.RDMA {
		b.WriteString(", rdma")
	}
	return b.String()
}

func deviceModel(d structs.DeviceRequest) string {
	if len(d.Models) > 0 {
		return strings.Join(d.Models, "/")
	}
	return d.Model
}

// size is how many nodes a gang is, for people: "4", or "2-4" when it is elastic.
func (s *shape) size() string {
	if s.min < s.nodes {
		return strconv.Itoa(s.min) + "-" + strconv.Itoa(s.nodes)
	}
	return strconv.Itoa(s.nodes)
}
