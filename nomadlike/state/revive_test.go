package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// revived returns a store whose state is another's, brought back.
func revived(t *testing.T, from *Store, revival structs.Revival) *Store {
	t.Helper()
	var stored, back bytes.Buffer
	if err := from.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	if err := Revive(bytes.NewReader(stored.Bytes()), &back, revival); err != nil {
		t.Fatal(err)
	}
	store := New()
	if err := store.Restore(&back); err != nil {
		t.Fatal(err)
	}
	if found := CheckInvariants(store.Snapshot()); len(found) > 0 {
		t.Fatalf("revived: %q", found)
	}
	return store
}

// scene is a store and the commands that a test applies to it.
type scene struct {
	*Store
	t     *testing.T
	index uint64
}

func (s *scene) do(kind structs.CommandKind, body any) structs.ApplyResult {
	s.t.Helper()
	s.index++
	result := s.Apply(s.index, encode(kind, structs.UnixNano(s.index), body))
	if found := CheckInvariants(s.Snapshot()); len(found) > 0 {
		s.t.Fatalf("command %d: %q", s.index, found)
	}
	return result
}

// place plans a job's next attempt on a node and reports whether it was taken.
func (s *scene) place(job string, attempt uint64, node string) bool {
	s.t.Helper()
	result := s.do(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{{JobID: job, Attempt: attempt, Placements: []structs.RankPlacement{{NodeID: node}}}}})
	return result.Plan != nil && result.Plan.Accepted == 1
}

func (s *scene) report(node, job string, attempt uint64, status structs.AllocStatus) []string {
	s.t.Helper()
	return s.do(structs.CommandAllocReports, &structs.AllocReports{NodeID: node, Reports: []structs.AllocReport{
		{AllocID: structs.AllocID(job, 0, attempt, 0), Attempt: attempt, Status: status},
	}}).Refused
}

// TestRevival brings a state back that the world has outrun: job a runs on, b was
// placed and had not begun, c waited and has run since in an attempt that the
// state does not know.
func TestRevival(t *testing.T) {
	s := &scene{Store: New(), t: t}
	s.do(structs.CommandClusterInit, &structs.ClusterInit{Cluster: structs.Cluster{ID: "old"}, JoinTokens: []structs.JoinToken{{ID: "j", Hash: make([]byte, 32)}}})
	for i := range 2 {
		s.do(structs.CommandNodeRegister, &structs.NodeRegister{Node: testNode(i)})
	}
	for _, name := range []string{"a", "b", "c"} {
		s.do(structs.CommandJobSubmit, &structs.JobSubmit{Job: testJob(name, 1)})
	}
	if !s.place("job-a", 1, "node-0") || !s.place("job-b", 1, "node-0") {
		t.Fatal("not placed")
	}
	s.report("node-0", "job-a", 1, structs.AllocPreparing)
	s.report("node-0", "job-a", 1, structs.AllocRunning)
	later := structs.UnixNano(2 * time.Hour)
	s = &scene{Store: revived(t, s.Store, structs.Revival{Now: later, Until: 0}), t: t, index: s.index + 1}

	snapshot := s.Snapshot()
	if got := snapshot.Subjob("job-a", 0); got.State != structs.JobRunning || got.Attempt != 1 || got.NextAttempt() != 9001 {
		t.Errorf("what ran: %+v", got)
	}
	if got := snapshot.Subjob("job-b", 0); got.State != structs.JobQueued || got.NextAttempt() < 8200 {
		t.Errorf("what had not begun: %+v", got)
	}
	if s.place("job-c", 2, "node-1") || s.place("job-c", 9001, "node-1") {
		t.Error("a node that was not heard got work")
	}

	// Node 1 runs attempts that the state does not know, and ends them: one tells
	// it by a report, one by a registration.
	ghost, second := structs.AllocID("job-c", 0, 1, 0), structs.AllocID("job-c", 0, 2, 0)
	s.do(structs.CommandNodeRegister, &structs.NodeRegister{Node: testNode(1), Inventory: []structs.InventoryItem{{AllocID: ghost, Attempt: 1}, {AllocID: second, Attempt: 2}}})
	if s.place("job-c", 9001, "node-1") {
		t.Error("a node that still runs what nobody knows got work")
	}
	if refused := s.report("node-1", "job-c", 1, structs.AllocKilled); len(refused) != 1 || s.Snapshot().Node("node-1").Schedulable() {
		t.Errorf("one of two has ended: refused %v, node %+v", refused, s.Snapshot().Node("node-1"))
	}
	s.do(structs.CommandNodeRegister, &structs.NodeRegister{Node: testNode(1)})
	if !s.Snapshot().Node("node-1").Schedulable() {
		t.Errorf("node 1 is %+v", s.Snapshot().Node("node-1"))
	}
	next := s.Snapshot().Subjob("job-c", 0).NextAttempt()
	if s.place("job-c", 1, "node-1") || s.place("job-c", 2, "node-1") || !s.place("job-c", next, "node-1") {
		t.Errorf("attempt %d, or an old number", next)
	}

	// Node 0 still runs a; its report of the end counts.
	s.do(structs.CommandNodeRegister, &structs.NodeRegister{Node: testNode(0), Inventory: []structs.InventoryItem{{AllocID: structs.AllocID("job-a", 0, 1, 0), Attempt: 1}}})
	if usage := s.Snapshot().Usage("node-0"); usage == nil || usage.Allocs != 1 {
		t.Errorf("node 0 holds %+v: b is not there", usage)
	}
	if refused := s.report("node-0", "job-a", 1, structs.AllocComplete); len(refused) != 0 {
		t.Error("the end of what was adopted is refused")
	}
	if got := s.Snapshot().Subjob("job-a", 0); got.State != structs.JobSucceeded {
		t.Errorf("adopted: %+v", got)
	}

	// Brought back once more, as another cluster's.
	foreign := revived(t, s.Store, structs.Revival{
		Now: 2 * later, Until: later, Cluster: &structs.Cluster{ID: "new", Bootstrapped: true},
		JoinTokens: []structs.JoinToken{{ID: "k", Hash: make([]byte, 32)}},
	}).Snapshot()
	if got := foreign.Cluster(); got.ID != "new" || got.RevivedAt != 2*later || !got.Bootstrapped {
		t.Errorf("cluster %+v", got)
	}
	for token := range foreign.JoinTokens() {
		if token.ID != "k" {
			t.Errorf("a join token of the old cluster is left: %s", token.ID)
		}
	}
	if again := foreign.Subjob("job-c", 0).NextAttempt(); again <= next {
		t.Errorf("the second gap begins at %d, attempt %d was given", again, next)
	}
}

