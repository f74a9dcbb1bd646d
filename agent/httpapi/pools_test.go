package httpapi

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func TestPoolsHaveRecordsAndNodes(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	operator := h.as("operator", "", "olga")
	pools, meta, err := client.Pools(t.Context(), nil)
	if err != nil || len(pools.Pools) != 1 || pools.Pools[0].Pool.Name != structs.PoolDefault || pools.Pools[0].Defined || pools.Pools[0].Nodes != 1 {
		t.Fatalf("at first: %+v %v", pools, err)
	}
	pool := &structs.Pool{Name: "a800", Nodes: []string{"machine-1"}, Defaults: structs.PoolDefaults{TimeLimit: structs.Duration(time.Hour)}}
	if _, err := operator.PutPool(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pools, _, err = client.Pools(t.Context(), &api.Query{Index: meta.Index})
	if err != nil || len(pools.Pools) != 1 || pools.Pools[0].Pool.Name != "a800" || pools.Pools[0].Ready != 1 || pools.Pools[0].CPU <= 0 || pools.Pools[0].Members != nil {
		t.Errorf("with a record: %+v %v", pools, err)
	}
	// What a pool allows at most is for administrators to say.
	pool.Ceilings.Nodes = 4
	if _, err := operator.PutPool(t.Context(), pool); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("an operator raises ceilings: %v", err)
	}
	if _, err := client.PutPool(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pool.Description = "with the new switches"
	if _, err := operator.PutPool(t.Context(), pool); err != nil {
		t.Errorf("an operator leaves ceilings as they are: %v", err)
	}
	pool.Raw = true
	if _, err := operator.PutPool(t.Context(), pool); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("an operator lets processes run without isolation: %v", err)
	}
	detail, _, err := operator.Pool(t.Context(), "a800", nil)
	if err != nil || detail.Pool.Ceilings.Nodes != 4 || len(detail.Members) != 1 || detail.Members[0] != "machine-1" {
		t.Errorf("one pool: %+v %v", detail, err)
	}
	// Who names no pool waits for those that could hold it, which default cannot.
	if _, err := client.CordonNode(t.Context(), "machine-1"); err != nil {
		t.Fatal(err)
	}
	for name, hcl := range map[string]string{"any": hello("true"), "huge": strings.Replace(hello("true"), "cpu    = 0.1", "cpu    = 4000", 1)} {
		if _, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: strings.Replace(hcl, `"hello"`, `"`+name+`"`, 1)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	for pool, want := range map[string]string{"a800": "any", structs.PoolDefault: "huge", "nowhere": ""} {
		queue, _, err := client.QueueOf(t.Context(), api.QueueFilter{Pool: pool}, nil)
		names := ""
		for i := range queue.Entries {
			names += queue.Entries[i].JobName
		}
		if err != nil || names != want {
			t.Errorf("for pool %s waits %q, want %q: %v", pool, names, want, err)
		}
	}
	if detail, _, err = operator.Pool(t.Context(), "a800", nil); err != nil || detail.Queued != 1 {
		t.Errorf("what waits for the pool: %+v %v", detail, err)
	}
	if _, _, err := client.Pool(t.Context(), "nowhere", nil); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("an unknown pool: %v", err)
	}
	if _, err := client.PutPool(t.Context(), &structs.Pool{Name: "x", HalfLife: -1}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a malformed pool: %v", err)
	}
	if _, err := operator.DeletePool(t.Context(), "a800"); err != nil {
		t.Error(err)
	}
}

func TestProjectsAreChangedByTheirAdministratorsWithinBounds(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	pat := h.as("project-admin", "vision", "pat")
	two := 2
	record := structs.Project{Name: "vision", UrgentLimit: &two, Quotas: []structs.Quota{{Kind: structs.QuotaCPU, Guaranteed: 1, Maximum: &two}}}
	if _, err := pat.PutProject(t.Context(), &record); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a project sets its own quota: %v", err)
	}
	if _, err := client.PutProject(t.Context(), &record); err != nil {
		t.Fatal(err)
	}
	record.Members, record.Description = []string{"pat", "li"}, "cats and dogs"
	if _, err := pat.PutProject(t.Context(), &record); err != nil {
		t.Errorf("a project changes its members: %v", err)
	}
	job := h.start(client, sleeper("nap", "vision", "none"))
	detail, _, err := pat.Project(t.Context(), "vision", nil)
	if err != nil || len(detail.Project.Members) != 2 || len(detail.Quotas) != 1 || detail.Quotas[0].Held != 0.1 || !detail.Defined {
		t.Errorf("project: %+v %v", detail, err)
	}
	list, _, err := h.as("user", "speech", "eve").Projects(t.Context(), nil)
	if err != nil || len(list.Projects) != 0 {
		t.Errorf("another project's list: %+v %v", list, err)
	}
	if _, err := client.DeleteProject(t.Context(), "vision"); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a project with a live job is deleted: %v", err)
	}
	if _, err := client.StopJob(t.Context(), job, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	h.replica.SetNow(h.replica.Now().Add(time.Hour))
	h.report(job, structs.AllocKilled)
	detail, _, err = client.Project(t.Context(), "vision", nil)
	if err != nil || len(detail.Shares) != 1 || detail.Shares[0].Rank != 1 || detail.Shares[0].Recent <= 0 || detail.Shares[0].Fair {
		t.Errorf("what it used: %+v %v", detail, err)
	}
	if _, err := client.DeleteProject(t.Context(), "vision"); err != nil {
		t.Error(err)
	}
}

