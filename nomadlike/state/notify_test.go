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
	if mark := store.Snapshot().NotifyMark(); mark != (structs.NotifyMark{Step: 1, Index: 5, Time: 7}) {
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
