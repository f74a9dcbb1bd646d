package agent

import (
	"fmt"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// wide is a job that needs most of the machine's memory for some time.
func wide(t *testing.T, client *api.Client, name, command string, limit time.Duration, more string) string {
	t.Helper()
	nodes, _, err := client.Nodes(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`
job %q {
  time_limit = "%s"
  %s
  resources {
    cpu    = 0.01
    memory = "%dMiB"
  }
  task {
    driver  = "exec"
    command = %q
  }
}
`, name, limit, more, nodes.Nodes[0].Capacity.Memory*2/3>>20, command)
}

// A busy machine: what waits is told when it starts, by the limit of what runs,
// and what would change that.
func TestForecastsOfABusyMachine(t *testing.T) {
	agent, client := devAgent(t)
	now, err := client.ForecastJob(t.Context(), api.JobRequest{HCL: wide(t, client, "big", "sleep 600", 0, "")})
	if err != nil || now.Verdict != outlook.VerdictNow || now.At == 0 || len(now.Specs) != 1 {
		t.Fatalf("on an empty machine: %+v %v", now, err)
	}
	never, err := client.ForecastJob(t.Context(), api.JobRequest{HCL: wide(t, client, "gang", "true", 0, "nodes = 2")})
	if err != nil || never.Verdict != outlook.VerdictNever || never.Wait == nil {
		t.Errorf("two nodes of one: %+v %v", never, err)
	}
	runner := runJob(t, client, wide(t, client, "runner", "sleep 600", time.Hour, ""), structs.JobRunning)
	later, err := client.ForecastJob(t.Context(), api.JobRequest{HCL: wide(t, client, "next", "true", 0, "")})
	if err != nil || later.Verdict != outlook.VerdictLater || later.P50 <= later.At || later.P90 < later.P50 {
		t.Fatalf("on a busy machine: %+v %v", later, err)
	}
	if len(later.Holders) != 1 || later.Holders[0].ID != runner.Job.ID {
		t.Errorf("holders: %+v", later.Holders)
	}
	made, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: wide(t, client, "next", "true", time.Minute, "")}, "")
	if err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "the leader keeps what it foresees", func() bool {
		given, _, err := client.JobForecast(t.Context(), made.JobID, nil)
		return err == nil && len(given.Starts) == 1 && len(given.History) == 1 && len(given.History[0]) >= 1 &&
			given.History[0][0].Features == nil && len(given.Holders) == 1
	})
	helped, err := client.JobHelps(t.Context(), made.JobID)
	if err != nil || len(helped.Starts) != 1 {
		t.Fatalf("helps: %+v %v", helped, err)
	}
	for _, help := range helped.Helps { // of the job itself, not of another behind it
		if help.P50 >= helped.Starts[0].P50 {
			t.Errorf("%s is no sooner than %v: %v", help.ID, helped.Starts[0].P50.Time(), help.P50.Time())
		}
	}
	detail, _, err := client.Job(t.Context(), made.JobID, nil)
	if err != nil || len(detail.Holders) != 1 || detail.Holders[0].Name != "runner" || detail.Holders[0].Idle != "" {
		t.Errorf("holders of the job: %+v %v", detail, err)
	}
	queue, _, err := client.QueueOf(t.Context(), api.QueueFilter{Forecast: true}, nil)
	if err != nil || len(queue.Entries) != 1 || queue.Entries[0].Forecast == nil || queue.Entries[0].Forecast.Verdict != outlook.VerdictLater {
		t.Errorf("queue: %+v %v", queue, err)
	}
	all, err := client.QueueForecast(t.Context())
	if err != nil || len(all.Starts) != 1 || all.Starts[0].JobID != made.JobID || all.Starts[0].Position != 1 {
		t.Errorf("queue forecast: %+v %v", all, err)
	}
	timeline, err := client.Timeline(t.Context(), 3*time.Hour, "")
	if err != nil || len(timeline.Rows) != 1 || len(timeline.Rows[0].Bars) < 2 || timeline.Rows[0].Bars[0].JobName != "runner" {
		t.Errorf("timeline: %+v %v", timeline, err)
	}
	effect, err := client.WhatIf(t.Context(), []outlook.Change{{Kind: outlook.ChangeStop, JobID: "runner"}})
	if err != nil || effect.Earlier != 1 || len(effect.Shifts) != 1 || effect.Shifts[0].JobName != "next" || effect.Shifts[0].After.Verdict != outlook.VerdictNow {
		t.Errorf("what if: %+v %v", effect, err)
	}
	effect, err = client.WhatIf(t.Context(), []outlook.Change{{Kind: outlook.ChangeAddNodes, Node: agent.config.Name, Count: 1}})
	if err != nil || effect.Earlier != 1 {
		t.Errorf("what if there were another node: %+v %v", effect, err)
	}
	for id, changes := range map[string][]outlook.Change{
		"nothing":   nil,
		"no job":    {{Kind: outlook.ChangeStop, JobID: "nobody"}},
		"no node":   {{Kind: outlook.ChangeDrain, Node: "nowhere"}},
		"gibberish": {{Kind: "dance"}},
	} {
		if _, err := client.WhatIf(t.Context(), changes); structs.CodeOf(err) != structs.CodeInvalid && structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := client.StopJob(t.Context(), runner.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, made.JobID, structs.JobSucceeded)
	accuracy, err := client.Accuracy(t.Context())
	if err != nil || accuracy.All.N != 1 || accuracy.Pools[structs.PoolDefault].N != 1 {
		t.Errorf("accuracy: %+v %v", accuracy, err)
	}
}

