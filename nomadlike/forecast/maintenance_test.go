package forecast

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// shut gives a node another window.
func (d *drive) shut(id string, w structs.NodeMaintenance) {
	node, usage := d.board.Node(id)
	own := *node
	own.Maintenance = append(slices.Clone(node.Maintenance), w)
	slices.SortFunc(own.Maintenance, func(a, b structs.NodeMaintenance) int { return int(a.Start - b.Start) })
	d.board.PutNode(id, &own, usage)
}

// anyWindows closes some nodes for some time, now or later.
func anyWindows(t *rapid.T, d *drive) {
	var ids []string
	for node := range d.board.Nodes() {
		ids = append(ids, node.ID)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "windows") {
		w := structs.NodeMaintenance{ID: fmt.Sprint("w", i), KeepRunning: rapid.Bool().Draw(t, "keep")}
		w.Start = d.now.Add(time.Duration(rapid.IntRange(-2, 20).Draw(t, "start")) * 30 * time.Minute)
		w.End = w.Start.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "length")) * 30 * time.Minute)
		w.Begun = w.Start <= d.now && rapid.Bool().Draw(t, "begun")
		for _, id := range ids {
			if rapid.Bool().Draw(t, "covered") {
				d.shut(id, w)
			}
		}
	}
}

// TestWindowsAreFollowed: with run times that are known, the forecast is what comes of
// carrying on the board by hand, instant by instant, as the leader would.
func TestWindowsAreFollowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := scheduler.Settings{Passing: rapid.SampledFrom([]scheduler.Passing{scheduler.Backfill, scheduler.Easy, scheduler.NoPassing}).Draw(t, "passing"), Runtime: truth}
		d := anyCluster(t, settings, true) // nobody ends anybody
		anyWindows(t, d)
		for i := range rapid.IntRange(0, 6).Draw(t, "small") {
			limit := time.Duration(rapid.IntRange(0, 6).Draw(t, "limit")) * time.Hour
			j := testJob(fmt.Sprint("s", i), 1, rapid.SampledFrom([]int{1, 4}).Draw(t, "devices"), limit)
			j.Placement.Pool = structs.PoolDefault
			if rapid.Bool().Draw(t, "saver") {
				j.Checkpoint = &structs.Checkpoint{}
			}
			d.submit(j)
		}
		f := Look(Input{Board: d.ready(settings)}, d.now, 1)
		starts := f.Queue()
		settings.Quiet, settings.Alone = true, true
		d.board.SetSettings(settings)
		want := d.carryOn()
		for _, s := range starts {
			at, known := want[s.JobID]
			switch {
			case s.Verdict == VerdictNever || s.Verdict == VerdictUnknown:
				if known {
					t.Fatalf("%s is %s and starts at %v", s.JobID, s.Verdict, at.Time())
				}
			case !known && s.Beyond != BeyondP50:
				t.Fatalf("%s never starts: %+v", s.JobID, s.When)
			case known && s.P50 < at:
				t.Fatalf("%s starts at %v: %+v", s.JobID, at.Time(), s.When)
			case known && s.P50 > at && !f.follows(starts, &s):
				t.Fatalf("%s starts at %v: %+v", s.JobID, at.Time(), s.When)
			}
		}
	})
}

// follows reports whether a start was told later than it was found because an equal
// job before it starts then: see straighten.
func (f *Futures) follows(starts []Start, s *Start) bool {
	return slices.ContainsFunc(starts, func(o Start) bool { return o.JobID != s.JobID && o.Pool == s.Pool && o.P50 == s.P50 })
}

