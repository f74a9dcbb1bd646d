package forecast

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"nomadlike/nomadlike/load"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// The load of the next hours is what the bars of the timeline add up to.
func TestSpansAreTheTimeline(t *testing.T) {
	in := crowd(40, 60, 60)
	f := Look(in, start, 1)
	drawing := f.Draw()
	timeline := drawing.Timeline(LoadAhead, nil)
	times, now := load.Times(start, 0, LoadAhead.Std(), 15*time.Minute)
	var sites []load.Site
	for _, row := range timeline.Rows {
		if row.More > 0 {
			t.Fatalf("%s has more bars than a timeline shows", row.Node)
		}
		sites = append(sites, load.Site{ID: row.NodeID, Pool: row.Pool, Cards: row.Devices})
	}
	all, _ := load.Sum(sites, drawing.Spans(), times)
	foreseen := 0
	for i, at := range times[now+1:] {
		used, waiting := 0, 0
		for _, row := range timeline.Rows {
			for _, bar := range row.Bars {
				switch {
				case bar.From > at || bar.To != 0 && bar.To <= at:
				case bar.Kind == BarRunning:
					used += bar.Devices
				case bar.Kind == BarForecast:
					waiting += bar.Devices
				}
			}
		}
		if i += now + 1; all.Used[i] != used || all.Foreseen[i] != waiting {
			t.Errorf("at %s: %d used and %d foreseen, but bars of %d and %d", at.Time(), all.Used[i], all.Foreseen[i], used, waiting)
		}
		foreseen += waiting
	}
	if foreseen == 0 {
		t.Error("nothing that waits is seen to start")
	}
}

// tried is a job without cards.
func tried() *structs.Job {
	job := testJob("", 1, 0, 0)
	job.Resources[0] = structs.Resources{CPU: 1, Memory: 512 << 20}
	return job
}

func TestCouldStart(t *testing.T) {
	d := newDrive(scheduler.Settings{}, 4, 8)
	for i := range 2 {
		n := testNode(fmt.Sprintf("h%d", i), 4)
		n.Pool = "hopper"
		for k := range n.Devices {
			n.Devices[k].Model = "H800"
		}
		d.board.PutNode(n.ID, n, nil)
	}
	away := testNode("n0003", 8)
	away.Eligibility = structs.NodeCordoned
	d.board.PutNode(away.ID, away, nil)
	d.submit(testJob("a", 1, 8, 4*time.Hour))
	d.submit(testJob("b", 1, 5, 2*time.Hour))
	d.pass()
	tell := func(list []outlook.Startable) (text string) {
		for _, s := range list {
			text += fmt.Sprintf("%s of %d: %d free, %d on one node; %d whole, %d half, %d single\n", s.Model, s.Node, s.Free, s.Most, s.Whole, s.Half, s.Single)
		}
		return text
	}
	ask := func(job *structs.Job) string {
		return tell(CouldStart(d.ready(scheduler.Settings{}).Clone(), job, start, 1))
	}
	if got, want := ask(tried()), "A800 of 8: 19 free, 8 on one node; 1 whole, 2 half, 11 single\nH800 of 4: 8 free, 4 on one node; 2 whole, 4 half, 8 single\n"; got != want {
		t.Errorf("idle nodes:\n%swant\n%s", got, want)
	}
	hopper := tried()
	hopper.Placement.Pool = "hopper"
	if got, want := ask(hopper), "H800 of 4: 8 free, 4 on one node; 2 whole, 4 half, 8 single\n"; got != want {
		t.Errorf("of one pool:\n%swant\n%s", got, want)
	}
	// Nodes that are kept for a job that waits are nobody else's, unless it ends before.
	d.submit(testJob("wide", 2, 8, time.Hour))
	d.pass()
	limited := tried()
	limited.TimeLimit = structs.Duration(time.Hour)
	kept, short := ask(tried()), ask(limited)
	if kept == short {
		t.Errorf("what is kept for a job that waits is given to any other:\n%s", kept)
	}
	// A quota bounds what its project could start.
	d.board.PutProject("lab", &structs.Project{Name: "lab", Quotas: []structs.Quota{{Kind: "nvidia/gpu", Maximum: new(int)}}})
	if got, want := ask(tried()), "A800 of 8: 19 free, 0 on one node; 0 whole, 0 half, 0 single\nH800 of 4: 8 free, 0 on one node; 0 whole, 0 half, 0 single\n"; got != want {
		t.Errorf("without quota:\n%swant\n%s", got, want)
	}
}

// What is said to start does, and one more does not: asked of the board one by one.
func TestCouldStartAgreesWithPasses(t *testing.T) {
	in := crowd(30, 20, 0)
	list := CouldStart(in.Board.Clone(), tried(), start, 1)
	if len(list) != 1 || list[0].Single == 0 {
		t.Fatalf("%+v", list)
	}
	for _, size := range []struct{ cards, told int }{{8, list[0].Whole}, {4, list[0].Half}, {1, list[0].Single}} {
		board := in.Board.Clone()
		starts := 0
		for i := range size.told + 1 {
			job := tried()
			job.ID, job.Project = fmt.Sprint("one-", i), tried().Project
			job.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Model: "A800", Count: size.cards}}
			board.Submit(job, &structs.Subjob{JobID: job.ID, State: structs.JobQueued, QueuedAt: start, CreateIndex: 1 << 40, Place: uint64(i)})
			plan := board.Pass(start, 1)
			starts += len(slices.DeleteFunc(plan.Gangs, func(g structs.GangPlan) bool { return g.JobID != job.ID }))
		}
		if starts != size.told {
			t.Errorf("%d jobs with %d cards start, and %d were told", starts, size.cards, size.told)
		}
	}
}

// BenchmarkCouldStart tries what could start on a busy cluster.
func BenchmarkCouldStart(b *testing.B) {
	for _, size := range []struct{ nodes, running, queued int }{{410, 300, 0}, {410, 1000, 1000}} {
		b.Run(fmt.Sprintf("nodes=%d/running=%d/queued=%d", size.nodes, size.running, size.queued), func(b *testing.B) {
			in := crowd(size.nodes, size.running, size.queued)
			CouldStart(in.Board.Clone(), tried(), start, 1) // run times are estimated once
			best := time.Hour
			for b.Loop() {
				before := cpu()
				if list := CouldStart(in.Board.Clone(), tried(), start, 1); len(list) != 1 {
					b.Fatal(len(list))
				}
				best = min(best, cpu()-before)
			}
			b.ReportMetric(float64(best.Microseconds())/1000, "best-cpu-ms/op")
		})
	}
}
