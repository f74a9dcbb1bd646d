package scheduler

import (
	"slices"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// A window ahead lets in only what is surely over by its start; while it lasts nothing
// starts; afterwards everything does, the reserved one first.
func TestPassPlansAroundMaintenance(t *testing.T) {
	w := newWorld()
	w.now = structs.UnixNano(time.Hour)
	for _, name := range []string{"n0", "n1"} {
		w.addNode(testNode(name, 4, 16<<30))
	}
	job := func(name string, nodes int, limit time.Duration) {
		j := testJob(name, nodes, 4, 1<<30)
		j.TimeLimit = structs.Duration(limit)
		w.submit(j)
	}
	window := structs.NodeMaintenance{ID: "w", Start: w.now.Add(2 * time.Hour), End: w.now.Add(6 * time.Hour), Reason: "new firmware"}
	for _, id := range []string{"id-n0", "id-n1"} {
		w.setNode(id, func(n *structs.Node) { n.Maintenance = []structs.NodeMaintenance{window} })
	}
	job("both", 2, 3*time.Hour) // too long: it starts after the window
	job("free", 1, 0)           // for any time: after it, too
	job("short", 1, 2*time.Hour)
	b := NewBoard(Settings{})
	pass := func() (started []string) {
		b.Sync(w)
		plan := b.Pass(w.now, 1)
		w.apply(t, plan)
		for i := range plan.Gangs {
			started = append(started, w.jobs[plan.Gangs[i].JobID].Name)
		}
		slices.Sort(started)
		return started
	}
	if got := pass(); !slices.Equal(got, []string{"short"}) {
		t.Fatalf("before the window start %v", got)
	}
	why := func(name string) *structs.WaitReason {
		for id, j := range w.jobs {
			if j.Name == name {
				return b.Explain(id, 0)
			}
		}
		return nil
	}
	end := func(names ...string) {
		for id, j := range w.jobs {
			if slices.Contains(names, j.Name) {
				w.end(id, 0, structs.JobSucceeded)
			}
		}
	}
	end("short")
	if got := pass(); len(got) > 0 {
		t.Fatalf("with room, and the window ahead, start %v", got)
	}
	if reason := why("both"); reason == nil || reason.ID != "scheduler.maintenance_why" || reason.Params["why"] != "new firmware" ||
		reason.Params["names"] != "n0, n1" || reason.Params["start"] != "1970-01-01T03:00:00Z" || reason.Params["end"] != "1970-01-01T07:00:00Z" {
		t.Errorf("it waits because %+v", reason)
	}
	reserved := b.Reservations()
	if len(reserved) == 0 || w.jobs[reserved[0].JobID].Name != "both" || reserved[0].At != window.End {
		t.Errorf("reserved is %+v", reserved)
	}
	// Begun: nodes are closed, whatever the limit.
	w.now = window.Start
	window.Begun = true
	for _, id := range []string{"id-n0", "id-n1"} {
		w.setNode(id, func(n *structs.Node) { n.Maintenance = []structs.NodeMaintenance{window} })
	}
	job("quick", 1, time.Minute)
	if got := pass(); len(got) > 0 {
		t.Fatalf("during the window start %v", got)
	}
	if reason := why("quick"); reason == nil || reason.ID != "scheduler.in_maintenance_why" || reason.Params["closed"] != "2" {
		t.Errorf("it waits because %+v", reason)
	}
	w.now = window.End
	for _, id := range []string{"id-n0", "id-n1"} {
		w.setNode(id, func(n *structs.Node) { n.Maintenance = nil })
	}
	if got := pass(); !slices.Equal(got, []string{"both"}) {
		t.Fatalf("after the window start %v", got)
	}
}

// Without a limit, a job that keeps checkpoints may use a node until shortly before a
// window that stops it, and no other job may.
func TestCheckpointsRunUpToMaintenance(t *testing.T) {
	for _, c := range []struct {
		name       string
		ahead      time.Duration
		keep, want bool
	}{
		{"in time", 2 * time.Hour, false, true},
		{"too late", 30 * time.Minute, false, false},
		{"it would go on", 2 * time.Hour, true, false},
	} {
		w := newWorld()
		w.now = structs.UnixNano(time.Hour)
		w.addNode(testNode("n0", 4, 16<<30))
		w.setNode("id-n0", func(n *structs.Node) {
			n.Maintenance = []structs.NodeMaintenance{{ID: "w", Start: w.now.Add(c.ahead), End: w.now.Add(9 * time.Hour), KeepRunning: c.keep}}
		})
		j := testJob("saver", 1, 4, 1<<30)
		j.Checkpoint = &structs.Checkpoint{Signal: "SIGUSR1"}
		w.submit(j)
		b := NewBoard(Settings{})
		b.Sync(w)
		plan := b.Pass(w.now, 1)
		w.apply(t, plan)
		if got := len(plan.Gangs) > 0; got != c.want {
			t.Errorf("%s: it starts is %v", c.name, got)
		}
	}
}

// Of a gang that needs two nodes, each is open at another time: it is reserved for when
// both are.
func TestReservedWhenAllNodesAreOpen(t *testing.T) {
	w := newWorld()
	w.now = structs.UnixNano(time.Hour)
	hour := func(n int) structs.UnixNano { return structs.UnixNano(n) * structs.UnixNano(time.Hour) }
	w.addNode(testNode("n0", 4, 16<<30))
	w.addNode(testNode("n1", 4, 16<<30))
	w.setNode("id-n0", func(n *structs.Node) {
		n.Maintenance = []structs.NodeMaintenance{{ID: "a", Start: hour(2), End: hour(4)}, {ID: "c", Start: hour(8), End: hour(9)}}
	})
	w.setNode("id-n1", func(n *structs.Node) {
		n.Maintenance = []structs.NodeMaintenance{{ID: "b", Start: hour(3), End: hour(7)}}
	})
	j := testJob("both", 2, 4, 1<<30)
	j.TimeLimit = structs.Duration(2 * time.Hour)
	w.submit(j)
	b := NewBoard(Settings{})
	b.Sync(w)
	if plan := b.Pass(w.now, 1); len(plan.Gangs) > 0 {
		t.Fatalf("it starts at once: %+v", plan.Gangs)
	}
	// n0 is open from 4 to 6, and from 9 on; n1 from 7 on.
	if reserved := b.Reservations(); len(reserved) != 1 || reserved[0].At != hour(9) {
		t.Errorf("reserved is %+v", reserved)
	}
}
