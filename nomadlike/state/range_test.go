package state

import (
	"testing"

	"nomadlike/nomadlike/structs"
)

// When a gang may grow is known once it runs: the queue must hear of the start of
// one that is smaller than its job asked for, since nothing else may ever happen.
func TestTheQueueHearsWhenASmallGangRuns(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		wakes bool
	}{{"fewer nodes than asked for", 1, true}, {"all nodes", 2, false}} {
		t.Run(c.name, func(t *testing.T) {
			job := testJob("t", 2)
			job.Distributed = structs.Distributed{Mode: structs.ModePyTorch, MinNodes: 1}
			plan := structs.GangPlan{JobID: "job-t", Attempt: 1}
			store := New()
			apply := func(kind structs.CommandKind, body any) {
				t.Helper()
				index := store.Snapshot().Index() + 1
				if result := store.Apply(index, encode(kind, 1, body)); result.Err != nil || len(result.Refused) > 0 {
					t.Fatal(result)
				}
			}
			apply(structs.CommandClusterInit, &structs.ClusterInit{Cluster: structs.Cluster{ID: "c"}})
			for n := range c.nodes {
				apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: testNode(n)})
				plan.Placements = append(plan.Placements, structs.RankPlacement{NodeID: testNode(n).ID})
			}
			plan.Placements[0].Ports = map[string]int{structs.MasterPortName: 20000}
			apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: job})
			apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{plan}})
			for _, status := range []structs.AllocStatus{structs.AllocPrepared, structs.AllocRunning} {
				before := store.Snapshot().ScheduleIndex()
				for n := range c.nodes {
					id := structs.AllocID("job-t", 0, 1, n)
					apply(structs.CommandAllocReports, &structs.AllocReports{
						NodeID:  testNode(n).ID,
						Reports: []structs.AllocReport{{AllocID: id, Attempt: 1, Status: status}},
					})
				}
				snapshot := store.Snapshot()
				woke, wakes := snapshot.ScheduleIndex() != before, c.wakes && status == structs.AllocRunning
				if woke != wakes {
					t.Errorf("%s: the queue heard of it: %v, not %v", status, woke, wakes)
				}
			}
			if a := store.Snapshot().Attempt("job-t", 0, 1); a.State != structs.AttemptRunning {
				t.Errorf("the attempt is %s", a.State)
			}
		})
	}
}