// Whoever had to yield is told to whom, and a VIP job is for those who may.
func TestWhoeverYieldedIsToldToWhom(t *testing.T) {
	agent, client := devAgent(t)
	victim := runJob(t, client, wide(t, client, "victim", "sleep 600", 0, "preemptible = true"), structs.JobRunning)
	killer := runJob(t, client, wide(t, client, "killer", "sleep 600", 0, `priority = "urgent"`), structs.JobRunning)
	detail, _, err := client.Job(t.Context(), victim.Job.ID, nil)
	if err != nil || len(detail.Yielded) != 1 || detail.Yielded[0].To.ID != killer.Job.ID || detail.Yielded[0].To.Name != "killer" || detail.Yielded[0].Attempt != 1 {
		t.Errorf("the victim: %+v %v", detail, err)
	}
	vip := wide(t, client, "chosen", "sleep 600", 0, fmt.Sprintf(`
  vip {
    machine %q { busy = "kill" }
  }`, agent.config.Name))
	user := clientAs(t, client, "user", "default", "ann")
	if _, err := user.SubmitJob(t.Context(), api.JobRequest{HCL: vip}, ""); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a user chooses machines: %v", err)
	}
	operator := clientAs(t, client, "operator", "", "olga")
	if _, err := operator.SubmitJob(t.Context(), api.JobRequest{HCL: wide(t, client, "plain", "true", 0, "")}, ""); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("an operator submits: %v", err)
	}
	told, err := operator.ForecastJob(t.Context(), api.JobRequest{HCL: vip})
	if err != nil || len(told.Victims) != 1 || told.Victims[0].JobName != "killer" {
		t.Errorf("victims beforehand: %+v %v", told, err)
	}
	chosen := runJob(t, operator, vip, structs.JobRunning)
	detail, _, err = client.Job(t.Context(), killer.Job.ID, nil)
	if err != nil || len(detail.Yielded) != 1 || detail.Yielded[0].To.ID != chosen.Job.ID || !detail.Yielded[0].To.VIP || detail.Yielded[0].To.User != "olga" {
		t.Errorf("the killer, killed: %+v %v", detail, err)
	}
}
