package notify

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// Whoever sends how often, a robot never gets more than its maker allows, and waits no
// longer than it has to; other robots and channels do not wait for it.
func TestPaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{structs.ChannelDingTalk, structs.ChannelWeCom, structs.ChannelFeishu}).Draw(t, "kind")
		var p Paces
		var sent []structs.UnixNano
		now := noon
		for i := range rapid.IntRange(1, 300).Draw(t, "messages") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "pause")) * time.Millisecond)
			if p.Take(structs.ChannelWebhook, "hook", now) != 0 || p.Take(kind, fmt.Sprint("another", i), now) != 0 {
				t.Fatal("another channel waits")
			}
			wait := p.Take(kind, "robot", now)
			if wait > 0 {
				if early := now.Add(wait - 1); p.Take(kind, "robot", early) == 0 {
					t.Fatalf("it waits %s, and need not", wait)
				}
				if now = now.Add(wait); p.Take(kind, "robot", now) != 0 {
					t.Fatalf("after %s it waits again", wait)
				}
			}
			sent = append(sent, now)
		}
		for _, limit := range paces[kind] {
			for i := limit.most; i < len(sent); i++ {
				if span := sent[i].Sub(sent[i-limit.most]); span < limit.within {
					t.Fatalf("%d messages within %s", limit.most+1, span)
				}
			}
		}
	})
}

// What is merged counts everything that it stands for.
func TestMerged(t *testing.T) {
	one := &structs.Notification{ID: "a", User: "li", Kind: structs.NotifyFailed, Time: 9, Job: "x", Lines: []string{"boom"}}
	if Merged([]*structs.Notification{one}) != one {
		t.Error("one is not itself")
	}
	several := &structs.Notification{ID: "b", User: "li", Kind: structs.NotifyDigest, Time: 5, Counts: map[string]int{structs.NotifyFailed: 7, structs.NotifyExpired: 2}, Names: []string{"y", "x"}}
	got := Merged([]*structs.Notification{one, several})
	if got.Kind != structs.NotifyDigest || got.Counts[structs.NotifyFailed] != 8 || got.Counts[structs.NotifyExpired] != 2 || len(got.Names) != 2 || got.Time != 5 || got.User != "li" || got.ID == "a" || got.ID == "b" {
		t.Errorf("%+v", got)
	}
}