func TestQueueIsMovedAndFiltered(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	if _, err := client.CordonNode(t.Context(), "machine-1"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		hcl := strings.Replace(hello("true"), `"hello"`, `"`+name+`"`, 1)
		if _, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: hcl}, ""); err != nil {
			t.Fatal(err)
		}
	}
	order := func() string {
		queue, _, err := client.Queue(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range queue.Entries {
			names = append(names, entry.JobName)
		}
		return strings.Join(names, "")
	}
	for _, move := range []struct {
		job  string
		to   api.QueueMoveRequest
		want string
	}{
		{"c", api.QueueMoveRequest{}, "cab"},
		{"b", api.QueueMoveRequest{Before: "a"}, "cba"},
		{"c", api.QueueMoveRequest{Last: true}, "bac"},
	} {
		if _, err := client.MoveJob(t.Context(), move.job, move.to); err != nil {
			t.Fatal(err)
		}
		if got := order(); got != move.want {
			t.Errorf("after %s is moved to %+v: %s, want %s", move.job, move.to, got, move.want)
		}
	}
	if _, err := client.MoveJob(t.Context(), "a", api.QueueMoveRequest{Before: "nobody"}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("before a job that is not there: %v", err)
	}
	if _, err := client.MoveJob(t.Context(), "a", api.QueueMoveRequest{Before: "b", Last: true}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("before and last: %v", err)
	}
	// Fair share is the scheduler's to order.
	if _, err := client.PutPool(t.Context(), &structs.Pool{Name: structs.PoolDefault, Order: structs.OrderFair}); err != nil {
		t.Fatal(err)
	}
	if got := order(); got != "bac" {
		t.Errorf("by fair share: %s", got)
	}
	for filter, want := range map[api.QueueFilter]int{{Pool: structs.PoolDefault}: 3, {Pool: "a800"}: 0, {Project: "default"}: 3, {Project: "x"}: 0} {
		queue, _, err := client.QueueOf(t.Context(), filter, nil)
		if err != nil || len(queue.Entries) != want {
			t.Errorf("%+v: %+v %v", filter, queue, err)
		}
	}
}

func TestMachinesShowWhatRunsOnThem(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	machines, _, err := client.Machines(t.Context(), "", nil)
	if err != nil || len(machines.Machines) != 1 || !machines.Machines[0].Free {
		t.Fatalf("an empty machine: %+v %v", machines, err)
	}
	job := h.start(client, sleeper("nap", "vision", "none"))
	machines, _, err = client.Machines(t.Context(), structs.PoolDefault, nil)
	if err != nil || machines.Machines[0].Free || len(machines.Machines[0].Work) != 1 || machines.Machines[0].Work[0].Job.ID != job {
		t.Errorf("a busy machine: %+v %v", machines, err)
	}
	h.report(job, structs.AllocRunning)
	h.replica.SetNow(h.replica.Now().Add(time.Hour))
	h.node("machine-2", 8) // later, and free
	machines, _, err = client.Machines(t.Context(), "", nil)
	if err != nil || len(machines.Machines) != 2 || machines.Machines[0].Name != "machine-2" {
		t.Fatalf("free ones first: %+v %v", machines, err)
	}
	work := machines.Machines[1].Work[0]
	if hour := structs.Duration(time.Hour); work.RunningAt == 0 || work.Lost != hour || machines.Machines[1].Cost != hour {
		t.Errorf("it has worked for an hour without a checkpoint: %+v, cost %v", work, machines.Machines[1].Cost)
	}
	stranger := h.as("user", "speech", "eve")
	machines, _, err = stranger.Machines(t.Context(), "", nil)
	if err != nil || len(machines.Machines[1].Work) != 1 || machines.Machines[1].Work[0].Job != (api.JobRef{}) {
		t.Errorf("as a stranger: %+v %v", machines, err)
	}
	if machines, _, err = client.Machines(t.Context(), "elsewhere", nil); err != nil || len(machines.Machines) != 0 {
		t.Errorf("of another pool: %+v %v", machines, err)
	}
}

// What ends cheapest comes first, and what a VIP job has comes last.
func TestMachinesByCost(t *testing.T) {
	hour := structs.Duration(time.Hour)
	machine := func(name string, work ...api.MachineWork) api.Machine {
		return api.Machine{Name: name, Free: len(work) == 0, Work: work, Cost: costOf(work)}
	}
	machines := []api.Machine{
		machine("vip", api.MachineWork{VIP: true}),
		machine("eight cards for an hour", api.MachineWork{Devices: 8, GangDevices: 8, Lost: hour}),
		machine("one of sixteen cards for an hour", api.MachineWork{Devices: 1, GangDevices: 16, Lost: hour}),
		machine("saved just now, many cards", api.MachineWork{Devices: 8, GangDevices: 8}),
		machine("saved just now", api.MachineWork{Devices: 1, GangDevices: 1}),
		machine("ends anyway", api.MachineWork{Devices: 4, GangDevices: 8, Lost: hour, Ending: true}),
		machine("free"),
		machine("no cards, two hours", api.MachineWork{Lost: 2 * hour}),
	}
	slices.SortFunc(machines, byCost)
	want := []string{
		"free", "saved just now", "ends anyway", "saved just now, many cards", "no cards, two hours", "eight cards for an hour",
		"one of sixteen cards for an hour", "vip",
	}
	for i, m := range machines {
		if m.Name != want[i] {
			t.Errorf("place %d: %s, want %s", i, m.Name, want[i])
		}
	}
}
