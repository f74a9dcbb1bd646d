package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/client/run"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// order sends an allocation a Control.
func (c *control) order(id string, order structs.Control) {
	c.change(id, func(a *structs.Allocation) { a.Control = &order })
}

// wantAnswer checks the last answer to an order.
func wantAnswer(t *testing.T, c *control, id string, seq uint64, failed string) {
	t.Helper()
	answer := c.last(id).Control
	if answer == nil || answer.Seq != seq {
		t.Fatalf("answer %+v, want one to %d", answer, seq)
	}
	if cause := answer.Failed; (cause == nil) != (failed == "") || cause != nil && cause.Params["cause"] != failed {
		t.Fatalf("answer %+v, want the failure %q", cause, failed)
	}
}

func TestPauseAndContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		dir := tempDir(t)
		_, stop := c.node(t, dir, "n1", w.driver())
		settle()
		a := gang("train", 1, "x", "n1")[0]
		c.assign(a)
		settle()
		c.order(a.Alloc.ID, structs.Control{Seq: 5, Paused: true})
		settle()
		wantAnswer(t, c, a.Alloc.ID, 5, "")
		c.order(a.Alloc.ID, structs.Control{Seq: 6})
		settle()
		wantAnswer(t, c, a.Alloc.ID, 6, "")
		w.refusePauses(errors.New("no freezer"))
		c.order(a.Alloc.ID, structs.Control{Seq: 7, Paused: true})
		settle()
		wantAnswer(t, c, a.Alloc.ID, 7, "no freezer")
		// A driver that is away is asked again for a while.
		w.refusePauses(driver.ErrUnavailable)
		c.order(a.Alloc.ID, structs.Control{Seq: 8, Paused: true})
		pass(run.ControlPatience / 2)
		wantAnswer(t, c, a.Alloc.ID, 7, "no freezer")
		w.refusePauses(nil)
		pass(retry.Most)
		wantAnswer(t, c, a.Alloc.ID, 8, "")
		// A new agent learns the order again.
		stop()
		_, stop = c.node(t, dir, "n1", w.driver())
		settle()
		wantAnswer(t, c, a.Alloc.ID, 8, "")
		c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
		settle()
		wantNotes(t, w, "start train-1-0", "pause train-1-0", "continue train-1-0", "pause train-1-0", "recover train-1-0",
			"pause train-1-0", "stop train-1-0 SIGTERM 2s", "destroy train-1-0")
		stop()
	})
}

// TestWarning sends a running command the signal before its time limit, once, also
// where the driver is away at first.
func TestWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		dir := tempDir(t)
		_, stop := c.node(t, dir, "n1", w.driver())
		settle()
		a := gang("train", 1, "x", "n1")[0]
		c.assign(a)
		settle()
		warn := func(seq uint64) {
			c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Warning = &structs.Warning{Seq: seq, Signal: "SIGUSR2"} })
		}
		warn(5)
		settle()
		stop()
		_, stop = c.node(t, dir, "n1", w.driver())
		settle()
		w.refuseSignals(driver.ErrUnavailable)
		warn(9)
		pass(retry.Most)
		w.refuseSignals(nil)
		pass(2 * retry.Most)
		wantNotes(t, w, "start train-1-0", "signal SIGUSR2 train-1-0", "recover train-1-0", "signal SIGUSR2 train-1-0")
		stop()
	})
}

// TestThrottleOfAnyDriver throttles a task whose driver can only pause.
func TestThrottleOfAnyDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		_, stop := c.node(t, tempDir(t), "n1", w.driver())
		settle()
		a := gang("train", 1, "x", "n1")[0]
		c.assign(a)
		settle()
		holds := func() (pauses, continues int) {
			for _, note := range w.notes() {
				if strings.HasPrefix(note, "pause") {
					pauses++
				}
				if strings.HasPrefix(note, "continue") {
					continues++
				}
			}
			return pauses, continues
		}
		c.order(a.Alloc.ID, structs.Control{Seq: 5, Busy: structs.Duration(3 * time.Second), Idle: structs.Duration(time.Second)})
		pass(10 * time.Second) // c 3 p 1 c 3 p 1 c 2
		wantAnswer(t, c, a.Alloc.ID, 5, "")
		if pauses, continues := holds(); pauses != 2 || continues != 3 {
			t.Fatalf("%d pauses, %d continues: %q", pauses, continues, w.notes())
		}
		// Paused, it stands still; lifted, it runs.
		c.order(a.Alloc.ID, structs.Control{Seq: 6, Paused: true, Busy: structs.Duration(3 * time.Second), Idle: structs.Duration(time.Second)})
		pass(10 * time.Second)
		if pauses, continues := holds(); pauses != 3 || continues != 3 {
			t.Fatalf("%d pauses, %d continues: %q", pauses, continues, w.notes())
		}
		c.order(a.Alloc.ID, structs.Control{Seq: 7, Busy: structs.Duration(3 * time.Second), Idle: structs.Duration(time.Hour)})
		pass(4 * time.Second)
		if pauses, continues := holds(); pauses != 4 || continues != 4 {
			t.Fatalf("%d pauses, %d continues: %q", pauses, continues, w.notes())
		}
		// A stop finds it running, and nothing holds it in its grace.
		c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
		settle()
		notes := w.notes()
		if tail := fmt.Sprint(notes[len(notes)-3:]); tail != "[continue train-1-0 stop train-1-0 SIGTERM 2s destroy train-1-0]" {
			t.Fatalf("%q", notes)
		}
		stop()
	})
}

// TestPausedProcessesStandStill pauses a real gang of processes, over a
// restart of the agent.
func TestPausedProcessesStandStill(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	server := c.listen(t)
	cleanUp(t, dir)
	kill := agent(t, dir, server)
	counter := filepath.Join(t.TempDir(), "count")
	a := gang("count", 1, fmt.Sprintf("sh -c 'while :; do echo x >> %s; sleep 0.01; done'", counter), "n1")[0]
	c.assign(a)
	wantStatus(t, c, a.Alloc.ID, structs.AllocRunning)
	size := func() int64 {
		if info, err := os.Stat(counter); err == nil {
			return info.Size()
		}
		return 0
	}
	grows := func(what string) {
		t.Helper()
		from := size()
		eventually.Within(t, time.Minute, what, func() bool { return size() > from+4 })
	}
	stands := func() {
		t.Helper()
		from := size()
		window := time.NewTimer(200 * time.Millisecond)
		<-window.C
		if now := size(); now != from {
			t.Fatalf("a paused task wrote %d bytes", now-from)
		}
	}
	answered := func(seq uint64) {
		t.Helper()
		eventually.Within(t, time.Minute, fmt.Sprintf("order %d is executed", seq), func() bool {
			answer := c.last(a.Alloc.ID).Control
			return answer != nil && answer.Seq == seq && answer.Failed == nil
		})
	}
	grows("it counts")
	c.order(a.Alloc.ID, structs.Control{Seq: 5, Paused: true})
	answered(5)
	stands()
	kill()
	stands()
	agent(t, dir, server)
	eventually.Within(t, time.Minute, "the new agent says so", func() bool { return len(c.inventories()) > 1 })
	answered(5)
	stands()
	c.order(a.Alloc.ID, structs.Control{Seq: 6})
	answered(6)
	grows("it goes on")
	c.order(a.Alloc.ID, structs.Control{Seq: 7, Paused: true})
	answered(7)
	c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocKilled || r.Signal != 15 {
		t.Fatalf("a paused task that is stopped: %+v", r)
	}
}
