package forecast

import (
	"testing"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

func TestQueueOfALine(t *testing.T) {
	d := newDrive(scheduler.Settings{}, 1, 8)
	d.submit(testJob("a", 1, 8, 2*time.Hour))
	d.pass()
	d.submit(testJob("b", 1, 8, time.Hour))
	d.submit(testJob("c", 1, 8, time.Hour))
	d.submit(testJob("d", 1, 9, time.Hour))
	starts := Queue(Input{Board: d.ready(scheduler.Settings{})}, start, 1)
	want := []When{
		{Verdict: VerdictLater, Point: start.Add(2 * time.Hour), P50: start.Add(2 * time.Hour), P90: start.Add(2 * time.Hour)},
		{Verdict: VerdictLater, Point: start.Add(3 * time.Hour), P50: start.Add(3 * time.Hour), P90: start.Add(3 * time.Hour)},
		{Verdict: VerdictNever},
	}
	for i, s := range starts {
		if s.When != want[i] {
			t.Errorf("%s: %+v, want %+v", s.JobID, s.When, want[i])
		}
		if s.Wait == nil {
			t.Errorf("%s has no reason", s.JobID)
		}
	}
	answer := Job(Input{Board: d.board}, testJob("e", 1, 4, time.Hour), start, 1)
	if answer.Verdict != VerdictLater || answer.P50 != start.Add(4*time.Hour) || answer.Position != 4 {
		t.Errorf("%+v", answer)
	}
	effect, err := WhatIf(Input{Board: d.board}, []Change{{Kind: ChangeStop, JobID: "b"}}, start, 1)
	if err != nil || effect.Earlier != 1 || effect.Shifts[0].JobID != "c" || effect.Shifts[0].By != -structs.Duration(time.Hour) {
		t.Errorf("%+v %v", effect, err)
	}
	line := TimelineOf(Input{Board: d.board}, start, 0, 1)
	if len(line.Rows) != 1 || len(line.Rows[0].Bars) < 3 {
		t.Errorf("%+v", line)
	}
}
