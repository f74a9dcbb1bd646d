package predict

import (
	"math"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// Run is one ended attempt, as far as estimates need it.
type Run struct {
	Project, User, Name, Image, Category string
	Pool                                 string
	Devices, Nodes                       int           // of the whole gang
	CPU                                  float64       // cores of the whole gang; counts as its size when it has no devices
	Waited                               time.Duration // in the queue before it
	Runtime                              time.Duration // from placement to the last rank's end
	TimeLimit, Expected                  time.Duration // as its job said; 0: nothing
	Outcome                              structs.Outcome
	EndedAt                              structs.UnixNano
}

// RunOf is the run that the state keeps of an ended attempt.
func RunOf(past *structs.PastRun) Run {
	return Run{
		Project: past.Project, User: past.User, Name: past.Name, Image: past.Image, Category: past.Category, Pool: past.Pool,
		Devices: past.Devices, Nodes: past.Nodes, Waited: past.Waited.Std(), Runtime: past.Runtime.Std(),
		TimeLimit: past.TimeLimit.Std(), Expected: past.Expected.Std(), Outcome: past.Outcome, EndedAt: past.EndedAt,
	}
}

// whole reports whether the run ended by itself or by its user's will. One that
// was cut short by others only shows that it would have run longer.
func (r *Run) whole() bool {
	switch r.Outcome {
	case structs.OutcomeLost, structs.OutcomePreempted, structs.OutcomeExpired:
		return false
	case structs.OutcomeSucceeded, structs.OutcomeFailed, structs.OutcomeStopped:
	}
	return true
}

// identity is what identifies a job to the model.
type identity struct {
	pool, project, user string
	stem                string // of the name, with the image
	size                int    // devices of the whole gang; without any, minus its cores
	nodes               int
}

func identityOfRun(r *Run) identity {
	w := identity{pool: poolOf(r.Pool), project: r.Project, user: r.User, stem: stem(r.Name) + " " + r.Image, size: r.Devices, nodes: max(1, r.Nodes)}
	if r.Devices <= 0 {
		w.size = -cores(r.CPU)
	}
	return w
}

// identityOf identifies a job that waits or runs, by its first alternative: what
// else it could get matters less for its run time than who runs it.
func identityOf(job *structs.Job) identity {
	w := identity{pool: poolOf(job.Placement.Pool), project: job.Project, user: job.User, stem: stem(job.Name) + " " + job.Task.Image, nodes: max(1, job.Nodes)}
	spec := job.SpecAt(0)
	last := job.SpecOf(0, w.nodes-1, w.nodes)
	w.size = (w.nodes-1)*spec.DeviceCount() + last.DeviceCount()
	if w.size <= 0 {
		w.size = -cores(float64(w.nodes) * spec.CPU)
	}
	return w
}

// cores rounds to whole cores; sizes beyond a million are all alike.
func cores(cpu float64) int { return int(math.Ceil(min(max(cpu, 0), 1e6))) }

func poolOf(name string) string {
	if name == "" {
		return structs.PoolDefault
	}
	return name
}

// stemMax bounds what is kept of a name.
const stemMax = 64

// stem is a name without its numbers: the jobs of a sweep share it.
func stem(name string) string {
	var b strings.Builder
	digit := false
	for i := 0; i < len(name) && b.Len() < stemMax; i++ {
		c := name[i]
		if '0' <= c && c <= '9' {
			if !digit {
				b.WriteByte('#')
			}
			digit = true
			continue
		}
		digit = false
		b.WriteByte(c)
	}
	return b.String()
}
