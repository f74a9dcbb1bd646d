package forecast

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// anyCluster is a cluster of a few nodes in up to two pools, on which jobs
// start and end for a while.
func anyCluster(t *rapid.T, settings scheduler.Settings, whole bool) *drive {
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	d := newDrive(settings, 0, 0)
	for i := range nodes {
		n := testNode(fmt.Sprintf("n%d", i), 8)
		if i >= 3 {
			n.Pool = "b"
		}
		d.board.PutNode(n.ID, n, nil)
	}
	for i := range rapid.IntRange(0, 25).Draw(t, "steps") {
		d.now = d.now.Add(time.Duration(rapid.IntRange(0, 1800).Draw(t, "gap")) * time.Second)
		d.submit(anyJob(t, fmt.Sprintf("j%02d", i), whole))
		if rapid.Bool().Draw(t, "pass") {
			d.pass()
		}
		if rapid.IntRange(0, 3).Draw(t, "end") == 0 {
			for r := range d.board.Running() {
				d.board.End(r.Subjob.JobID, r.Subjob.Index)
				break
			}
		}
	}
	if !whole {
		anyWindows(t, d)
	}
	return d
}

// anyJob is a job that fits the clusters above more often than not.
func anyJob(t *rapid.T, id string, whole bool) *structs.Job {
	devices := 8
	if !whole {
		devices = rapid.SampledFrom([]int{1, 1, 2, 4, 8, 8}).Draw(t, "devices")
	}
	nodes := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "count")
	j := testJob(id, nodes, devices, time.Duration(rapid.IntRange(1, 12).Draw(t, "limit"))*time.Hour)
	if rapid.IntRange(0, 2).Draw(t, "pool") == 0 {
		j.Placement.Pool = "b"
	} else {
		j.Placement.Pool = structs.PoolDefault
	}
	j.User = rapid.SampledFrom([]string{"ann", "bob", "cai"}).Draw(t, "user")
	j.Project = rapid.SampledFrom([]string{"lab", "web"}).Draw(t, "project")
	if !whole && rapid.IntRange(0, 5).Draw(t, "urgent") == 0 {
		j.Priority = structs.PriorityUrgent
	}
	if !whole && rapid.IntRange(0, 3).Draw(t, "soft") == 0 {
		j.Preemptible = true
	}
	return j
}

// anyModel has learned some runs.
func anyModel(t *rapid.T, d *drive) *predict.Outlook {
	model := predict.NewModel()
	for i := range rapid.IntRange(0, 30).Draw(t, "runs") {
		model.Learn(predict.Run{
			Project: "lab", User: rapid.SampledFrom([]string{"ann", "bob", "cai"}).Draw(t, "who"), Name: "j", Pool: structs.PoolDefault,
			Devices: rapid.SampledFrom([]int{1, 8, 16}).Draw(t, "size"), Nodes: 1,
			Runtime: time.Duration(rapid.IntRange(10, 40000).Draw(t, "ran")) * time.Second,
			Outcome: structs.OutcomeSucceeded, EndedAt: start.Add(-time.Duration(100-i) * time.Hour),
		})
	}
	return model.Outlook(d.now, func(yield func(predict.Ongoing) bool) {
		for r := range d.board.Running() {
			if !yield(predict.Ongoing{Job: r.Job, Since: r.PlacedAt}) {
				return
			}
		}
	})
}

// truth is a run time for each job that depends on its id alone.
func truth(job *structs.Job, _ int) time.Duration {
	return time.Duration(1+mix(7, identityOf(&structs.Subjob{JobID: job.ID}))%20000) * time.Second
}

