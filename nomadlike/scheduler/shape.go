package scheduler

import (
	"fmt"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// need is what one rank of a gang takes under one of its alternatives.
type need struct {
	index   int // into Job.Resources
	spec    structs.Resources
	cpu     int64
	memory  int64
	devices int
	ports   []structs.PortRequest // of every rank but the first
	ports0  []structs.PortRequest // of rank 0
}

func needOf(job *structs.Job, index int) need {
	spec := job.Resources[index]
	n := need{index: index, spec: spec, cpu: structs.MilliCPU(spec.CPU), memory: max(spec.Memory, 0),
		ports: job.PortRequests(spec, 1), ports0: job.PortRequests(spec, 0)}
	for _, request := range spec.Devices {
		n.devices += max(request.Count, 0)
	}
	return n
}

func (n *need) deviceKind() string {
	if len(n.spec.Devices) == 1 {
		return n.spec.Devices[0].Kind
	}
	return "devices"
}

// portsLacking names the fixed ports among ports, or ports in general.
func portsLacking(ports []structs.PortRequest) string {
	var fixed []string
	for _, p := range ports {
		if p.Static != 0 {
			fixed = append(fixed, strconv.Itoa(p.Static))
		}
	}
	if len(fixed) == 0 {
		return "ports"
	}
	return "port " + strings.Join(fixed, " ")
}

// text describes the need for people, in words that every language shares.
func (n *need) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cpu %s, memory %s", structs.FormatMilliCPU(n.cpu), structs.FormatSize(n.memory))
	for _, d := range n.spec.Devices {
		fmt.Fprintf(&b, ", %s", d.Kind)
		if d.Model != "" {
			fmt.Fprintf(&b, " %s", d.Model)
		}
		fmt.Fprintf(&b, " × %d", d.Count)
	}
	for _, p := range n.ports {
		if p.Static != 0 {
			fmt.Fprintf(&b, ", port %d", p.Static)
		}
	}
	return b.String()
}

// shape is all that the choice of nodes depends on. Jobs of one shape are
// equal to the scheduler, so what was found out for the first holds for all:
// within a walk room only shrinks.
type shape struct {
	job          *structs.Job // the first of the shape
	needs        []need       // by alternative
	judged       bool         // outlook is known
	outlook      outlook
	failed       bool                // could not be placed in this walk
	unreservable bool                // no reservation could be made in this walk
	fixed        *structs.WaitReason // explanation behind ExplainMax
	explained    *structs.WaitReason // explanation with figures
}

func (s *shape) needText() string {
	texts := make([]string, len(s.needs))
	for i := range s.needs {
		texts[i] = s.needs[i].text()
	}
	return strings.Join(texts, " | ")
}

// shapes finds the shape of a job. The subjobs of a batch share their job, so
// the last one is looked at first.
type shapes struct {
	byKey map[string]*shape
	last  *structs.Job
	found *shape
	key   []byte
}

func (s *shapes) of(job *structs.Job) *shape {
	if job == s.last {
		return s.found
	}
	s.key = appendShape(s.key[:0], job)
	found, ok := s.byKey[string(s.key)]
	if !ok {
		found = &shape{job: job, needs: make([]need, len(job.Resources))}
		for i := range job.Resources {
			found.needs[i] = needOf(job, i)
		}
		s.byKey[string(s.key)] = found
	}
	s.last, s.found = job, found
	return found
}

// appendShape writes everything of job that placement reads. A field that
// placement comes to read must be added here; TestShapeSeesEveryPlacementField
// holds the two together.
func appendShape(b []byte, job *structs.Job) []byte {
	text := func(s string) {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(b, ':')
		b = append(b, s...)
	}
	number := func(n int64) {
		b = strconv.AppendInt(b, n, 10)
		b = append(b, ' ')
	}
	number(int64(job.Nodes))
	text(job.Task.Driver)
	text(job.Placement.Pool)
	text(job.Placement.SpreadOrPack)
	for _, name := range job.Placement.Nodes {
		text(name)
	}
	for i := range job.Resources {
		r := &job.Resources[i]
		b = append(b, '|')
		number(structs.MilliCPU(r.CPU))
		number(r.Memory)
		for _, d := range r.Devices {
			b = append(b, 'd')
			text(d.Kind)
			text(d.Model)
			number(int64(d.Count))
			number(d.Memory)
			for _, id := range d.IDs {
				text(id)
			}
		}
		for _, p := range job.PortRequests(*r, 0) {
			b = append(b, 'p')
			text(p.Name)
			number(int64(p.Static))
		}
	}
	return b
}
