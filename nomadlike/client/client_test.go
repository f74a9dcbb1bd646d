package client

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// settle lets everything happen that happens without waiting. Real disks and
// sockets stand between the goroutines, so it waits a little virtual time too.
func settle() { pass(50 * time.Millisecond) }

// pass lets virtual time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantNotes(t *testing.T, w *fakeRuntime, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.notes()); diff != "" {
		t.Fatalf("what the driver was told (-want +got):\n%s", diff)
	}
}

func wantTold(t *testing.T, c *control, id string, want ...structs.AllocStatus) {
	t.Helper()
	if diff := cmp.Diff(want, c.told(id)); diff != "" {
		t.Fatalf("reports of %s (-want +got):\n%s", id, diff)
	}
}

func TestSingleNodeJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		n, stop := c.node(t, tempDir(t), "n1", w.driver())
		settle()
		if !n.Connected() {
			t.Fatal("not connected")
		}
		a := gang("hello", 1, "echo hi", "n1")[0]
		c.assign(a)
		settle()
		wantNotes(t, w, "start hello-1-0")
		wantTold(t, c, a.Alloc.ID, structs.AllocRunning)
		w.exit(a.Alloc.ID, 0)
		settle()
		wantNotes(t, w, "start hello-1-0", "destroy hello-1-0")
		wantTold(t, c, a.Alloc.ID, structs.AllocRunning, structs.AllocComplete)
		if r := c.last(a.Alloc.ID); r.StartedAt == 0 || r.FinishedAt < r.StartedAt || r.Attempt != 1 {
			t.Fatalf("report %+v", r)
		}
		stop()
		if c.mu.byes != 1 {
			t.Fatalf("%d byes", c.mu.byes)
		}
	})
}

func TestBarrierHoldsEveryRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w1, w2 := newControl(), newFakeRuntime(), newFakeRuntime()
		_, stop1 := c.node(t, tempDir(t), "n1", w1.driver())
		_, stop2 := c.node(t, tempDir(t), "n2", w2.driver())
		settle()
		ranks := gang("train", 1, "python3 train.py", "n1", "n2")
		c.assign(ranks...)
		settle()
		wantNotes(t, w1)
		for _, a := range ranks {
			wantTold(t, c, a.Alloc.ID, structs.AllocPrepared)
			c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Released = true })
		}
		settle()
		wantNotes(t, w1, "start train-1-0")
		wantNotes(t, w2, "start train-1-1")
		// One rank fails; the server stops the other.
		w2.exit(ranks[1].Alloc.ID, 3)
		settle()
		if r := c.last(ranks[1].Alloc.ID); r.Status != structs.AllocFailed || r.ExitCode != 3 || r.Infra || r.Cause.ID != "client.task_exit" {
			t.Fatalf("report %+v", r)
		}
		c.change(ranks[0].Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
		settle()
		wantNotes(t, w1, "start train-1-0", "stop train-1-0 SIGTERM 2s", "destroy train-1-0")
		if r := c.last(ranks[0].Alloc.ID); r.Status != structs.AllocKilled || r.ExitCode != 143 || r.Signal != 15 {
			t.Fatalf("report %+v", r)
		}
		stop1()
		stop2()
	})
}

func TestDeafTaskIsKilledAfterItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		w.deaf = true
		_, stop := c.node(t, tempDir(t), "n1", w.driver())
		settle()
		a := gang("deaf", 1, "trap '' TERM", "n1")[0]
		c.assign(a)
		settle()
		c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
		pass(1900 * time.Millisecond)
		if got := w.running(); len(got) != 1 {
			t.Fatal("killed before its grace was over")
		}
		pass(200 * time.Millisecond)
		settle()
		if r := c.last(a.Alloc.ID); r.Status != structs.AllocKilled || r.Signal != 9 {
			t.Fatalf("report %+v", r)
		}
		stop()
	})
}

func TestDisconnectedNodeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		n, stop := c.node(t, tempDir(t), "n1", w.driver())
		settle()
		a, b := gang("long", 1, "sleep", "n1")[0], gang("ends", 1, "sleep", "n1")[0]
		c.assign(a, b)
		settle()
		c.silence(true)
		c.servers.Down("s1", true)
		c.servers.Down("s2", true)
		pass(time.Hour)
		if n.Connected() || len(w.running()) != 2 {
			t.Fatalf("connected %v, running %v", n.Connected(), w.running())
		}
		w.exit(b.Alloc.ID, 0)
		pass(time.Minute)
		wantTold(t, c, b.Alloc.ID, structs.AllocRunning)
		c.silence(false)
		c.servers.Down("s2", false)
		pass(5 * time.Second)
		wantTold(t, c, b.Alloc.ID, structs.AllocRunning, structs.AllocComplete)
		inventories := c.inventories()
		want := []structs.InventoryItem{{AllocID: a.Alloc.ID, Attempt: 1}}
		if diff := cmp.Diff(want, inventories[len(inventories)-1]); diff != "" {
			t.Fatal(diff)
		}
		stop()
	})
}

func TestOldAttemptIsKilledOnReturn(t *testing.T) {
	for _, how := range []string{"not listed", "newer attempt here", "declared lost"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, w := newControl(), newFakeRuntime()
				w.deaf = true
				n, stop := c.node(t, tempDir(t), "n1", w.driver())
				settle()
				old := gang("job", 1, "sleep", "n1")[0]
				c.assign(old)
				settle()
				c.silence(true)
				pass(10 * time.Second)
				if n.Connected() {
					t.Fatal("still connected")
				}
				want := []string{"start job-1-0", "stop job-1-0 SIGTERM 0s"}
				switch how {
				case "not listed":
					c.forget(old.Alloc.ID)
					want = append(want, "destroy job-1-0")
				case "newer attempt here":
					c.assign(gang("job", 2, "sleep", "n1")[0])
					// The new one starts only after the old one is gone.
					want = append(want, "destroy job-1-0", "start job-2-0")
				case "declared lost":
					c.change(old.Alloc.ID, func(a *structs.Allocation) {
						a.Status, a.Desired, a.Quarantined = structs.AllocLost, structs.DesiredStop, true
					})
					want = append(want, "destroy job-1-0")
				}
				c.silence(false)
				pass(6 * time.Second)
				got := w.notes()
				slices.Sort(got[2:]) // destroying and the next start do not wait for each other
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("what the driver was told (-want +got):\n%s", diff)
				}
				if r := c.last(old.Alloc.ID); r.Status != structs.AllocKilled {
					t.Fatalf("report %+v", r)
				}
				stop()
			})
		})
	}
}

func TestStrictJobsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		boot := time.Now()
		_, stop := c.node(t, tempDir(t), "n1", w.driver(), func(config *Config) {
			config.Boottime = func() time.Duration { return time.Since(boot) + time.Hour }
		})
		settle()
		strict, plain := gang("strict", 1, "sleep", "n1")[0], gang("plain", 1, "sleep", "n1")[0]
		strict.Job.Fencing = alloc.FencingStrict
		c.assign(strict, plain)
		pass(10 * time.Second)
		if len(w.running()) != 2 {
			t.Fatal("killed with a good lease")
		}
		c.silence(true)
		pass(2700 * time.Millisecond)
		if len(w.running()) != 2 {
			t.Fatal("killed before the lease of 3 s was over")
		}
		pass(600 * time.Millisecond)
		settle()
		if got := w.running(); len(got) != 1 || got[0] != plain.Alloc.ID+".main" {
			t.Fatalf("running after the lease: %v", got)
		}
		c.silence(false)
		pass(10 * time.Second)
		if r := c.last(strict.Alloc.ID); r.Status != structs.AllocFailed || !r.Infra || r.Cause.ID != "client.lease_ended" {
			t.Fatalf("report %+v", r)
		}
		stop()
	})
}

func TestRestartedAgentTakesItsTasksBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, dir := newControl(), newFakeRuntime(), tempDir(t)
		_, stop := c.node(t, dir, "n1", w.driver())
		settle()
		a, b := gang("one", 1, "sleep", "n1")[0], gang("two", 1, "sleep", "n1")[0]
		c.assign(a, b)
		settle()
		stop()
		if len(w.running()) != 2 {
			t.Fatalf("tasks ended with the agent: %v", w.notes())
		}
		w.exit(b.Alloc.ID, 4) // while nobody looks
		n, stop := c.node(t, dir, "n1", w.driver())
		settle()
		if got := n.Node().Incarnation; got != 2 {
			t.Fatalf("incarnation %d", got)
		}
		if r := c.last(b.Alloc.ID); r.Status != structs.AllocFailed || r.ExitCode != 4 {
			t.Fatalf("report %+v", r)
		}
		notes := w.notes()
		slices.Sort(notes) // the two do not wait for each other
		want := []string{"destroy two-1-0", "recover one-1-0", "recover two-1-0", "start one-1-0", "start two-1-0"}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Fatalf("what the driver was told (-want +got):\n%s", diff)
		}
		inventories := c.inventories()
		if got := inventories[len(inventories)-1]; len(got) == 0 {
			t.Fatal("the first Hello did not tell what runs")
		}
		w.exit(a.Alloc.ID, 0)
		settle()
		if r := c.last(a.Alloc.ID); r.Status != structs.AllocComplete {
			t.Fatalf("report %+v", r)
		}
		stop()
	})
}

func TestRefusedReportIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, dir := newControl(), newFakeRuntime(), tempDir(t)
		n, stop := c.node(t, dir, "n1", w.driver())
		settle()
		a := gang("job", 1, "sleep", "n1")[0]
		c.assign(a)
		settle()
		c.mu.Lock()
		c.mu.refuse = true
		c.mu.Unlock()
		w.exit(a.Alloc.ID, 0)
		settle()
		if got := n.session.Unacknowledged(); got != 0 {
			t.Fatalf("%d reports are kept", got)
		}
		stop()
		c.mu.Lock()
		c.mu.refuse = false
		c.mu.Unlock()
		before := len(c.told(a.Alloc.ID))
		c.forget(a.Alloc.ID)
		_, stop = c.node(t, dir, "n1", w.driver())
		settle()
		if len(c.told(a.Alloc.ID)) != before {
			t.Fatal("a refused report came back after a restart")
		}
		stop()
	})
}

func TestUnheardReportSurvivesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, dir := newControl(), newFakeRuntime(), tempDir(t)
		_, stop := c.node(t, dir, "n1", w.driver())
		settle()
		a := gang("job", 1, "sleep", "n1")[0]
		c.assign(a)
		settle()
		c.silence(true)
		c.servers.Down("s1", true)
		c.servers.Down("s2", true)
		pass(5 * time.Second)
		w.exit(a.Alloc.ID, 9)
		settle()
		stop()
		c.silence(false)
		c.servers.Down("s1", false)
		_, stop = c.node(t, dir, "n1", w.driver())
		settle()
		if r := c.last(a.Alloc.ID); r.Status != structs.AllocFailed || r.ExitCode != 9 {
			t.Fatalf("report %+v", r)
		}
		stop()
	})
}

func TestStartFailures(t *testing.T) {
	notFound := &driver.StartError{ExitCode: 127, Err: structs.NewError(structs.CodeInvalid, "driver.command_not_found", "command", "x")}
	for _, one := range []struct {
		name  string
		err   error
		code  int
		infra bool
		cause string
	}{
		{"command not found", notFound, 127, false, "driver.command_not_found"},
		{"driver broken", errors.New("no more processes"), driver.CodeUnknown, true, "client.driver_failed"},
		{"bad spec", structs.NewError(structs.CodeInvalid, "driver.bad_spec"), driver.CodeNotExecutable, false, "driver.bad_spec"},
	} {
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, w := newControl(), newFakeRuntime()
				w.startErr = one.err
				_, stop := c.node(t, tempDir(t), "n1", w.driver())
				settle()
				a := gang("job", 1, "x", "n1")[0]
				c.assign(a)
				settle()
				if r := c.last(a.Alloc.ID); r.Status != structs.AllocFailed || r.ExitCode != one.code || r.Infra != one.infra || r.Cause.ID != one.cause {
					t.Fatalf("report %+v cause %+v", r, r.Cause)
				}
				stop()
			})
		})
	}
}
