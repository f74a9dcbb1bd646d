package state

import (
	"fmt"
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
)

func TestForecastsAreKept(t *testing.T) {
	store, index := New(), uint64(0)
	apply := func(now structs.UnixNano, kind structs.CommandKind, body any) structs.ApplyResult {
		index++
		result := store.Apply(index, encode(kind, now, body))
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		return result
	}
	apply(1, structs.CommandNodeRegister, &structs.NodeRegister{Node: testNode(0)})
	apply(2, structs.CommandJobSubmit, &structs.JobSubmit{Job: testJob("a", 1)})
	apply(2, structs.CommandJobSubmit, &structs.JobSubmit{Job: testJob("b", 1)})
	say := func(now structs.UnixNano, job string) []string {
		return apply(now, structs.CommandForecasts, &structs.Forecasts{Forecasts: []structs.Forecast{{
			JobID: job, Attempt: 1, Point: now + 1, P50: now + 1, P90: now + 2, StartedAt: 7, Revision: 9,
		}}}).Refused
	}
	for i := range ForecastRevisionsMax + 3 {
		say(structs.UnixNano(10+i), "job-a")
	}
	say(40, "job-b")
	if refused := say(41, "job-c"); !slices.Equal(refused, []string{"job-c/0"}) {
		t.Errorf("for a job that is not there, %v is refused", refused)
	}
	before := store.Snapshot()
	apply(50, structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{{
		JobID: "job-a", Attempt: 1,
		Placements: []structs.RankPlacement{{NodeID: "node-0"}},
	}}})
	apply(60, structs.CommandJobStop, &structs.JobStop{JobID: "job-b"})
	apply(61, structs.CommandJobDelete, &structs.JobDelete{JobID: "job-b"})
	if refused := say(62, "job-a"); len(refused) != 1 {
		t.Error("an answer about what has begun is kept")
	}
	after := store.Snapshot()

	given := after.Forecast("job-a", 0, 1)
	if len(given) != ForecastRevisionsMax || given[0].Revision != 0 || given[0].GivenAt != 10 || given[1].Revision != 4 ||
		given[len(given)-1].Revision != ForecastRevisionsMax+2 {
		t.Errorf("of the answers about a, these are kept: %+v", given)
	}
	for _, one := range given {
		if one.StartedAt != 50 || one.Withdrawn || one.JobName != "a" {
			t.Errorf("a began at 50, and revision %d says %+v", one.Revision, one)
		}
	}
	if unended := before.Forecast("job-a", 0, 1); unended[0].StartedAt != 0 {
		t.Error("an older snapshot sees the begin")
	}
	var ended []string
	for at, given := range after.EndedForecasts(before.Index()) {
		ended = append(ended, fmt.Sprintf("%d %s %d %t", at-before.Index(), given[0].JobID, given[0].StartedAt, given[0].Withdrawn))
	}
	if want := []string{"1 job-a 50 false", "2 job-b 0 true"}; !slices.Equal(ended, want) {
		t.Errorf("ended are %q, want %q", ended, want)
	}
	for range after.EndedForecasts(before.Index() + 2) {
		t.Error("what ended before is listed again")
	}
	count := 0
	for range after.Forecasts("job-b") {
		count++
	}
	if count != 1 {
		t.Errorf("%d attempts of the deleted job are known", count)
	}
}

func TestForecastsAreBounded(t *testing.T) {
	store, index := New(), uint64(0)
	const count = 1_000
	for i := range ForecastsKeptMax/count + 3 {
		job := testJob(fmt.Sprintf("j%d", i), 1)
		job.Batch = &structs.Batch{Count: count}
		body := &structs.Forecasts{}
		for k := range count {
			body.Forecasts = append(body.Forecasts, structs.Forecast{JobID: job.ID, Subjob: k, Attempt: 1, Point: 1, P50: 1, P90: 1})
		}
		store.ApplyBatch([]Entry{
			{index + 1, encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: job})},
			{index + 2, encode(structs.CommandForecasts, 1, body)},
		})
		index += 2
	}
	snapshot := store.Snapshot()
	if kept := snapshot.meta().Forecasts; kept != ForecastsKeptMax {
		t.Errorf("%d answers are kept", kept)
	}
	if snapshot.Forecast("job-j2", count-1, 1) != nil || snapshot.Forecast("job-j3", 0, 1) == nil {
		t.Error("not the oldest were dropped")
	}
}

func TestPastRunsAreBounded(t *testing.T) {
	store := New()
	store.ApplyBatch(lives(32, 32))
	if runs := store.Snapshot().PastRuns(0); len(runs) != 32 || runs[31].Outcome != structs.OutcomeSucceeded || runs[31].Runtime <= 0 ||
		runs[31].Waited <= 0 || runs[31].Nodes != 1 || runs[31].User != "ann" {
		t.Fatalf("of 32 lives, %d runs are kept: %+v", len(runs), runs[len(runs)-1])
	}
	tx := store.begin()
	for range PastRunsMax {
		tx.recordRun(testJob("a", 1), &structs.Subjob{}, &structs.Attempt{Outcome: structs.OutcomeLost})
	}
	tx.commit()
	snapshot := store.Snapshot()
	runs := snapshot.PastRuns(0)
	if len(runs) != PastRunsMax || runs[0].Seq != 33 || snapshot.PastRunSeq() != PastRunsMax+32 {
		t.Fatalf("%d runs from %d to %d are kept", len(runs), runs[0].Seq, snapshot.PastRunSeq())
	}
	if rest := snapshot.PastRuns(PastRunsMax + 31); len(rest) != 1 || rest[0].Outcome != structs.OutcomeLost {
		t.Errorf("the newest is %+v", rest)
	}
}
