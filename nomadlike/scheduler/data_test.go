package scheduler

import (
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestPreparedDataIsPreferred: a job goes where copies are that it reads, if
// there is room; a copy that it does not read draws nobody.
func TestPreparedDataIsPreferred(t *testing.T) {
	settings := Settings{
		Prefer:  func(job *structs.Job, node *structs.Node) int { return node.CopiesFor(job) },
		Prefers: (*structs.Job).UsesCopies,
	}
	digits := func(prepare bool) *structs.Job {
		return &structs.Job{Datasets: []structs.DataRef{{Name: "digits", Version: 1, ReadOnly: true, Prepare: prepare}}}
	}
	for name, c := range map[string]struct {
		held string // by node c
		job  *structs.Job
		want string
	}{
		"prepared":                         {"p///digits/1", digits(true), "c"},
		"read from its storage":            {"p///digits/1", digits(false), "a"},
		"from a server":                    {"remote:p///digits/1", digits(false), "c"},
		"from a server, and to be there":   {"remote:p///digits/1", digits(true), "c"},
		"of another project":               {"q///digits/1", digits(true), "a"},
		"of another version":               {"p///digits/2", digits(true), "a"},
		"of this user":                     {"p///digits/1~li", digits(true), "c"},
		"of another user":                  {"p///digits/1~wang", digits(true), "a"},
		"of another user, from a server":   {"remote:p///digits/1~wang", digits(false), "a"},
		"a model from a server":            {"remote:model:p///digits/0", &structs.Job{Models: []structs.DataRef{{Name: "digits"}}}, "c"},
		"a dataset that is called so":      {"remote:p///digits/0", &structs.Job{Models: []structs.DataRef{{Name: "digits"}}}, "a"},
		"a model that is called so":        {"remote:model:p///digits/1", digits(true), "a"},
		"code from a server":               {"remote:algorithm:p//git/digits/0:v1/", &structs.Job{Algorithms: []structs.DataRef{{Name: "digits", From: "git", Source: "v1/"}}}, "c"},
		"a job without data on such nodes": {"p///digits/1", &structs.Job{}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, id := range []string{"a", "b", "c"} {
				node := &structs.Node{
					ID: id, Name: id, Status: structs.NodeReady, Eligibility: structs.NodeEligible, Drivers: []string{"exec"},
					Storages: []string{"dataset/nas", "model/nas", "algorithm/nas"}, Capacity: structs.Capacity{CPU: 8, Memory: 8 << 30},
				}
				if id == "c" {
					node.Data = []string{c.held}
				}
				w.addNode(node)
			}
			job := c.job
			job.ID, job.Name, job.Project, job.User, job.Nodes, job.Task = "j", "j", "p", "li", 1, structs.Task{Driver: "exec"}
			job.Resources = []structs.Resources{{CPU: 1, Memory: 1 << 20}}
			w.submit(job)
			plan := Schedule(Input{Snapshot: w, Settings: settings}, 1, 1)
			if len(plan.Gangs) != 1 {
				t.Fatalf("plan %+v", plan)
			}
			if node := plan.Gangs[0].Placements[0].NodeID; node != c.want {
				t.Errorf("placed on %s, not on %s", node, c.want)
			}
		})
	}
}
