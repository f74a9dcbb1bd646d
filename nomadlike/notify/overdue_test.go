package notify

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// What only time brings about is told when it is due, once, to those who chose it before.
func TestOverdue(t *testing.T) {
	w := newWorld()
	li := w.person("li", structs.NotifyWaiting, structs.NotifyExpiring)
	li.WaitLonger, li.ExpireIn = structs.Duration(2*time.Hour), structs.Duration(10*time.Minute)
	w.person("mo", structs.NotifyFailed)
	for id, user := range map[string]string{"q": "li", "r": "li", "short": "li", "other": "mo"} {
		w.job(id, user)
		w.jobs[id].TimeLimit = structs.Duration(time.Hour)
	}
	w.jobs["short"].TimeLimit = structs.Duration(5 * time.Minute)
	w.queued["q"], w.queued["other"] = noon, noon
	w.limits["r"], w.limits["short"] = noon.Add(time.Hour), noon.Add(4*time.Minute)
	var waits Waits
	for id := range w.jobs {
		for _, kind := range []string{structs.NotifyWaiting, structs.NotifyExpiring} {
			waits.Add(WaitFor(w, kind, id))
			waits.Add(WaitFor(w, kind, id)) // as from two events
		}
	}
	if waits.Len() != 2 {
		t.Fatalf("%d waits", waits.Len())
	}
	if due := waits.Due(noon.Add(50*time.Minute - 1)); len(due) != 0 {
		t.Errorf("too early: %+v", due)
	}
	now := noon.Add(50 * time.Minute)
	due := waits.Due(now)
	step, again := Overdue(w, structs.NotifyMark{Step: 1, Index: 9, Place: 2}, due, now)
	if len(step.Made) != 1 || len(again) != 0 || step.Made[0].Kind != structs.NotifyExpiring || step.Made[0].JobID != "r" || step.Index != 9 || step.Place != 2 || step.Time != now {
		t.Fatalf("%+v, %+v", step, again)
	}
	// Another leader finds it again, and the mark says that it was told.
	if twice, _ := Overdue(w, structs.NotifyMark{Step: 2, Index: 9, Time: now}, due, now); len(twice.Made) != 0 {
		t.Errorf("told twice: %+v", twice.Made)
	}
	// A limit that was put off is waited for again.
	w.limits["r"] = noon.Add(3 * time.Hour)
	if none, again := Overdue(w, structs.NotifyMark{}, due, now); len(none.Made) != 0 || len(again) != 1 || again[0].Due != noon.Add(170*time.Minute) {
		t.Errorf("%+v, %+v", none.Made, again)
	}
	// A job that started meanwhile is not told of; whoever chose it late neither.
	later := noon.Add(2 * time.Hour)
	due = waits.Due(later)
	li.On[0].Since = later + 1
	if none, _ := Overdue(w, structs.NotifyMark{}, due, later); len(due) != 1 || len(none.Made) != 0 {
		t.Errorf("%+v, %+v", due, none.Made)
	}
	li.On[0].Since = 0
	delete(w.queued, "q")
	if none, again := Overdue(w, structs.NotifyMark{}, due, later); len(none.Made) != 0 || len(again) != 0 {
		t.Errorf("%+v, %+v", none.Made, again)
	}
}

// Waits come out when they are due, those that were put off at their last time alone.
func TestWaitsComeInTheirTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var waits Waits
		want := map[string]structs.UnixNano{}
		for range rapid.IntRange(0, 50).Draw(t, "adds") {
			job := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "job")
			at := structs.UnixNano(rapid.IntRange(1, 100).Draw(t, "due"))
			waits.Add(&Wait{Kind: structs.NotifyWaiting, JobID: job, Due: at})
			want[job] = at
		}
		for now := structs.UnixNano(0); now <= 100; now += 7 {
			for _, wait := range waits.Due(now) {
				if want[wait.JobID] != wait.Due || wait.Due > now || wait.Due <= now-7 && now > 7 {
					t.Fatalf("%+v at %d, want %v", wait, now, want)
				}
				delete(want, wait.JobID)
			}
		}
		for _, wait := range waits.Due(101) {
			delete(want, wait.JobID)
		}
		if len(want) != 0 || waits.Len() != 0 {
			t.Fatalf("%v never came", want)
		}
	})
}
