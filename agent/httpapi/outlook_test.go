package httpapi

import (
	"slices"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The outlook counts everybody's cards and names nobody; what could start is the
// caller's own.
func TestOutlook(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	h.node("machine-2", 8)
	h.start(client, wide("runner", "sleep 600", time.Hour, `project = "vision"`))
	h.start(client, wide("other", "sleep 600", 2*time.Hour, `project = "vision"`))
	h.wait(client, wide("next", "true", 3*time.Hour, `project = "vision"`))
	at := h.replica.Now()
	for _, who := range []*api.Client{client, h.as("user", "speech", "eve")} {
		found, err := who.Outlook(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		now := found.Now
		if !found.Times[now].Time().Equal(at) || found.At != found.Times[now] || len(found.All.Used) != len(found.Times) {
			t.Fatalf("now is %d of %v", now, found.Times)
		}
		in := func(span time.Duration) int { return slices.Index(found.Times, found.At.Add(span)) }
		all := &found.All
		if !all.CountsNodes || all.Total[now] != 2 || all.Used[now] != 2 || all.Foreseen[now] != 0 {
			t.Errorf("now: %d of %d used, %d foreseen", all.Used[now], all.Total[now], all.Foreseen[now])
		}
		if early := in(-time.Hour); all.Total[early] != 0 || all.Used[early] != 0 {
			t.Errorf("before the nodes joined: %d of %d used", all.Used[early], all.Total[early])
		}
		if later := in(2 * time.Hour); all.Used[later] != 0 {
			t.Errorf("when both have reached their limits, %d are used", all.Used[later])
		}
		if slices.Max(all.Used) != 2 || slices.Max(all.Foreseen[:now+1]) != 0 {
			t.Errorf("used: %v, foreseen: %v", all.Used, all.Foreseen)
		}
		if len(found.Pools) != 1 || found.Pools[0].Pool != structs.PoolDefault || !slices.Equal(found.Pools[0].Used, all.Used) {
			t.Errorf("pools: %+v", found.Pools)
		}
		if len(found.CouldStart) != 0 {
			t.Errorf("there is no card: %+v", found.CouldStart)
		}
	}
	if _, err := client.Outlook(t.Context(), "nowhere"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a pool that is not there: %v", err)
	}
	if one, err := client.Outlook(t.Context(), structs.PoolDefault); err != nil || len(one.Pools) != 1 {
		t.Errorf("one pool: %+v %v", one, err)
	}
}