// TestForecastsAreSane is I16, for every kind of answer.
func TestForecastsAreSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := scheduler.Settings{Passing: rapid.SampledFrom([]scheduler.Passing{scheduler.Backfill, scheduler.Easy, scheduler.NoPassing}).Draw(t, "passing")}
		d := anyCluster(t, settings, false)
		in := Input{Futures: rapid.IntRange(1, 12).Draw(t, "futures"), Exact: rapid.Bool().Draw(t, "exact")}
		if rapid.Bool().Draw(t, "learned") {
			settings.Model = anyModel(t, d)
		}
		if rapid.Bool().Draw(t, "corrected") {
			in.Calibration = wild{}
		}
		if rapid.IntRange(0, 4).Draw(t, "near") == 0 {
			in.Horizon = 2 * time.Hour
		}
		in.Board = d.ready(settings)
		f := Look(in, d.now, 3)
		starts := f.Queue()
		latest := map[likeness]*Start{}
		for i := range starts {
			s := &starts[i]
			sane(t, d.now, s.When)
			if s.Verdict == VerdictNow != (s.Wait == nil) {
				t.Fatalf("%s: %s because of %v", s.JobID, s.Verdict, s.Wait)
			}
			if s.Verdict != VerdictLater {
				continue
			}
			for _, help := range f.Helps(s.JobID, s.Subjob) {
				if s.Beyond == BeyondNone && (help.P50 >= s.P50 || help.P90 > s.P90) {
					t.Fatalf("%s helps %s nothing: %v to %v, before %v to %v", help.ID, s.JobID, help.P50.Time(), help.P90.Time(), s.P50.Time(), s.P90.Time())
				}
			}
			key := f.likenessOf(&f.members[i])
			if b := latest[key]; b != nil && (b.P50 > s.P50 || b.P90 > s.P90) {
				t.Fatalf("%s stands behind %s, is equal to it and comes first", s.JobID, b.JobID)
			}
			latest[key] = s
		}
		job := anyJob(t, "", false)
		answer := f.Job(job)
		sane(t, d.now, answer.When)
		now := false
		for _, row := range answer.Specs {
			sane(t, d.now, row.When)
			now = now || row.Verdict == VerdictNow
		}
		if now != (answer.Verdict == VerdictNow) {
			t.Fatalf("%s, its rows %+v", answer.Verdict, answer.Specs)
		}
		for _, help := range answer.Helps {
			sane(t, d.now, help.When)
			if answer.P50 != 0 && help.P50 >= answer.P50 {
				t.Fatalf("%s helps nothing: %v, before %v", help.ID, help.P50.Time(), answer.P50.Time())
			}
		}
		for _, row := range f.Timeline(0, nil).Rows {
			for _, bar := range row.Bars {
				if bar.P50 != 0 && bar.P90 != 0 && bar.P50 > bar.P90 || bar.To != 0 && bar.To < bar.From && bar.Kind != BarReserved {
					t.Fatalf("%+v", bar)
				}
			}
		}
		in.Board = in.Board.Clone()
		if diff := cmp.Diff(starts, Queue(in, d.now, 3)); diff != "" {
			t.Fatalf("another look says something else: %s", diff)
		}
	})
}

// sane checks what must hold for every start that is told.
func sane(t *rapid.T, now structs.UnixNano, w When) {
	t.Helper()
	switch w.Verdict {
	case VerdictNever, VerdictUnknown:
		if w != (When{Verdict: w.Verdict}) {
			t.Fatalf("%+v", w)
		}
	case VerdictNow, VerdictLater:
		if w.P50 < now || w.P90 < w.P50 || w.Point < now || w.P90 > now.Add(HorizonMax) {
			t.Fatalf("%+v at %d", w, now)
		}
	default:
		t.Fatalf("%+v", w)
	}
}

// wild is a calibration that returns anything.
type wild struct{}

func (wild) Correct(about About, waits []time.Duration, _ time.Duration) (point, p50, p90 time.Duration) {
	if len(about.Features) != Features || !slices.IsSorted(waits) {
		panic("features or waits are not what was promised")
	}
	return -time.Hour, waits[len(waits)-1] * 3, 0
}

// TestStrictOrderIsExact: with known run times and nobody passing anybody, the
// forecast is what the plainest of simulations finds.
func TestStrictOrderIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := scheduler.Settings{Passing: scheduler.NoPassing}
		d := anyCluster(t, settings, true)
		d.pass()
		d.submit(anyJob(t, "last", true)) // somebody who came this instant
		newcomer := anyJob(t, "", true)
		settings.Runtime = truth
		in := Input{Board: d.ready(settings)}
		want := plain(d, newcomer)
		f := Look(in, d.now, 1)
		for _, s := range f.Queue() {
			at, known := want[s.JobID]
			check(t, s.JobID, s.When, at, known)
			one, ok := One(in, s.JobID, 0, d.now, 1)
			if diff := cmp.Diff(s, one); !ok || diff != "" {
				t.Fatalf("asked alone about %s: %s", s.JobID, diff)
			}
		}
		at, known := want[""]
		check(t, "the newcomer", f.Job(newcomer).When, at, known)
	})
}

