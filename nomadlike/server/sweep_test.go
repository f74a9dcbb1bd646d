package server

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

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
	s.apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{
		ID: "n1", Name: "n1", Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: 8, Memory: 1 << 40},
	}})
	s.apply(structs.CommandJoinTokenPut, &structs.JoinTokenPut{Token: structs.JoinToken{ID: "j", Hash: make([]byte, 32), UsesLeft: 1, ExpiresAt: hour}})
	s.submit("limited", time.Hour)
	s.submit("free", 0)
	s.submit("waiting", time.Minute)
	for _, name := range []string{"limited", "free"} {
		s.apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{{
			JobID: "job-" + name, Attempt: 1,
			Placements: []structs.RankPlacement{{NodeID: "n1"}},
		}}})
		s.apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: "n1", Reports: []structs.AllocReport{
			{AllocID: structs.AllocID("job-"+name, 0, 1, 0), Attempt: 1, Status: structs.AllocRunning},
		}})
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
		for _, due := range dueSweeps(s.store.Snapshot(), c.now) {
			got = append(got, due.kind)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", c.now.Time(), diff)
		}
	}

	// What is executed is not due any more.
	s.now = 26 * hour
	for _, due := range dueSweeps(s.store.Snapshot(), s.now) {
		s.apply(due.kind, due.body)
	}
	if due := dueSweeps(s.store.Snapshot(), s.now); len(due) > 0 {
		t.Errorf("still due: %+v", due)
	}
}

// Windows begin and end by the leader's clock, and stop what came since.
// Code is forgotten a day after it was last sent, unless a job names it.
func TestDueCode(t *testing.T) {
	s := &scripted{t: t, store: state.New(), now: 1}
	digest := func(n int) string { return fmt.Sprintf("sha256:%064x", n) }
	for n := range structs.CodeForgetMax + 3 {
		s.apply(structs.CommandCodePut, &structs.CodePut{Tree: structs.CodeTree{Project: "default", Digest: digest(n)}})
	}
	job := testJob("names", 1)
	job.ID, job.Project, job.Workdir = "job-names", "default", &structs.Workdir{Source: ".", Tree: digest(0)}
	s.apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: job})
	day := structs.UnixNano(structs.CodeGrace)
	if due := dueCode(s.store.Snapshot(), day); len(due) != 0 {
		t.Errorf("within its grace: %v", due)
	}
	s.now = day
	s.apply(structs.CommandCodePut, &structs.CodePut{Tree: structs.CodeTree{Project: "default", Digest: digest(1)}}) // sent again
	for _, want := range []int{structs.CodeForgetMax, 1} {
		s.now = day + 1
		due := dueCode(s.store.Snapshot(), s.now)
		if len(due) != 1 {
			t.Fatalf("%d are due", len(due))
		}
		trees := due[0].body.(*structs.CodeForget).Trees
		if len(trees) != want || trees[0].Digest == digest(0) || trees[0].Digest == digest(1) {
			t.Errorf("%d trees from %s, want %d", len(trees), trees[0].Digest, want)
		}
		s.apply(due[0].kind, due[0].body)
	}
	if due := dueCode(s.store.Snapshot(), s.now); len(due) != 0 {
		t.Errorf("what is named or young: %v", due)
	}
}

func TestDueMaintenance(t *testing.T) {
	s := &scripted{t: t, store: state.New(), now: 1}
	hour := structs.UnixNano(time.Hour)
	s.apply(structs.CommandClusterInit, &structs.ClusterInit{Cluster: structs.Cluster{ID: "c"}})
	for _, name := range []string{"n1", "n2"} {
		s.apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{
			ID: name, Name: name, Drivers: []string{"exec"}, Capacity: structs.Capacity{CPU: 8, Memory: 1 << 40},
		}})
	}
	for _, window := range []structs.Maintenance{
		{ID: "stops", Nodes: []string{"n1"}, Start: hour, End: 3 * hour},
		{ID: "keeps", Nodes: []string{"n2"}, Start: 2 * hour, End: 4 * hour, KeepRunning: true},
	} {
		s.apply(structs.CommandMaintenancePut, &structs.MaintenancePut{Maintenance: window})
	}
	for i, node := range []string{"n1", "n2"} {
		name := fmt.Sprintf("j%d", i)
		s.submit(name, time.Minute)
		s.apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{{
			JobID: "job-" + name, Attempt: 1, Placements: []structs.RankPlacement{{NodeID: node}},
		}}})
	}
	for _, c := range []struct {
		now  structs.UnixNano
		want []string
	}{
		{hour - 1, nil},
		{hour, []string{"stops begin"}},
		{2 * hour, []string{"keeps begin"}},
		{3*hour - 1, nil},
		{3 * hour, []string{"stops over"}},
		{4 * hour, []string{"keeps over"}},
		{5 * hour, nil},
	} {
		var got []string
		s.now = c.now
		for _, step := range DueMaintenance(s.store.Snapshot(), c.now) {
			got = append(got, step.ID+" "+string(step.Step))
			s.apply(structs.CommandMaintenanceStep, step)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", c.now.Time(), diff)
		}
		running := s.store.Snapshot().Alloc(structs.AllocID("job-j0", 0, 1, 0)).Desired == structs.DesiredRun
		if running != (c.now < hour) {
			t.Errorf("at %s the job on n1 is wanted to run: %v", c.now.Time(), running)
		}
		if s.store.Snapshot().Alloc(structs.AllocID("job-j1", 0, 1, 0)).Desired != structs.DesiredRun {
			t.Errorf("at %s the job on n2 was stopped", c.now.Time())
		}
		if node := s.store.Snapshot().Node("n1"); node.Schedulable() != (c.now < hour || c.now >= 3*hour) {
			t.Errorf("at %s n1 takes work: %v", c.now.Time(), node.Schedulable())
		}
	}
}

