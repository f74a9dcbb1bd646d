package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// What people hear of an image of 400 MiB that comes in eight seconds, while
// its size is found out.
func TestPullingIsTold(t *testing.T) {
	now := time.Unix(0, 0)
	var told []string
	p := pulling{now: func() time.Time { return now }, begun: now, progress: func(percent int) {
		told = append(told, fmt.Sprintf("%ds image %d%%", now.Unix(), percent))
	}, tell: func(e structs.Told) {
		if !structs.ToldEvent(e.Event) {
			t.Errorf("servers make no event of %s", e.Event)
		}
		params := maps.Clone(e.Params)
		params["rank"], params["node"] = "0", "n1"
		told = append(told, fmt.Sprintf("%ds %s", now.Unix(), strings.TrimPrefix(messages.Text(messages.English, e.Event, params), "rank 0 on n1: ")))
	}}
	p.report(driver.Progress{Step: "resolve", Item: "train:1"})
	for i := range 80 {
		now = now.Add(100 * time.Millisecond)
		total := int64(400 << 20)
		if i < 10 {
			total = 200 << 20
		}
		p.report(driver.Progress{Step: "pull", Item: "train:1", Done: int64(i+1) * 5 << 20, Total: total})
	}
	p.end(&driver.Prepared{Image: "train:1", Pulled: true, Bytes: 900 << 20, Digest: "sha256:1"})
	want := []string{
		"0s image 5%",
		"1s 50.0 MiB of 200.0 MiB of image train:1 are here (25 %)",
		"2s image 27%",
		"4s 200.0 MiB of 400.0 MiB of image train:1 are here (50 %)", "4s image 52%",
		"6s 300.0 MiB of 400.0 MiB of image train:1 are here (75 %)", "6s image 77%",
		"8s image train:1 was pulled, 900.0 MiB in 8s (sha256:1)",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	quiet := pulling{now: p.now, begun: now, tell: func(e structs.Told) { t.Errorf("an image that was there is told: %+v", e) }}
	quiet.end(&driver.Prepared{Image: "train:1", Bytes: 900 << 20})
	quiet.report(driver.Progress{Done: -1, Total: 5})
}

// slowImages is a driver whose images come slowly.
type slowImages struct{ driver.Driver }

func (slowImages) Prepare(ctx context.Context, _ driver.TaskSpec, report func(driver.Progress)) (driver.Prepared, error) {
	for i := range 10 {
		if !sleep(ctx, time.Second) {
			return driver.Prepared{}, ctx.Err()
		}
		report(driver.Progress{Step: "pull", Item: "train:1", Done: int64(i+1) << 20, Total: 10 << 20})
	}
	return driver.Prepared{Image: "train:1", Pulled: true, Bytes: 10 << 20}, nil
}

// The servers hear how far the image of a rank is.
func TestServersHearHowFarAnImageIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newWard()
		drivers := map[string]driver.Driver{"exec": slowImages{w.driver()["exec"]}}
		c.node(t, t.TempDir(), "n1", drivers)
		a := gang("j", 1, "true", "n1")[0]
		c.assign(a)
		pass(5500 * time.Millisecond)
		if now := c.last(a.Alloc.ID); now.Status != structs.AllocPreparing || now.Step != stepImage || now.Progress < 20 || now.Progress > 60 {
			t.Errorf("half way the report is %+v", now)
		}
		pass(10 * time.Second)
		if last := c.last(a.Alloc.ID); last.Status != structs.AllocRunning {
			t.Errorf("at the end the report is %+v", last)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if !slices.ContainsFunc(c.mu.notes, func(n structs.AllocNote) bool { return n.Told != nil && n.Told.Event == structs.EventImagePulled }) {
			t.Errorf("the notes are %+v", c.mu.notes)
		}
	})
}
