package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// scripted applies commands to a store of its own.
type scripted struct {
	t     *testing.T
	store *state.Store
	index uint64
	now   structs.UnixNano
}

func (s *scripted) apply(kind structs.CommandKind, body any) {
	s.t.Helper()
	command, err := wire.EncodeCommand(kind, s.now, "tester", body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.index++
	if result := s.store.Apply(s.index, command); result.Err != nil {
		s.t.Fatal(result.Err)
	}
}

func (s *scripted) submit(name string, limit time.Duration) {
	job := testJob(name, 1)
	job.ID, job.TimeLimit = "job-"+name, structs.Duration(limit)
	s.apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: job})
}

func TestDueSweeps(t *testing.T) {
	s := &scripted{t: t, store: state.New(), now: 1}
	hour := structs.UnixNano(time.Hour)
	s.apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{ID: "n1", Name: "n1", Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: 8, Memory: 1 << 40}}})
	s.apply(structs.CommandJoinTokenPut, &structs.JoinTokenPut{Token: structs.JoinToken{ID: "j", Hash: make([]byte, 32), UsesLeft: 1, ExpiresAt: hour}})
	s.submit("limited", time.Hour)
	s.submit("free", 0)
	s.submit("waiting", time.Minute)
	for _, name := range []string{"limited", "free"} {
		s.apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{{JobID: "job-" + name, Attempt: 1,
			Placements: []structs.RankPlacement{{NodeID: "n1"}}}}})
		s.apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: "n1", Reports: []structs.AllocReport{
			{AllocID: structs.AllocID("job-"+name, 0, 1, 0), Attempt: 1, Status: structs.AllocRunning}}})
	}
	s.apply(structs.CommandNodeEligibility, &structs.NodeEligibilityChange{NodeID: "n1", Eligibility: structs.NodeDraining, DrainDeadline: 2 * hour})
	for _, c := range []struct {
		now  structs.UnixNano
		want []structs.CommandKind
	}{
		{hour, nil},
		{hour + 1, []structs.CommandKind{structs.CommandJobLimits}},
		{2 * hour, []structs.CommandKind{structs.CommandJobLimits, structs.CommandNodeEligibility}},
		{26 * hour, []structs.CommandKind{structs.CommandJobLimits, structs.CommandNodeEligibility, structs.CommandJoinTokenDelete}},
	} {
		var got []structs.CommandKind
		for _, due := range dueSweeps(s.store.Snapshot(), c.now, true) {
			got = append(got, due.kind)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", c.now.Time(), diff)
		}
	}

	// What is carried out is not due any more.
	s.now = 26 * hour
	for _, due := range dueSweeps(s.store.Snapshot(), s.now, true) {
		s.apply(due.kind, due.body)
	}
	if due := dueSweeps(s.store.Snapshot(), s.now, true); len(due) > 0 {
		t.Errorf("still due: %+v", due)
	}
}

func TestEndedBeyond(t *testing.T) {
	s := &scripted{t: t, store: state.New(), now: 1}
	for i := range 10 {
		s.submit(fmt.Sprintf("j%d", i), 0)
		if i != 2 {
			s.apply(structs.CommandJobStop, &structs.JobStop{JobID: fmt.Sprintf("job-j%d", i)})
		}
	}
	if got := endedBeyond(s.store.Snapshot(), 9); len(got) != 0 {
		t.Errorf("within the bound: %v", got)
	}
	if diff := cmp.Diff([]string{"job-j0", "job-j1", "job-j3"}, endedBeyond(s.store.Snapshot(), 6)); diff != "" {
		t.Errorf("beyond the bound (-want +got):\n%s", diff)
	}
}