// What the settings keep no longer is removed by one command with one event,
// those first that ended first, and never what lives.
func TestEndedJobsAreForgotten(t *testing.T) {
	s := &scripted{t: t, store: state.New(), now: 1}
	for i := range 10 {
		s.submit(fmt.Sprintf("j%d", i), 0)
	}
	for i := range 10 {
		if s.now = structs.UnixNano(100 * (i + 1)); i != 2 {
			s.apply(structs.CommandJobStop, &structs.JobStop{JobID: fmt.Sprintf("job-j%d", 9-i)}) // the newest ends first
		}
	}
	for _, test := range []struct {
		name string
		now  structs.UnixNano
		kept Kept
		want []string
	}{
		{"all are kept", 1e6, Kept{}, nil},
		{"within the bound", 1e6, Kept{Jobs: 9}, nil},
		{"beyond the bound", 1e6, Kept{Jobs: 6}, []string{"job-j9", "job-j8", "job-j6"}},
		{"young enough", 1100, Kept{For: 1000}, nil},
		{"a little too old", 1105, Kept{For: 1000}, nil},
		{"too old", 1300, Kept{For: 1000}, []string{"job-j9", "job-j8"}},
		{"both", 1300, Kept{Jobs: 5, For: 1000}, []string{"job-j9", "job-j8", "job-j6", "job-j5"}},
	} {
		if diff := cmp.Diff(test.want, forgettable(s.store.Snapshot(), test.now, test.kept), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	kept := Kept{Jobs: 6}
	if due := dueForgetting(s.store.Snapshot(), 1e6, kept, wire.ProtocolForget-1); len(due) != 3 || due[0].kind != structs.CommandJobDelete {
		t.Errorf("beside older servers: %+v", due)
	}
	before := s.store.Snapshot().Index()
	due := dueForgetting(s.store.Snapshot(), 1e6, kept, wire.ProtocolVersion)
	if len(due) != 1 {
		t.Fatalf("due: %+v", due)
	}
	due[0].body.(*structs.JobsForget).JobIDs = append(due[0].body.(*structs.JobsForget).JobIDs, "job-j7", "job-gone") // one lives, one is not there
	s.apply(due[0].kind, due[0].body)
	after := s.store.Snapshot()
	events, _, err := after.EventsAfter(structs.CursorAfter(before))
	if err != nil || len(events) != 1 || events[0].ID != "event.cluster.jobs_forgotten_of" || events[0].Params["projects"] != "default 3" || events[0].Params["jobs"] != "3" || events[0].Params["kept"] != "6" {
		t.Errorf("events %+v %v", events, err)
	}
	if after.JobCount() != 7 || after.Forgotten() != 3 {
		t.Errorf("%d jobs are left, %d forgotten", after.JobCount(), after.Forgotten())
	}
	if more := dueForgetting(after, 1e6, kept, wire.ProtocolVersion); len(more) != 0 {
		t.Errorf("still due: %+v", more)
	}
}

// TestOverflow: a project loses only what it has more than others, and the
// quick way takes what one by one does.
func TestOverflow(t *testing.T) {
	flood := slices.Repeat([]string{"flood"}, 100)
	if got := overflow(append([]string{"small", "small"}, flood...), 50); got["small"] != 0 || got["flood"] != 52 {
		t.Errorf("beside a flood: %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		projects := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "b", "c", "c", "c", "c"}), 1, 40).Draw(t, "projects")
		kept := rapid.IntRange(1, len(projects)).Draw(t, "kept")
		want, rest := make(map[string]int), slices.Clone(projects)
		for len(rest) > kept {
			count := make(map[string]int)
			for _, project := range rest {
				count[project]++
			}
			oldest := -1
			for i, project := range rest {
				if oldest < 0 || count[project] > count[rest[oldest]] {
					oldest = i
				}
			}
			want[rest[oldest]]++
			rest = slices.Delete(rest, oldest, oldest+1)
		}
		got := overflow(projects, kept)
		maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(got, want) {
			t.Fatalf("%v, one by one %v", got, want)
		}
	})
}
