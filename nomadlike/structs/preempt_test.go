package structs

import (
	"testing"

	"pgregory.net/rapid"
)

// projects is a Ground that knows projects only.
type projects struct {
	nodesOnly
	records map[string]*Project
	usage   map[string]*ProjectUsage
}

func (g projects) Project(name string) *Project           { return g.records[name] }
func (g projects) ProjectUsage(name string) *ProjectUsage { return g.usage[name] }

func TestVictimProblem(t *testing.T) {
	key := DeviceKey("nvidia/gpu", "A800")
	ground := projects{records: map[string]*Project{
		"p": {Name: "p", Quotas: []Quota{{Kind: "nvidia/gpu", Guaranteed: 8}}},
		"q": {Name: "q", Quotas: []Quota{{Kind: "nvidia/gpu", Guaranteed: 4}}},
		"s": {Name: "s", Quotas: []Quota{{Kind: "nvidia/gpu"}}},
		"u": {Name: "u", Quotas: []Quota{{Kind: QuotaCPU, Guaranteed: 4}}},
	}, usage: map[string]*ProjectUsage{"q": {Held: Holding{key: 12}}}}
	for _, c := range []struct {
		name   string
		change func(job *Job, victim *Victim)
		yields bool
	}{
		{"preemptible, borrowing from the guarantee of another", func(*Job, *Victim) {}, true},
		{"not preemptible", func(_ *Job, v *Victim) { v.Job.Preemptible = false }, false},
		{"not preemptible, lower tier", func(j *Job, v *Victim) { v.Job.Preemptible, j.Priority = false, PriorityCritical }, false},
		{"lower tier", func(j *Job, v *Victim) { j.Priority, v.Job.Project = PriorityUrgent, "p" }, true},
		{"higher tier", func(_ *Job, v *Victim) { v.Job.Priority = PriorityUrgent }, false},
		{"same project", func(_ *Job, v *Victim) { v.Job.Project = "p" }, false},
		{"within its own guarantee", func(_ *Job, _ *Victim) { ground.usage["q"].Held[key] = 4 }, false},
		{"for more than is guaranteed", func(j *Job, _ *Victim) { j.Project = "q" }, false},
		{"project without a record", func(_ *Job, v *Victim) { v.Job.Project, v.Job.OutsideYields = "r", true }, true},
		{"project without a record, of before this was asked of it", func(_ *Job, v *Victim) { v.Job.Project = "r" }, false},
		{"project without a record, not preemptible", func(_ *Job, v *Victim) {
			v.Job.Project, v.Job.OutsideYields, v.Job.Preemptible = "r", true, false
		}, false},
		{"project without a record, for more than is guaranteed", func(j *Job, v *Victim) {
			j.Project, v.Job.Project, v.Job.OutsideYields = "q", "r", true
		}, false},
		{"project without a record, holding nothing that is guaranteed", func(_ *Job, v *Victim) {
			v.Job.Project, v.Job.OutsideYields, v.Held = "r", true, Holding{QuotaCPU: 1000}
		}, false},
		{"project with a record that rules nothing", func(_ *Job, v *Victim) { v.Job.Project, v.Job.OutsideYields = "s", true }, true},
		{"project with a quota of something else", func(_ *Job, v *Victim) { v.Job.Project, v.Job.OutsideYields = "u", true }, false},
		{"VIP", func(j *Job, v *Victim) { v.Job.VIP, j.Priority = &VIP{}, PriorityCritical }, false},
		{"on a machine to wait for", func(j *Job, v *Victim) {
			v.Job.Preemptible, j.VIP = false, &VIP{Machines: []VIPMachine{{Node: "n1", Busy: BusyWait}}}
		}, false},
		{"on a machine to kill", func(j *Job, v *Victim) {
			v.Job.Preemptible, v.Job.Priority, j.VIP = false, PriorityCritical, &VIP{Machines: []VIPMachine{{Node: "n1", Busy: BusyKill}}}
		}, true},
		{"on another machine than the one to kill", func(j *Job, v *Victim) {
			v.Job.Preemptible, j.VIP = false, &VIP{Machines: []VIPMachine{{Node: "n2", Busy: BusyKill}}}
		}, false},
		{"VIP on a machine to kill", func(j *Job, v *Victim) {
			v.Job.VIP, j.VIP = &VIP{}, &VIP{Machines: []VIPMachine{{Node: "n1", Busy: BusyKill}}}
		}, false},
		{"its own attempt", func(j *Job, v *Victim) { v.Job = j }, false},
		{"its own attempt, which may change its size", func(j *Job, v *Victim) {
			j.Nodes, j.Checkpoint = 2, &Checkpoint{Elastic: &Elastic{AllowResize: true}}
			v.Job = j
		}, true},
		{"its own attempt, which may not", func(j *Job, v *Victim) {
			j.Nodes, j.Checkpoint = 2, &Checkpoint{Elastic: &Elastic{MinNodes: 1}}
			v.Job = j
		}, false},
		{"its own attempt, which has torchrun's range", func(j *Job, v *Victim) {
			j.Nodes, j.Distributed = 2, Distributed{Mode: ModePyTorch, MinNodes: 1}
			v.Job = j
		}, true},
	} {
		ground.usage["q"].Held[key] = 12
		job := &Job{ID: "a", Name: "a", Project: "p", Priority: PriorityNormal}
		victim := Victim{
			Job:   &Job{ID: "b", Name: "b", Project: "q", Priority: PriorityNormal, Preemptible: true},
			Nodes: []*Node{{ID: "id1", Name: "n1"}}, Held: Holding{key: 8},
		}
		c.change(job, &victim)
		reason := VictimProblem(job, Holding{key: 8}, victim, ground)
		if (reason == nil) != c.yields {
			t.Errorf("%s: yields %v", c.name, reason == nil)
		}
		if reason != nil && (reason.ID != "scheduler.refused_victim" || reason.Params["job"] != victim.Job.Name) {
			t.Errorf("%s: %+v", c.name, reason)
		}
	}
}

