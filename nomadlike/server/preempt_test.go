package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// small returns a node with room for so many one-core ranks; its ranks run until
// they are stopped.
func (c *cluster) small(name string, cores float64) *fakeNode {
	n := c.newNode(name)
	n.node.Capacity.CPU, n.complete = cores, false
	return n
}

// orders lists how the node was told to stop an allocation.
func (n *fakeNode) orders() (orders []structs.StopOrder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.mu.assigned {
		if a.Alloc.Desired == structs.DesiredStop && a.Alloc.Stop != nil {
			orders = append(orders, *a.Alloc.Stop)
		}
	}
	return orders
}

// A preemptible training yields to a higher tier: it is told to save a
// checkpoint, queued again, and runs on when the other has ended.
func TestPreemptibleTrainingYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		node := c.small("a", 1)
		node.connect(1)
		training := testJob("training", 1)
		training.Preemptible = true
		training.Checkpoint = &structs.Checkpoint{MaxResumes: 3, Signal: "SIGUSR1", Grace: structs.Duration(5 * time.Minute)}
		victim := c.submit(0, training)
		c.eventually(0, 5*time.Second, "the training runs", jobIs(victim, structs.JobRunning))

		urgent := testJob("urgent", 1)
		urgent.Priority = structs.PriorityUrgent
		killer := c.submit(2, urgent)
		snapshot := c.eventually(0, 10*time.Second, "the urgent job runs", jobIs(killer, structs.JobRunning))
		attempt := snapshot.Attempt(victim, 0, 1)
		if attempt.Outcome != structs.OutcomePreempted || attempt.By == nil || attempt.By.JobID != killer {
			t.Errorf("the victim's attempt is %+v", attempt)
		}
		if subjob := snapshot.Subjob(victim, 0); subjob.State != structs.JobQueued || subjob.Restarts != 0 {
			t.Errorf("the victim is %+v", subjob)
		}
		if orders := node.orders(); len(orders) > 1 || len(orders) == 1 && orders[0].Signal != "SIGUSR1" {
			t.Errorf("the node was told %+v", orders)
		}
		if _, _, err := c.servers[0].Submit(t.Context(), structs.CommandJobStop, "ann", &structs.JobStop{JobID: killer}); err != nil {
			t.Fatal(err)
		}
		snapshot = c.eventually(0, 10*time.Second, "the training runs again", jobIs(victim, structs.JobRunning))
		if got := snapshot.Subjob(victim, 0).Attempt; got != 2 {
			t.Errorf("it runs as attempt %d", got)
		}
	})
}

// A VIP job ends what runs on one machine and waits for the other.
func TestVIPKillsHereAndWaitsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		for _, name := range []string{"a", "b", "c"} {
			machine := c.small(name, 1)
			for i := range 2 {
				machine.node.Devices = append(machine.node.Devices, structs.Device{ID: fmt.Sprint(i), Kind: "nvidia/gpu", Model: "A800", Healthy: true})
			}
			machine.connect(0)
		}
		var holders []string
		for i := range 3 {
			holders = append(holders, c.submit(0, testJob(fmt.Sprintf("holder%d", i), 1)))
		}
		snapshot := c.eventually(0, 5*time.Second, "all machines are busy", func(s *state.Snapshot) bool {
			for _, id := range holders {
				if !jobIs(id, structs.JobRunning)(s) {
					return false
				}
			}
			return true
		})
		on := map[string]string{} // node name -> job
		for _, id := range holders {
			for alloc := range snapshot.AllocsOfJob(id) {
				on[alloc.NodeName] = id
			}
		}
		vip := gangJob("vip", 2)
		vip.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 2}}
		vip.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "a", Busy: structs.BusyKill}, {Node: "b", Busy: structs.BusyWait}}}
		id := c.submit(0, vip)
		// Nothing of a would start before b is empty: whatever its job does until then is not lost.
		time.Sleep(time.Hour)
		snapshot = c.servers[0].Store().Snapshot()
		for _, holder := range holders {
			if !jobIs(holder, structs.JobRunning)(snapshot) {
				t.Errorf("%s does not run while b is waited for", holder)
			}
		}
		if snapshot.Subjob(id, 0).Nomination == nil || !jobIs(id, structs.JobQueued)(snapshot) {
			t.Error("the VIP job has no nomination, or runs")
		}
		if _, _, err := c.servers[0].Submit(t.Context(), structs.CommandJobStop, "ann", &structs.JobStop{JobID: on["b"]}); err != nil {
			t.Fatal(err)
		}
		snapshot = c.eventually(0, 10*time.Second, "the holder of a is ended", func(s *state.Snapshot) bool {
			attempt := s.Attempt(on["a"], 0, 1)
			return attempt.State == structs.AttemptEnded && attempt.By != nil && attempt.By.JobID == id
		})
		if !jobIs(on["c"], structs.JobRunning)(snapshot) {
			t.Error("another holder was ended")
		}
		c.eventually(0, 10*time.Second, "the VIP job runs", jobIs(id, structs.JobRunning))
	})
}

