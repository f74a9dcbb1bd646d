package scheduler

import (
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// sameAsNew passes on a board that was kept and on a new one, and asserts that
// both say the same; the world takes the plan.
func sameAsNew(t *testing.T, w *world, kept *Board) structs.Plan {
	t.Helper()
	plan := Schedule(Input{Snapshot: w, Settings: kept.Settings()}, w.now, 1)
	kept.Sync(w)
	if old := kept.Pass(w.now, 1); text(old) != text(plan) {
		t.Fatalf("the board that was kept decides otherwise:\nnew  %s\nkept %s", text(plan), text(old))
	}
	w.apply(t, plan)
	return plan
}

// TestFiguresAreOfThisPass: a gang to which the walk does not come, because
// nobody passes the one before it, names those who hold its nodes now and not
// those of an earlier pass.
func TestFiguresAreOfThisPass(t *testing.T) {
	w := newWorld()
	w.addNode(testNode("n1", 8, 16<<30))
	board := NewBoard(Settings{Passing: NoPassing})
	submit := func(name string, cpu float64, priority structs.Priority) {
		j := testJob(name, 1, cpu, 1<<30)
		j.Project, j.Priority = name, priority
		w.submit(j)
	}
	submit("first", 8, structs.PriorityNormal)
	sameAsNew(t, w, board)
	submit("head", 8, structs.PriorityNormal)
	submit("behind", 8, structs.PriorityNormal)
	sameAsNew(t, w, board)
	submit("second", 8, structs.PriorityCritical)
	w.end("id-first", 0, structs.JobSucceeded)
	sameAsNew(t, w, board)
	if got := w.subjobs[subjobID{"id-behind", 0}].Wait.Holders; len(got) != 1 || got[0] != "id-second" {
		t.Errorf("held by %v, want the second job", got)
	}
}

// TestFillingForgetsNobody: behind the gangs that have a reserved start, those
// for which there is known to be no room are not asked again, but for those that
// may have nodes nominated though there is none.
func TestFillingForgetsNobody(t *testing.T) {
	w := newWorld()
	w.addNode(testNode("n1", 4, 16<<30))
	w.addNode(testNode("n2", 8, 16<<30))
	board := NewBoard(Settings{Passing: Easy})
	vip := func(name string) *structs.Job {
		j := testJob(name, 1, 1, 1<<30)
		j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1", Busy: structs.BusyWait}}}
		return j
	}
	hold := testJob("hold", 1, 2, 1<<30)
	hold.Placement.Nodes = []string{"n1"}
	w.submit(hold)
	w.submit(testJob("rest", 1, 8, 1<<30))
	w.submit(vip("holder"))
	sameAsNew(t, w, board)
	w.submit(testJob("head", 1, 8, 1<<30)) // is reserved n2
	w.submit(vip("next"))                  // finds n1 nominated for the holder
	sameAsNew(t, w, board)
	w.now = w.now.Add(time.Minute)
	w.end("id-hold", 0, structs.JobSucceeded) // the holder starts, and its nomination is over
	if s := w.subjobs[subjobID{"id-holder", 0}]; s.State != structs.JobRunning {
		t.Fatalf("the first VIP job is %s", s.State)
	}
	if plan := sameAsNew(t, w, board); len(plan.Gangs) != 1 || plan.Gangs[0].JobID != "id-next" || !plan.Gangs[0].Nominate {
		t.Errorf("the next VIP job has no nomination: %s", text(plan))
	}
}