func check(t *rapid.T, who string, w When, at structs.UnixNano, known bool) {
	t.Helper()
	if !known {
		if w.Verdict != VerdictNever {
			t.Fatalf("%s is forecast for %v and never fits", who, w.P50.Time())
		}
		return
	}
	if w.Point != at || w.P50 != at || w.P90 != at {
		t.Fatalf("%s starts at %v: %+v", who, at.Time(), w)
	}
}

// plain simulates pools of whole nodes in strict order: count what is free.
func plain(d *drive, newcomer *structs.Job) map[string]structs.UnixNano {
	starts := map[string]structs.UnixNano{}
	for _, pool := range []string{structs.PoolDefault, "b"} {
		total, free := 0, 0
		for node, usage := range d.board.Nodes() {
			if node.PoolName() == pool {
				total++
				if usage == nil || usage.Allocs == 0 {
					free++
				}
			}
		}
		type ending struct {
			at    structs.UnixNano
			nodes int
		}
		var ends []ending
		for r := range d.board.Running() {
			if poolOf(r.Job) == pool {
				ends = append(ends, ending{max(r.PlacedAt.Add(truth(r.Job, 0)), d.now), len(r.Nodes)})
			}
		}
		var queue []*structs.Job
		for q := range d.board.Queued() {
			if q.Pool == pool {
				queue = append(queue, q.Job)
			}
		}
		if poolOf(newcomer) == pool {
			queue = append(queue, newcomer)
		}
		now := d.now
		for _, job := range queue {
			if job.Nodes > total {
				continue
			}
			for free < job.Nodes {
				slices.SortFunc(ends, func(a, b ending) int { return int(a.at - b.at) })
				now = max(now, ends[0].at)
				free += ends[0].nodes
				ends = ends[1:]
			}
			starts[job.ID] = now
			free -= job.Nodes
			ends = append(ends, ending{now.Add(truth(job, 0)), job.Nodes})
		}
	}
	return starts
}

func poolOf(job *structs.Job) string { return job.Placement.Pool }

// TestNewcomerMatchesReplay: a job that goes last is told what running the
// scheduler again with it would find, future by future.
func TestNewcomerMatchesReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := scheduler.Settings{Passing: rapid.SampledFrom([]scheduler.Passing{scheduler.Backfill, scheduler.Easy, scheduler.NoPassing}).Draw(t, "passing")}
		d := anyCluster(t, settings, false)
		d.pass()
		if rapid.Bool().Draw(t, "learned") {
			settings.Model = anyModel(t, d)
		}
		f := Look(Input{Board: d.ready(settings), Futures: 5, Exact: true}, d.now, 1)
		job, subjob := f.admitted(anyJob(t, "", false))
		job.Priority = structs.PriorityNormal
		got := f.try(job, subjob, 1)
		_, fast := f.whenOf(job, subjob, 0, &got)
		if fast == nil || got.gang != nil || slices.ContainsFunc(f.members, func(m member) bool { return m.now }) {
			return // never, now, or others start in the same pass
		}
		if slices.ContainsFunc(f.view().sites, func(s site) bool { return s.nominatedFor != "" }) {
			return // a good guess, see newcomer
		}
		slow := f.replay(job)
		away := slices.ContainsFunc(f.view().sites, func(s site) bool { return s.node != nil && s.node.Maintained() != nil }) &&
			slices.ContainsFunc(f.members[:f.queued], func(m member) bool { return !m.stuck })
		for i := range slow {
			if slices.ContainsFunc(f.futures[i].occupancies, func(h occupancy) bool { return h.cut }) {
				continue // what is preempted comes back beside the newcomer: a good guess, too
			}
			if away || slices.ContainsFunc(f.steps, func(s windowStep) bool { return f.closes(&s) && s.at <= min(fast[i].at, slow[i].at) }) {
				continue // who waits for nodes that a window has closed is in nobody's way: a good guess, too
			}
			if fast[i] != slow[i] {
				t.Fatalf("future %d: %+v, by running it %+v", i, fast[i], slow[i])
			}
		}
	})
}

// closes reports whether a window has begun by a step that has not at now.
func (f *Futures) closes(s *windowStep) bool {
	return slices.ContainsFunc(s.nodes, func(n *structs.Node) bool {
		now, _ := f.base.Node(n.ID)
		return slices.ContainsFunc(n.Maintenance, func(w structs.NodeMaintenance) bool { return w.Begun && !slices.Contains(now.Maintenance, w) })
	})
}
