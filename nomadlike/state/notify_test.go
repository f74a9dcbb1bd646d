package state

import (
	"bytes"
	"fmt"
	"testing"

	"nomadlike/nomadlike/structs"
)

// What people chose and were told is stored, bounded, decided by one leader alone, and
// goes with the account.
func TestNotificationsInTheState(t *testing.T) {
	store := New()
	now := structs.UnixNano(1)
	apply := func(kind structs.CommandKind, body any, want string) {
		t.Helper()
		now++
		result, got := store.Apply(store.Snapshot().Index()+1, encode(kind, now, body)), ""
		if result.Err != nil {
			got = result.Err.ID
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", body, got, want)
		}
	}
	apply(structs.CommandUserPut, &structs.UserPut{User: structs.User{Name: "li"}}, "")
	if at := store.Snapshot().NotifySettings("li"); at.Rule(structs.NotifyFailed) == nil || at.Rule(structs.NotifySucceeded) != nil || at.ModifyIndex != 0 {
		t.Errorf("by default %+v", at)
	}
	if at := store.Snapshot().NotifySettings("nobody"); at != nil {
		t.Errorf("nobody is told %+v", at)
	}
	set := structs.NotifySettings{
		User: "li", Channels: []structs.NotifyChannel{{Name: "team", Kind: structs.ChannelWebhook, Host: "h"}},
		On: []structs.NotifyRule{{Kind: structs.NotifyFailed, Channels: []string{"bell", "team"}}, {Kind: structs.NotifySucceeded, Channels: []string{"team"}}},
	}
	apply(structs.CommandNotifySet, &structs.NotifySet{Settings: &set, Before: 9}, "state.notify_changed")
	apply(structs.CommandNotifySet, &structs.NotifySet{Settings: &set}, "")
	at := store.Snapshot().NotifySettings("li")
	if at.On[0].Since != 2 || at.On[1].Since != now { // what was on by default goes on
		t.Errorf("%+v", at.On)
	}
	apply(structs.CommandNotifySet, &structs.NotifySet{Settings: &set}, "state.notify_changed")
	bad := set
	bad.On = []structs.NotifyRule{{Kind: structs.NotifyFailed, Channels: []string{"pigeon"}}}
	apply(structs.CommandNotifySet, &structs.NotifySet{Settings: &bad, Before: at.ModifyIndex}, "state.notify_malformed")

	message := func(id string, step int) structs.Notification {
		return structs.Notification{
			ID: id, User: "li", Kind: structs.NotifyFailed, Time: now, Bell: true, Job: fmt.Sprint("n", step),
			Deliveries: []structs.NotifyDelivery{{Channel: "team", NextAt: structs.UnixNano(1000 + step)}},
		}
	}
	apply(structs.CommandNotifyStep, &structs.NotifyStep{Before: 0, Index: 5, Time: 7, Made: []structs.Notification{message("m0", 0)}}, "")
	apply(structs.CommandNotifyStep, &structs.NotifyStep{Before: 0, Index: 6, Made: []structs.Notification{message("twice", 0)}}, "state.notify_passed")
	if mark := store.Snapshot().NotifyMark(); mark.Step != 1 || mark.Index != 5 || mark.Place != 0 || mark.Time != 7 || mark.Holds != nil {
		t.Errorf("mark %+v", mark)
	}
	if due := store.Snapshot().DueNotifications(999, 10); len(due) != 0 {
		t.Errorf("due too early: %+v", due)
	}
	if due := store.Snapshot().DueNotifications(1000, 10); len(due) != 1 || due[0].ID != "m0" {
		t.Errorf("due %+v", due)
	}
	// A result counts whoever decided meanwhile, once; one of something unknown is none.
	sent := structs.NotifySettled{User: "li", ID: "m0", Delivery: structs.NotifyDelivery{Channel: "team", Tries: 1, SentAt: 50}}
	late := structs.NotifySettled{User: "li", ID: "m0", Delivery: structs.NotifyDelivery{Channel: "team", Tries: 1, NextAt: 60, Problem: "HTTP 500"}}
	apply(structs.CommandNotifyStep, &structs.NotifyStep{Before: 77, Settled: []structs.NotifySettled{sent, late, {User: "mo", ID: "m0"}}}, "")
	if n := store.Snapshot().Notification("li", "m0"); n.Deliveries[0].SentAt != 50 || n.Due() != 0 {
		t.Errorf("%+v", n)
	}
	for step := 1; step <= structs.NotifyKeptPerUser+5; step++ {
		apply(structs.CommandNotifyStep, &structs.NotifyStep{Before: uint64(step), Index: uint64(5 + step), Made: []structs.Notification{message(fmt.Sprint("m", step), step)}}, "")
	}
	snapshot := store.Snapshot()
	list := snapshot.Notifications("li")
	if len(list) != structs.NotifyKeptPerUser || list[0].ID != fmt.Sprint("m", structs.NotifyKeptPerUser+5) || snapshot.meta().Notifications != len(list) {
		t.Errorf("%d messages kept, the newest %s, counted %d", len(list), list[0].ID, snapshot.meta().Notifications)
	}
	apply(structs.CommandNotifySet, &structs.NotifySet{User: "li", Seen: list[0].MadeIndex}, "")
	apply(structs.CommandNotifySet, &structs.NotifySet{User: "li", Seen: 1}, "")
	apply(structs.CommandNotifySet, &structs.NotifySet{User: "li", Seen: 1 << 40}, "state.notify_malformed")
	if seen := store.Snapshot().NotifySettings("li"); seen.Seen != list[0].MadeIndex || seen.ModifyIndex != at.ModifyIndex {
		t.Errorf("%+v", seen)
	}
	huge := message("huge", 0)
	huge.Params = map[string]string{"x": string(make([]byte, notificationSizeMax))}
	apply(structs.CommandNotifyStep, &structs.NotifyStep{Before: 106, Index: 200, Made: []structs.Notification{huge}}, "state.notify_malformed")

	var stored bytes.Buffer
	if err := store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&stored); err != nil || again.Snapshot().Hash() != store.Snapshot().Hash() || len(again.Snapshot().Notifications("li")) != len(list) {
		t.Errorf("restored: %v", err)
	}
	apply(structs.CommandUserState, &structs.UserState{Name: "li", Disabled: true}, "")
	if at := store.Snapshot().NotifySettings("li"); at != nil {
		t.Errorf("a disabled account is told %+v", at)
	}
	apply(structs.CommandUserDelete, &structs.UserDelete{Name: "li"}, "")
	if left := store.Snapshot(); len(left.Notifications("li")) != 0 || left.NotifySettings("li") != nil || left.meta().Notifications != 0 {
		t.Errorf("after the account: %+v", left.Notifications("li"))
	}
}

