package feasible

import (
	"testing"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// projects is a View that knows projects only.
type projects struct {
	nodesOnly
	records map[string]*structs.Project
	usage   map[string]*structs.ProjectUsage
}

func (g projects) Project(name string) *structs.Project { return g.records[name] }

func (g projects) ProjectUsage(name string) *structs.ProjectUsage { return g.usage[name] }

func TestVictimProblem(t *testing.T) {
	key := structs.DeviceKey("nvidia/gpu", "A800")
	view := projects{records: map[string]*structs.Project{
		"p": {Name: "p", Quotas: []structs.Quota{{Kind: "nvidia/gpu", Guaranteed: 8}}},
		"q": {Name: "q", Quotas: []structs.Quota{{Kind: "nvidia/gpu", Guaranteed: 4}}},
		"s": {Name: "s", Quotas: []structs.Quota{{Kind: "nvidia/gpu"}}},
		"u": {Name: "u", Quotas: []structs.Quota{{Kind: structs.QuotaCPU, Guaranteed: 4}}},
	}, usage: map[string]*structs.ProjectUsage{"q": {QuotaUsage: structs.QuotaUsage{key: 12}}}}
	for _, c := range []struct {
		name   string
		change func(job *structs.Job, victim *Victim)
		yields bool
	}{
		{"preemptible, borrowing from the guarantee of another", func(*structs.Job, *Victim) {}, true},
		{"not preemptible", func(_ *structs.Job, v *Victim) { v.Job.Preemptible = false }, false},
		{"not preemptible, lower tier", func(j *structs.Job, v *Victim) { v.Job.Preemptible, j.Priority = false, structs.PriorityCritical }, false},
		{"lower tier", func(j *structs.Job, v *Victim) { j.Priority, v.Job.Project = structs.PriorityUrgent, "p" }, true},
		{"higher tier", func(_ *structs.Job, v *Victim) { v.Job.Priority = structs.PriorityUrgent }, false},
		{"same project", func(_ *structs.Job, v *Victim) { v.Job.Project = "p" }, false},
		{"within its own guarantee", func(_ *structs.Job, _ *Victim) { view.usage["q"].QuotaUsage[key] = 4 }, false},
		{"for more than is guaranteed", func(j *structs.Job, _ *Victim) { j.Project = "q" }, false},
		{"project without a record", func(_ *structs.Job, v *Victim) { v.Job.Project, v.Job.OutsideYields = "r", true }, true},
		{"project without a record, of before this was asked of it", func(_ *structs.Job, v *Victim) { v.Job.Project = "r" }, false},
		{"project without a record, not preemptible", func(_ *structs.Job, v *Victim) {
			v.Job.Project, v.Job.OutsideYields, v.Job.Preemptible = "r", true, false
		}, false},
		{"project without a record, for more than is guaranteed", func(j *structs.Job, v *Victim) {
			j.Project, v.Job.Project, v.Job.OutsideYields = "q", "r", true
		}, false},
		{"project without a record, holding nothing that is guaranteed", func(_ *structs.Job, v *Victim) {
			v.Job.Project, v.Job.OutsideYields, v.QuotaUsage = "r", true, structs.QuotaUsage{structs.QuotaCPU: 1000}
		}, false},
		{"project with a record that rules nothing", func(_ *structs.Job, v *Victim) { v.Job.Project, v.Job.OutsideYields = "s", true }, true},
		{"project with a quota of something else", func(_ *structs.Job, v *Victim) { v.Job.Project, v.Job.OutsideYields = "u", true }, false},
		{"VIP", func(j *structs.Job, v *Victim) { v.Job.VIP, j.Priority = &structs.VIP{}, structs.PriorityCritical }, false},
		{"on a machine to wait for", func(j *structs.Job, v *Victim) {
			v.Job.Preemptible, j.VIP = false, &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1", Busy: structs.BusyWait}}}
		}, false},
		{"on a machine to kill", func(j *structs.Job, v *Victim) {
			v.Job.Preemptible, v.Job.Priority, j.VIP = false, structs.PriorityCritical, &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1", Busy: structs.BusyKill}}}
		}, true},
		{"on another machine than the one to kill", func(j *structs.Job, v *Victim) {
			v.Job.Preemptible, j.VIP = false, &structs.VIP{Machines: []structs.VIPMachine{{Node: "n2", Busy: structs.BusyKill}}}
		}, false},
		{"VIP on a machine to kill", func(j *structs.Job, v *Victim) {
			v.Job.VIP, j.VIP = &structs.VIP{}, &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1", Busy: structs.BusyKill}}}
		}, false},
		{"its own attempt", func(j *structs.Job, v *Victim) { v.Job = j }, false},
		{"its own attempt, which may change its size", func(j *structs.Job, v *Victim) {
			j.Nodes, j.Checkpoint = 2, &structs.Checkpoint{Elastic: &structs.Elastic{AllowResize: true}}
			v.Job = j
		}, true},
		{"its own attempt, which may not", func(j *structs.Job, v *Victim) {
			j.Nodes, j.Checkpoint = 2, &structs.Checkpoint{Elastic: &structs.Elastic{MinNodes: 1}}
			v.Job = j
		}, false},
		{"its own attempt, which has torchrun's range", func(j *structs.Job, v *Victim) {
			j.Nodes, j.Distributed = 2, structs.Distributed{Mode: structs.ModePyTorch, MinNodes: 1}
			v.Job = j
		}, true},
	} {
		view.usage["q"].QuotaUsage[key] = 12
		job := &structs.Job{ID: "a", Name: "a", Project: "p", Priority: structs.PriorityNormal}
		victim := Victim{
			Job:   &structs.Job{ID: "b", Name: "b", Project: "q", Priority: structs.PriorityNormal, Preemptible: true},
			Nodes: []*structs.Node{{ID: "id1", Name: "n1"}}, QuotaUsage: structs.QuotaUsage{key: 8},
		}
		c.change(job, &victim)
		reason := VictimProblem(job, structs.QuotaUsage{key: 8}, victim, view)
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
	kinds := []string{"nvidia/gpu", "huawei/npu", structs.QuotaCPU}
	held := func(t *rapid.T, name string) structs.QuotaUsage {
		h := structs.QuotaUsage{}
		for _, kind := range kinds {
			if n := rapid.Int64Range(0, 6).Draw(t, name+" "+kind); n > 0 && kind == structs.QuotaCPU {
				h[kind] = n * 500
			} else if n > 0 {
				h[structs.DeviceKey(kind, rapid.SampledFrom([]string{"A800", "910B"}).Draw(t, "model"))] = n
			}
		}
		return h
	}
	rapid.Check(t, func(t *rapid.T) {
		view := projects{records: map[string]*structs.Project{}, usage: map[string]*structs.ProjectUsage{}}
		for _, name := range []string{"p", "q"} {
			project := &structs.Project{Name: name}
			for _, kind := range kinds {
				quota := structs.Quota{Kind: kind, Guaranteed: rapid.IntRange(0, 6).Draw(t, "guaranteed")}
				if kind != structs.QuotaCPU {
					quota.Model = rapid.SampledFrom([]string{"", "A800"}).Draw(t, "of model")
				}
				if rapid.Bool().Draw(t, "bounded") {
					quota.Maximum = new(quota.Guaranteed + 2)
				}
				project.Quotas = append(project.Quotas, quota)
			}
			view.records[name] = project
			view.usage[name] = &structs.ProjectUsage{QuotaUsage: held(t, "held by "+name)}
		}
		view.usage["r"] = &structs.ProjectUsage{QuotaUsage: held(t, "held by r")}
		draw := func(id string) *structs.Job {
			return &structs.Job{
				ID: id, Name: id, Project: rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "project"), Preemptible: true, OutsideYields: rapid.Bool().Draw(t, "outside"),
				Priority: rapid.SampledFrom([]structs.Priority{structs.PriorityNormal, structs.PriorityUrgent}).Draw(t, "priority"),
			}
		}
		a, b := draw("a"), draw("b")
		holdsA, holdsB := held(t, "a"), held(t, "b")
		view.usage[b.Project].QuotaUsage = view.usage[b.Project].QuotaUsage.Add(holdsB)
		if VictimProblem(a, holdsA, Victim{Job: b, QuotaUsage: holdsB}, view) != nil {
			return
		}
		view.usage[b.Project].QuotaUsage = view.usage[b.Project].QuotaUsage.Sub(holdsB)
		view.usage[a.Project].QuotaUsage = view.usage[a.Project].QuotaUsage.Add(holdsA)
		if VictimProblem(b, holdsB, Victim{Job: a, QuotaUsage: holdsA}, view) == nil {
			t.Fatalf("%+v and %+v preempt each other in turn", a, b)
		}
	})
}