// TestNobodyIsPreemptedInTurn: a gang that was ended for another may not end
// that one as soon as it is queued again.
func TestNobodyIsPreemptedInTurn(t *testing.T) {
	kinds := []string{"nvidia/gpu", "huawei/npu", QuotaCPU}
	held := func(t *rapid.T, name string) Holding {
		h := Holding{}
		for _, kind := range kinds {
			if n := rapid.Int64Range(0, 6).Draw(t, name+" "+kind); n > 0 && kind == QuotaCPU {
				h[kind] = n * 500
			} else if n > 0 {
				h[DeviceKey(kind, rapid.SampledFrom([]string{"A800", "910B"}).Draw(t, "model"))] = n
			}
		}
		return h
	}
	rapid.Check(t, func(t *rapid.T) {
		ground := projects{records: map[string]*Project{}, usage: map[string]*ProjectUsage{}}
		for _, name := range []string{"p", "q"} {
			project := &Project{Name: name}
			for _, kind := range kinds {
				quota := Quota{Kind: kind, Guaranteed: rapid.IntRange(0, 6).Draw(t, "guaranteed")}
				if kind != QuotaCPU {
					quota.Model = rapid.SampledFrom([]string{"", "A800"}).Draw(t, "of model")
				}
				if rapid.Bool().Draw(t, "bounded") {
					quota.Maximum = bounded(quota.Guaranteed + 2)
				}
				project.Quotas = append(project.Quotas, quota)
			}
			ground.records[name] = project
			ground.usage[name] = &ProjectUsage{Held: held(t, "held by "+name)}
		}
		ground.usage["r"] = &ProjectUsage{Held: held(t, "held by r")}
		draw := func(id string) *Job {
			return &Job{
				ID: id, Name: id, Project: rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "project"), Preemptible: true, OutsideYields: rapid.Bool().Draw(t, "outside"),
				Priority: rapid.SampledFrom([]Priority{PriorityNormal, PriorityUrgent}).Draw(t, "priority"),
			}
		}
		a, b := draw("a"), draw("b")
		holdsA, holdsB := held(t, "a"), held(t, "b")
		ground.usage[b.Project].Held = ground.usage[b.Project].Held.Add(holdsB)
		if VictimProblem(a, holdsA, Victim{Job: b, Held: holdsB}, ground) != nil {
			return
		}
		ground.usage[b.Project].Held = ground.usage[b.Project].Held.Sub(holdsB)
		ground.usage[a.Project].Held = ground.usage[a.Project].Held.Add(holdsA)
		if VictimProblem(b, holdsB, Victim{Job: a, Held: holdsA}, ground) == nil {
			t.Fatalf("%+v and %+v preempt each other in turn", a, b)
		}
	})
}