// What holds and was told is kept with the mark, in the oldest format that has the mark,
// by one leader alone; keys are bounded, and so is how many hold.
func TestConditionsInTheState(t *testing.T) {
	store := New()
	now := structs.UnixNano(1)
	apply := func(body *structs.NotifyStep, want string) {
		t.Helper()
		now++
		result, got := store.Apply(store.Snapshot().Index()+1, encode(structs.CommandNotifyStep, now, body)), ""
		if result.Err != nil {
			got = result.Err.ID
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", body, got, want)
		}
	}
	apply(&structs.NotifyStep{Before: 0, Index: 5, Raised: []string{"quorum", "quota/1"}}, "")
	apply(&structs.NotifyStep{Before: 0, Index: 5, Raised: []string{"quota/2"}}, "state.notify_passed")
	apply(&structs.NotifyStep{Before: 1, Index: 5, Raised: []string{"quota 2"}}, "state.notify_malformed")
	apply(&structs.NotifyStep{Before: 1, Index: 5, Raised: make([]string, structs.NotifyRaisedMax+1)}, "state.notify_malformed")
	before := store.Snapshot()
	if holds := before.NotifyMark().Holds; len(holds) != 2 || holds["quorum"] != 2 || holds["quota/1"] != 2 {
		t.Errorf("hold: %v", holds)
	}
	if got := before.formatOf(); got != 6 {
		t.Errorf("stored in format %d", got)
	}
	var stored bytes.Buffer
	if err := before.Persist(&stored); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&stored); err != nil {
		t.Fatal(err)
	}
	if holds := again.Snapshot().NotifyMark().Holds; len(holds) != 2 || holds["quota/1"] != 2 {
		t.Errorf("after a restore: %v", holds)
	}
	// A decision about other things leaves them; one raised again keeps its time.
	apply(&structs.NotifyStep{Before: 1, Index: 6}, "")
	apply(&structs.NotifyStep{Before: 2, Index: 6, Raised: []string{"quorum"}, Cleared: []string{"quota/1", "nothing"}}, "")
	if holds := store.Snapshot().NotifyMark().Holds; len(holds) != 1 || holds["quorum"] != 2 {
		t.Errorf("hold: %v", holds)
	}
	if holds := before.NotifyMark().Holds; len(holds) != 2 {
		t.Errorf("an older snapshot changed: %v", holds)
	}
	apply(&structs.NotifyStep{Before: 3, Index: 6, Cleared: []string{"quorum"}}, "")
	if holds := store.Snapshot().NotifyMark().Holds; holds != nil {
		t.Errorf("hold: %v", holds)
	}
	step := uint64(4)
	for ; step < 4+structs.NotifyHoldsMax/structs.NotifyRaisedMax+1; step++ {
		var keys []string
		for i := range structs.NotifyRaisedMax {
			keys = append(keys, fmt.Sprintf("quota/%d/%d", step, i))
		}
		apply(&structs.NotifyStep{Before: step, Index: 6, Raised: keys}, "")
	}
	if holds := store.Snapshot().NotifyMark().Holds; len(holds) != structs.NotifyHoldsMax {
		t.Errorf("%d hold", len(holds))
	}
}