// TestRevivedHistories goes on with random histories after a revival.
func TestRevivedHistories(t *testing.T) {
	for seed := range uint64(20) {
		w := &generator{chance: seeded{rand.New(rand.NewPCG(seed, 7))}, now: 1, calm: seed%2 == 1}
		store := New()
		index := uint64(0)
		run := func(n int) {
			for i := range n {
				index++
				store.Apply(index, w.next(store.Snapshot()))
				if i%10 == 0 {
					if found := CheckInvariants(store.Snapshot()); len(found) > 0 {
						t.Fatalf("seed %d, command %d: %q", seed, index, found)
					}
				}
			}
		}
		for range 3 {
			run(150)
			given := make(map[string]uint64)
			for view := range store.Snapshot().Jobs() {
				for s := range store.Snapshot().Subjobs(view.Job.ID) {
					given[structs.SubjobKey(s.JobID, s.Index)] = s.NextAttempt()
				}
			}
			w.now += structs.UnixNano(time.Hour)
			store = revived(t, store, structs.Revival{Now: w.now, Until: w.now - structs.UnixNano(time.Hour)})
			index++
			for view := range store.Snapshot().Jobs() {
				for s := range store.Snapshot().Subjobs(view.Job.ID) {
					key := structs.SubjobKey(s.JobID, s.Index)
					if !s.State.Terminal() && s.NextAttempt() < given[key]+1000 {
						t.Fatalf("seed %d: %s goes on with attempt %d after %d", seed, key, s.NextAttempt(), given[key])
					}
				}
			}
			for node := range store.Snapshot().Nodes() {
				if node.Schedulable() {
					t.Fatalf("seed %d: node %s takes work", seed, node.ID)
				}
			}
		}
		run(100)
	}
}

func TestReviveRefusesWhatIsNoState(t *testing.T) {
	var stored, back bytes.Buffer
	if err := filled(3).Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 1, stored.Len() / 2, stored.Len() - 1} {
		if err := Revive(bytes.NewReader(stored.Bytes()[:cut]), &back, structs.Revival{}); err == nil {
			t.Error(fmt.Sprint("cut to ", cut, " bytes it was taken"))
		}
	}
}
