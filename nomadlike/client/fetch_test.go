package client

import (
	"context"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// slowImages is a driver whose images come slowly.
type slowImages struct{ driver.Driver }

func (slowImages) Prepare(ctx context.Context, _ driver.TaskSpec, report func(driver.Progress)) (driver.Prepared, error) {
	for i := range 10 {
		if !retry.Sleep(ctx, time.Second) {
			return driver.Prepared{}, ctx.Err()
		}
		report(driver.Progress{Step: "pull", Item: "train:1", Done: int64(i+1) << 20, Total: 10 << 20})
	}
	return driver.Prepared{Image: "train:1", ID: "sha256:train", Pulled: true, Bytes: 10 << 20}, nil
}

// Exec is a look at the environment of a task.
func (slowImages) Exec(_ context.Context, _ driver.TaskID, _ driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	_, err := io.WriteString(streams.Stdout, "@@cuda.version=12.1\n")
	return driver.ExitResult{}, err
}

// The servers hear how far the image of a rank is, and which it is, also when
// more is seen of its environment later.
func TestServersHearHowFarAnImageIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		drivers := map[string]driver.Driver{"exec": slowImages{w.driver()["exec"]}}
		c.node(t, t.TempDir(), "n1", drivers)
		a := gang("j", 1, "sleep", "n1")[0]
		a.Job.Checkpoint = &structs.Checkpoint{Precheck: true}
		c.assign(a)
		pass(5500 * time.Millisecond)
		if now := c.last(a.Alloc.ID); now.Status != structs.AllocPreparing || now.Step != "image" || now.Progress < 20 || now.Progress > 60 {
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
		looks := 0
		for _, n := range c.mu.notes {
			if n.Told != nil && len(n.Told.Seen) > 0 && n.Told.Seen["image"] != "sha256:train" {
				t.Errorf("%s tells what is seen without the image: %v", n.Told.Event, n.Told.Seen)
			}
			if n.Told != nil && n.Told.Event == structs.EventEnvironment {
				looks++
			}
		}
		if looks == 0 {
			t.Error("nobody looked at the environment")
		}
	})
}