// An elastic job that started small is looked at again when it has run for a
// while, though nothing else happens in the cluster.
func TestElasticJobIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.small("a", 1).connect(0)
		elastic := gangJob("elastic", 4)
		elastic.Checkpoint, elastic.Elastic = &structs.Checkpoint{MaxResumes: 3}, &structs.Elastic{MinNodes: 1, By: structs.ElasticByRestart, AllowResize: true}
		id := c.submit(0, elastic)
		snapshot := c.eventually(0, 5*time.Second, "it runs on one node", jobIs(id, structs.JobRunning))
		q := newQueue(&c.servers[0].config, c.servers[0].proposals, c.servers[0].leader.placing)
		q.board.Sync(snapshot)
		q.times.follow(snapshot)
		for _, span := range []time.Duration{10 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
			got, due := q.next(snapshot)
			if !due || got > span || got < span-time.Minute {
				t.Errorf("the next look is in %s (%v), want %s", got, due, span)
			}
			time.Sleep(span)
		}
	})
}

// More than one plan may hold starts at once; each in its turn.
func TestManySubjobsStartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		const count = 5000
		for i := range 10 {
			node := c.newNode(fmt.Sprintf("n%d", i))
			node.node.Capacity.CPU = count / 10
			node.connect(0)
		}
		c.eventually(0, time.Second, "nodes", func(s *state.Snapshot) bool { return s.NodeCount() == 10 })
		job := testJob("many", 1)
		job.Type, job.Batch = structs.JobTypeBatch, &structs.Batch{Count: count}
		id := c.submit(0, job)
		snapshot := c.eventually(0, time.Minute, "all have run", jobIs(id, structs.JobSucceeded))
		plans := map[uint64]bool{}
		for attempt := range snapshot.Attempts(id) {
			plans[attempt.CreateIndex] = true
		}
		if len(plans) > 4 {
			t.Errorf("%d log entries for one batch", len(plans))
		}
	})
}

// Every server foresees, from its own state; the leader keeps the first answer
// and those that moved.
func TestEveryServerForesees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.small("a", 1).connect(0)
		long := testJob("long", 1)
		long.TimeLimit = structs.Duration(time.Hour)
		c.eventually(0, 5*time.Second, "it runs", jobIs(c.submit(0, long), structs.JobRunning))
		waits := testJob("waits", 1)
		waits.TimeLimit = structs.Duration(time.Minute)
		id := c.submit(0, waits)
		for i, server := range c.servers {
			if err := server.Fresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			shown, err := server.ForecastSnapshot(t.Context(), 0, "")
			if err != nil {
				t.Fatal(err)
			}
			if starts := shown.Starts; len(starts) != 1 || starts[0].JobID != id || starts[0].Verdict != forecast.VerdictLater {
				t.Errorf("server %d foresees %+v", i+1, starts)
			}
			if err := server.Consult(t.Context(), func(board *scheduler.Board) {
				for running := range board.Running() {
					if running.Job.Name != "long" {
						t.Errorf("server %d sees %s run", i+1, running.Job.Name)
					}
				}
			}); err != nil {
				t.Error(err)
			}
		}
		snapshot := c.eventually(1, 10*time.Second, "the answer is kept", func(s *state.Snapshot) bool { return len(s.Forecast(id, 0, 1)) == 1 })
		if given := snapshot.Forecast(id, 0, 1)[0]; given.Point <= given.GivenAt || len(given.Features) == 0 {
			t.Errorf("kept is %+v", given)
		}
		if _, _, err := c.servers[0].Submit(t.Context(), structs.CommandJobTimeLimit, "ann", &structs.JobTimeLimit{JobID: snapshot.Subjob(id, 0).JobID, TimeLimit: structs.Duration(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWorthRecording(t *testing.T) {
	minute := structs.UnixNano(time.Minute)
	at := func(given, point structs.UnixNano) structs.Forecast {
		return structs.Forecast{GivenAt: given * minute, Point: point * minute}
	}
	for _, try := range []struct {
		before, now structs.Forecast
		want        bool
	}{
		{at(0, 60), at(1, 60), false},
		{at(0, 60), at(10, 61), false}, // a minute
		{at(0, 60), at(10, 65), false}, // of 55 that are left
		{at(0, 60), at(10, 90), true},
		{at(0, 60), at(50, 58), false},
		{at(0, 60), at(50, 56), true}, // four of six that are left
		{at(0, 60), at(0, 90), false}, // said a moment ago
	} {
		if got := worthRecording([]structs.Forecast{try.before}, try.now); got != try.want {
			t.Errorf("%+v after %+v: %v", try.now, try.before, got)
		}
	}
	if !worthRecording(nil, at(0, 1)) {
		t.Error("the first answer is not kept")
	}
}
