package notify

import (
	"slices"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// What a job says is told beside what its owner chose, at a channel of theirs, once; where
// they have no such channel, at the bell.
func TestAJobSaysWhereItIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		chosen []string // kinds, at the bell and at team
		notify *structs.JobNotify
		bell   bool
		sent   []string
	}{
		{"nothing", nil, nil, false, nil},
		{"the person's choice", []string{structs.NotifyFailed}, nil, true, []string{"team"}},
		{"the job's", nil, &structs.JobNotify{On: []string{structs.NotifyFailed}, To: "hook"}, false, []string{"hook"}},
		{"both", []string{structs.NotifyFailed}, &structs.JobNotify{On: []string{structs.NotifyFailed}, To: "hook"}, true, []string{"team", "hook"}},
		{"the same", []string{structs.NotifyFailed}, &structs.JobNotify{On: []string{structs.NotifyFailed}, To: "team"}, true, []string{"team"}},
		{"another kind", nil, &structs.JobNotify{On: []string{structs.NotifySucceeded}, To: "hook"}, false, nil},
		{"the bell", nil, &structs.JobNotify{On: []string{structs.NotifyFailed}, To: structs.ChannelBell}, true, nil},
		{"a channel that is gone", nil, &structs.JobNotify{On: []string{structs.NotifyFailed}, To: "gone"}, true, nil},
	} {
		w := newWorld()
		li := w.person("li", c.chosen...)
		li.Channels = append(li.Channels, structs.NotifyChannel{Name: "hook", Kind: structs.ChannelWebhook})
		w.job("j", "li")
		w.jobs["j"].Notify = c.notify
		step, _ := Decide(w, structs.NotifyMark{}, []*structs.Event{failed(1, "j")}, 1, noon)
		var sent []string
		bell := false
		for _, n := range step.Made {
			bell = bell || n.Bell
			for _, d := range n.Deliveries {
				sent = append(sent, d.Channel)
			}
		}
		if len(step.Made) > 1 || bell != c.bell || !slices.Equal(sent, c.sent) {
			t.Errorf("%s: %d messages, bell %v, sent to %v", c.name, len(step.Made), bell, sent)
		}
	}
	// What only time brings about, too: the person chose none of it.
	w := newWorld()
	w.person("li")
	w.job("q", "li")
	w.jobs["q"].Notify = &structs.JobNotify{On: []string{structs.NotifyWaiting}, To: "team"}
	w.queued["q"] = noon
	wait := WaitFor(w, structs.NotifyWaiting, "q")
	if wait == nil || wait.Due != noon.Add(time.Hour) || WaitFor(w, structs.NotifyExpiring, "q") != nil {
		t.Fatalf("waits for %+v", wait)
	}
	if step, _ := Overdue(w, structs.NotifyMark{}, []Wait{*wait}, wait.Due); len(step.Made) != 1 || len(step.Made[0].Deliveries) != 1 || step.Made[0].Bell {
		t.Errorf("%+v", step.Made)
	}
}