// carryOn lets a board go on until nothing happens any more, and returns when each job
// started first from now on.
func (d *drive) carryOn() map[string]structs.UnixNano {
	started, ends, begin := map[string]structs.UnixNano{}, map[string]structs.UnixNano{}, d.now
	for r := range d.board.Running() {
		ends[r.Subjob.JobID] = max(r.PlacedAt.Add(truth(r.Job, 0)), d.now)
	}
	pass := func() {
		for {
			plan := d.board.Pass(d.now, 1)
			for _, g := range plan.Gangs {
				for _, v := range g.Victims {
					delete(ends, v.JobID)
				}
				if g.Nominate {
					continue
				}
				if _, known := started[g.JobID]; !known {
					started[g.JobID] = d.now
				}
				ends[g.JobID] = d.now.Add(truth(d.jobs[g.JobID], 0))
				d.board.Started(g.JobID, g.Subjob, d.now)
			}
			if len(plan.Gangs) == 0 {
				return
			}
		}
	}
	pass()
	for range 10_000 {
		next := never
		for _, at := range ends {
			next = min(next, at)
		}
		for node := range d.board.Nodes() {
			for _, w := range node.Maintenance {
				if next = min(next, max(w.End, d.now+1)); !w.Begun {
					next = min(next, max(w.Start, d.now+1))
				}
			}
		}
		if next == never {
			return started
		}
		d.now = next
		for id, at := range ends {
			if at <= d.now {
				d.board.End(id, 0)
				delete(ends, id)
			}
		}
		var closed []string
		var after []*structs.Node
		swept := d.now > begin // what time brings about is noticed after now
		for node := range d.board.Nodes() {
			own := *node
			own.Maintenance = nil
			changed := false
			for _, w := range node.Maintenance {
				begins := !w.Begun && w.Start <= d.now && swept
				if changed = changed || begins || w.End <= d.now && swept; w.End <= d.now && swept {
					continue
				}
				if begins && !w.KeepRunning {
					closed = append(closed, node.ID)
				}
				w.Begun = w.Begun || begins
				own.Maintenance = append(own.Maintenance, w)
			}
			if changed {
				after = append(after, &own)
			}
		}
		for _, r := range slices.Collect(d.board.Running()) {
			if slices.ContainsFunc(r.Nodes, func(id string) bool { return slices.Contains(closed, id) }) {
				d.board.Requeue(r.Subjob.JobID, r.Subjob.Index)
				delete(ends, r.Subjob.JobID)
			}
		}
		for _, node := range after {
			d.board.PutNode(node.ID, node, d.board.NodeUsage(node.ID))
		}
		pass()
	}
	panic("it does not come to rest")
}

