package httpapi

import (
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// A job whose cards all have nothing to do is shown to whoever waits for them; one at
// work is enough for it not to be.
func TestHoldersThatUseNothing(t *testing.T) {
	store, index, now := state.New(), uint64(0), structs.At(time.Unix(1e9, 0))
	apply := func(kind structs.CommandKind, body any) {
		t.Helper()
		command, err := wire.EncodeCommand(kind, now, "tester", body)
		if err != nil {
			t.Fatal(err)
		}
		index++
		if result := store.Apply(index, command); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	gang := structs.GangPlan{JobID: "job", Attempt: 1}
	for _, name := range []string{"a", "b"} {
		apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{
			ID: name, Name: name, Status: structs.NodeReady, Drivers: []string{"exec"},
			Capacity: structs.Capacity{CPU: 4, Memory: 1 << 30, PortMin: 20000, PortMax: 20100}, Devices: []structs.Device{{ID: "d", Kind: "nvidia/gpu", Healthy: true}},
		}})
		gang.Placements = append(gang.Placements, structs.RankPlacement{NodeID: name, Devices: []string{"d"}})
	}
	apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: &structs.Job{
		ID: "job", Name: "job", Project: "p", Type: structs.JobTypeTraining, Nodes: 2, TimeLimit: structs.Duration(time.Hour),
		Distributed: structs.Distributed{Mode: structs.ModeNone}, Task: structs.Task{Driver: "exec", Command: "true"},
		Resources: []structs.Resources{{CPU: 1, Memory: 1 << 20, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 1}}}},
	}})
	apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{gang}})
	report := func(status structs.AllocStatus) {
		for rank, node := range []string{"a", "b"} {
			apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: node, Reports: []structs.AllocReport{
				{AllocID: structs.AllocID("job", 0, 1, rank), Attempt: 1, Status: status, StartedAt: now},
			}})
		}
	}
	seq := uint64(0)
	rests := func(rank int, since structs.UnixNano) {
		seq++
		apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: []string{"a", "b"}[rank], Notes: []structs.AllocNote{
			{AllocID: structs.AllocID("job", 0, 1, rank), Attempt: 1, Seq: seq, Idle: &structs.IdleNote{Since: since}},
		}})
	}
	want := func(when, idle string) {
		t.Helper()
		if got := idleOf(store.Snapshot(), "job"); got != idle {
			t.Errorf("%s it is %q, want %q", when, got, idle)
		}
	}
	report(structs.AllocPrepared)
	report(structs.AllocRunning)
	want("while it runs", "")
	rests(0, now.Add(-2*time.Minute))
	want("with one idle rank", "")
	rests(1, now.Add(-time.Minute))
	want("with idle ranks", api.IdleCards)
	listed := api.JobSummary{JobStatus: api.JobStatus{State: structs.JobRunning}}
	view, _ := store.Snapshot().Job("job")
	addUnused(store.Snapshot(), view.Job, &listed)
	if listed.Idle != api.IdleCards || listed.IdleSince != now.Add(-time.Minute) || listed.LimitAt != now.Add(time.Hour) || listed.HeldUntil != 0 {
		t.Errorf("in a list: %+v", listed)
	}
	rests(0, 0)
	want("with a rank at work again", "")
}