// Three machines that are closed for a night, and what is told about it.
func TestMaintenanceGolden(t *testing.T) {
	hours := func(n float64) structs.UnixNano { return start.Add(time.Duration(n * float64(time.Hour))) }
	d := newDrive(scheduler.Settings{}, 0, 0)
	for _, name := range []string{"n1", "n2", "n3"} {
		n := testNode(name, 8)
		d.board.PutNode(n.ID, n, nil)
	}
	d.now = start.Add(-time.Hour)
	d.submit(testJob("a", 1, 8, 3*time.Hour))  // over in time
	d.submit(testJob("b", 1, 8, 10*time.Hour)) // not
	d.pass()
	d.now = start
	night := structs.NodeMaintenance{ID: "w", Start: hours(4), End: hours(8), Reason: "new firmware"}
	for _, id := range []string{"id-n1", "id-n2", "id-n3"} {
		d.shut(id, night)
	}
	d.submit(testJob("p", 3, 8, 2*time.Hour)) // all machines: after the night
	d.submit(testJob("q", 1, 8, 4*time.Hour)) // fits before it
	d.submit(testJob("r", 1, 8, 5*time.Hour)) // does not, by an hour
	d.submit(testJob("s", 1, 4, 0))           // for any time
	saver := testJob("t", 1, 4, 0)
	saver.Checkpoint = &structs.Checkpoint{MaxResumes: 3}
	d.submit(saver)
	f := Look(Input{Board: d.ready(scheduler.Settings{})}, start, 1)
	p := &page{now: start}
	p.line("three machines are closed in four hours, for four hours; b stands until it is stopped then")
	p.queue(f.Queue())
	p.line("\nthe next hours")
	p.chart(f.Timeline(0, nil))
	for _, id := range []string{"p", "r", "s"} {
		p.line("\nwhat would help %s", id)
		for _, help := range f.Helps(id, 0) {
			p.line("  %s: %s", p.wait(&structs.WaitReason{Reason: help.Reason}), p.when(help.When))
		}
	}
	job := testJob("", 1, 8, 6*time.Hour)
	job.Name = "x"
	p.answer("a machine for six hours", f.Job(job))
	d = newDrive(scheduler.Settings{}, 0, 0)
	d.board.PutNode("id-n1", testNode("n1", 8), nil)
	d.submit(testJob("c", 1, 8, 10*time.Hour))
	d.pass()
	d.shut("id-n1", night)
	p.line("\nwhat is stopped goes on afterwards, though nobody waits")
	p.chart(Look(Input{Board: d.ready(scheduler.Settings{})}, start, 1).Timeline(0, nil))
	d.board.End("c", 0)
	d.submit(testJob("d", 1, 8, 0))
	p.line("\nwhat would help d, which has the machine free and no time limit")
	for _, help := range Look(Input{Board: d.ready(scheduler.Settings{})}, start, 1).Helps("d", 0) {
		p.line("  %s: %s", p.wait(&structs.WaitReason{Reason: help.Reason}), p.when(help.When))
	}
	effect, err := f.WhatIf([]Change{{Kind: ChangeAddNodes, Node: "n1", Count: 1}})
	if err != nil {
		t.Fatal(err)
	}
	p.effect("what if: one node more like n1, which the window closes too", effect)
	node, _ := d.board.Node("id-n1")
	own := *node
	own.Name, own.Maintenance = "n2", nil
	own.ID = "id-n2"
	d.board.PutNode(own.ID, &own, nil)
	if effect, err = Look(Input{Board: d.ready(scheduler.Settings{})}, start, 1).WhatIf([]Change{{Kind: ChangeSubmit, Job: testJob("", 1, 8, 0)}, {Kind: ChangeAddNodes, Node: "n1", Count: 1}}); err != nil {
		t.Fatal(err)
	}
	p.effect("what if: d has n2, and one more comes, beside one node like n1, which the window closes by name", effect)
	golden.Assert(t, "testdata/maintenance.txt", p.String())
}

// A start that all futures see at the end of a window is not bent by how other
// forecasts came out.
func TestKnownTimeIsNotCorrected(t *testing.T) {
	d := newDrive(scheduler.Settings{}, 1, 8)
	w := structs.NodeMaintenance{ID: "w", Start: start.Add(-time.Hour), End: start.Add(3 * time.Hour), Begun: true}
	d.shut("id-n0000", w)
	d.submit(testJob("a", 1, 8, time.Hour))
	f := Look(Input{Board: d.ready(scheduler.Settings{}), Calibration: wild{}}, start, 1)
	for _, s := range f.Queue() {
		if want := (When{Verdict: VerdictLater, Point: w.End, P50: w.End, P90: w.End}); s.When != want {
			t.Errorf("%s starts %+v, want %+v", s.JobID, s.When, want)
		}
	}
}

// A start may free others at the same instant: the reservation that kept s back at the
// window's end lies elsewhere once r, which is shorter, has started beside it.
func TestPassesAreRepeatedAtTheSameTime(t *testing.T) {
	settings := scheduler.Settings{Runtime: truth}
	d := newDrive(settings, 3, 8)
	d.submit(testJob("j17", 2, 8, 2*time.Hour))
	d.submit(testJob("j23", 2, 8, time.Hour))
	w := structs.NodeMaintenance{ID: "w", Start: start.Add(30 * time.Minute), End: start.Add(time.Hour)}
	d.shut("id-n0002", w)
	d.submit(testJob("s0", 1, 1, 0))
	d.submit(testJob("s1", 1, 1, time.Hour))
	for _, s := range Look(Input{Board: d.ready(settings)}, d.now, 1).Queue() {
		if s.Pool == "" || s.JobID[0] != 's' {
			continue
		}
		if s.P50 != w.End {
			t.Errorf("%s starts at %v, and could at %v", s.JobID, s.P50.Time(), w.End.Time())
		}
	}
}
