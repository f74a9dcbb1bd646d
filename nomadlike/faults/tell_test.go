package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

var start = structs.At(time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC))

// at is so many seconds after the beginning.
func at(seconds float64) structs.UnixNano {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// world is a job on some nodes with four cards each, as the state keeps it.
type world struct{ Input }

func newWorld(checkpoint bool) *world {
	w := &world{Input{Job: &structs.Job{ID: "job", Name: "train"}, Now: at(20_000), Steps: map[string]Steps{}}}
	if checkpoint {
		w.Job.Checkpoint = &structs.Checkpoint{MaxResumes: 3}
	}
	return w
}

// attempt adds one that ran on nodes; 0 for what did not happen.
func (w *world) attempt(placed, running, ending, ended float64, outcome structs.Outcome, cause *structs.Reason, nodes ...string) *structs.Attempt {
	set := func(seconds float64) structs.UnixNano {
		if seconds == 0 {
			return 0
		}
		return at(seconds)
	}
	a := &structs.Attempt{
		JobID: "job", Number: uint64(len(w.Attempts) + 1), Outcome: outcome, Cause: cause,
		PlacedAt: set(placed), RunningAt: set(running), EndingAt: set(ending), EndedAt: set(ended),
	}
	for rank, node := range nodes {
		w.Allocs = append(w.Allocs, &structs.Allocation{
			ID: fmt.Sprintf("a%d-%d", a.Number, rank), JobID: "job", Attempt: a.Number, Rank: rank, NodeID: "id-" + node, NodeName: node,
			Devices: []string{"0", "1", "2", "3"}, Status: structs.AllocRunning, StartedAt: set(running),
		})
	}
	w.Attempts = append(w.Attempts, a)
	return a
}

func (w *world) alloc(id string) *structs.Allocation {
	for _, alloc := range w.Allocs {
		if alloc.ID == id {
			return alloc
		}
	}
	return nil
}

// end has a rank end.
func (w *world) end(id string, status structs.AllocStatus, seconds float64, code, signal int) *structs.Allocation {
	alloc := w.alloc(id)
	alloc.Status, alloc.ExitCode, alloc.Signal = status, code, signal
	if status != structs.AllocLost {
		alloc.FinishedAt = at(seconds)
	}
	if status == structs.AllocKilled {
		alloc.Desired = structs.DesiredStop
		if w.Job.Checkpoint != nil {
			alloc.Stop = &structs.StopOrder{Signal: "SIGUSR1", Grace: structs.Duration(5 * time.Minute)}
		}
	}
	return alloc
}

func (w *world) event(seconds float64, id string, attempt uint64, alloc string, params ...any) {
	w.Events = append(w.Events, &structs.Event{Time: at(seconds), ID: id, Attempt: attempt, AllocID: alloc, Params: structs.NewReason(id, params...).Params})
}

// stories are faults of every sort.
func stories() []struct {
	name  string
	world *world
} {
	lost := newWorld(true)
	lost.attempt(100, 130, 6247, 6259, structs.OutcomeLost, structs.NewReason("reason.node_lost", "node", "node-07"), "node-02", "node-07").CheckpointAt = at(5900)
	lost.attempt(6261, 6290, 0, 0, "", nil, "node-02", "node-09")
	lost.end("a1-1", structs.AllocLost, 0, 0, 0)
	lost.end("a1-0", structs.AllocKilled, 6258, 0, 10)
	lost.event(5900, "event.alloc.checkpoint", 1, "a1-0", "rank", "train-1-0", "path", "/ckpt/14000", "step", 14000)
	lost.event(6247, "event.alloc.lost", 1, "a1-1", "rank", "train-1-1", "node", "node-07")
	lost.event(6255, "event.alloc.checkpoint", 1, "a1-0", "rank", "train-1-0", "path", "/ckpt/15440", "step", 15440)
	lost.Attempts[0].CheckpointAt = at(6255)
	lost.Steps["a1-0"] = Steps{First: 1, Last: 15450}
	lost.Steps["a2-0"] = Steps{First: 15441, FirstAt: at(6331), Last: 18000}
	lost.alloc("a2-0").Resume = &structs.SavedCheckpoint{Step: 15440}

	failed := newWorld(false)
	failed.attempt(10, 20, 1280.02, 1285, structs.OutcomeFailed, structs.NewReason("reason.rank_failed", "rank", "train-1-1", "node", "node-04", "exit_code", 1), "node-03", "node-04").FirstFailed = "a1-1"
	failed.attempt(1400, 1410, 2000.5, 2001, structs.OutcomeFailed, structs.NewReason("reason.rank_failed", "rank", "train-2-0", "node", "node-03", "exit_code", 1), "node-03", "node-04").FirstFailed = "a2-0"
	failed.end("a1-1", structs.AllocFailed, 1280, 1, 0)
	failed.end("a1-0", structs.AllocKilled, 1284, 0, 15)
	failed.end("a2-0", structs.AllocFailed, 2000, 0, 9)
	failed.end("a2-1", structs.AllocKilled, 2000.9, 0, 15)
	failed.event(1280.02, "event.alloc.failed", 1, "a1-1", "rank", "train-1-1", "node", "node-04", "exit_code", 1)
	failed.event(2000.5, "event.alloc.failed_signal", 2, "a2-0", "rank", "train-2-0", "node", "node-03", "exit_code", 0, "signal", 9)

	hangs := newWorld(true)
	hangs.attempt(10, 20, 2000, 2300, structs.OutcomeFailed, structs.NewReason("reason.hung", "silent", "5m0s"), "node-03")
	hangs.attempt(2301, 0, 0, 0, "", nil, "node-05")
	hangs.end("a1-0", structs.AllocKilled, 2300, 0, 9)
	hangs.event(2000, "event.attempt.hangs", 1, "", "attempt", 1, "silent", "5m0s", "limit", "4m0s", "step", 712)

	ending := newWorld(true)
	ending.Now = at(330)
	ending.attempt(10, 20, 300, 0, structs.OutcomeLost, structs.NewReason("reason.node_lost", "node", "node-08"), "node-03", "node-08")
	ending.end("a1-1", structs.AllocLost, 0, 0, 0)
	ending.Dropped = true

	unrun := newWorld(false)
	unrun.attempt(10, 0, 15, 15, structs.OutcomeFailed, structs.NewReason("reason.rank_failed", "rank", "train-1-0", "node", "node-03", "exit_code", 0), "node-03").FirstFailed = "a1-0"
	unrun.attempt(20, 0, 26, 26, structs.OutcomeFailed, structs.NewReason("reason.rank_failed", "rank", "train-2-0", "node", "node-03", "exit_code", 0), "node-03").FirstFailed = "a2-0"
	unrun.end("a1-0", structs.AllocFailed, 15.5, 0, 0).StartedAt = 0 // its node's clock is ahead
	unrun.end("a2-0", structs.AllocFailed, 25.5, 0, 0).StartedAt = 0
	unrun.event(15, "event.alloc.failed_unrun", 1, "a1-0", "rank", "train-1-0", "node", "node-03")
	unrun.event(26, "event.alloc.failed_unrun", 2, "a2-0", "rank", "train-2-0", "node", "node-03")

	well := newWorld(false)
	well.attempt(10, 20, 300, 301, structs.OutcomeSucceeded, nil, "node-03")
	return []struct {
		name  string
		world *world
	}{
		{"a node is lost, the others save and go on elsewhere", lost},
		{"a rank fails twice; the second time there is no restart left", failed},
		{"a gang hangs and is placed elsewhere", hangs},
		{"a node is lost and the last rank has not stopped", ending},
		{"a command that never runs", unrun},
		{"no fault", well},
	}
}

// TestStories: what people read of each sort of fault, in both languages.
func TestStories(t *testing.T) {
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		var out strings.Builder
		for _, story := range stories() {
			fmt.Fprintf(&out, "## %s\n", story.name)
			for _, fault := range Tell(&story.world.Input) {
				write(&out, language, &fault)
			}
			out.WriteByte('\n')
		}
		golden.Assert(t, "testdata/stories."+string(language)+".golden", out.String())
	}
}

func write(out *strings.Builder, language messages.Language, f *Fault) {
	fmt.Fprintf(out, "attempt %d %s, rank %d of %q, next %d\n", f.Attempt, f.Outcome, f.Rank, f.Node, f.Next)
	for _, m := range f.Moments {
		when, took := "            ", ""
		if m.At != 0 {
			when = m.At.Time().Format("15:04:05.000")
		}
		if m.Took != 0 {
			took = "+" + m.Took.Std().String()
		}
		fmt.Fprintf(out, "  %-8s %s %10s  %s\n", m.Stage, when, took, messages.Text(language, m.ID, m.Params))
	}
	l := f.Loss
	fmt.Fprintf(out, "  lost %.3f h on %d devices of %d nodes: work %s (saved: %t), stopping %s, starting %s; waited %s; %d steps again; open: %t\n",
		l.Hours, l.Devices, l.Nodes, l.Work.Std(), l.Saved, l.Stopping.Std(), l.Starting.Std(), l.Waiting.Std(), l.Steps, l.Open)
}

// Whatever is known of a job, moments do not run backwards past what is told of
// them, nothing is negative, and every text is in the catalogue.
func TestStoriesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Bool().Draw(t, "checkpoint"))
		w.Dropped = rapid.Bool().Draw(t, "dropped")
		moment := rapid.Float64Range(0, 10_000)
		outcomes := rapid.SampledFrom([]structs.Outcome{structs.OutcomeFailed, structs.OutcomeLost, structs.OutcomeSucceeded, ""})
		statuses := rapid.SampledFrom([]structs.AllocStatus{structs.AllocFailed, structs.AllocLost, structs.AllocKilled, structs.AllocRunning})
		ids := rapid.SampledFrom([]string{"event.alloc.failed", "event.alloc.lost", "event.alloc.checkpoint", "event.alloc.evicted", "event.attempt.hangs"})
		for n := range rapid.IntRange(0, 4).Draw(t, "attempts") {
			a := w.attempt(moment.Draw(t, "placed"), moment.Draw(t, "running"), moment.Draw(t, "ending"), moment.Draw(t, "ended"), outcomes.Draw(t, "outcome"),
				structs.NewReason(rapid.SampledFrom([]string{"reason.hung", "reason.slow", "reason.node_lost"}).Draw(t, "cause")), "n1", "n2")
			for rank := range 2 {
				w.end(fmt.Sprintf("a%d-%d", n+1, rank), statuses.Draw(t, "status"), moment.Draw(t, "finished"), 1, 0)
			}
			a.FirstFailed = rapid.SampledFrom([]string{"", fmt.Sprintf("a%d-0", n+1)}).Draw(t, "first")
			w.event(moment.Draw(t, "event"), ids.Draw(t, "id"), a.Number, "", "silent", "3s", "rank", "r", "node", "n", "exit_code", 1, "path", "p", "step", 1, "device", "d", "attempt", 1, "limit", "1s")
		}
		for _, fault := range Tell(&w.Input) {
			l := fault.Loss
			if l.Work < 0 || l.Stopping < 0 || l.Waiting < 0 || l.Starting < 0 || l.Steps < 0 || l.Hours < 0 {
				t.Fatalf("a loss below nothing: %+v", l)
			}
			for _, m := range fault.Moments {
				if m.Took < 0 || m.At == 0 && m.Took != 0 {
					t.Fatalf("a moment took %s: %+v", m.Took.Std(), m)
				}
				if text := messages.Text(messages.English, m.ID, m.Params); text == "" || strings.Contains(text, "{") {
					t.Fatalf("%s: %q", m.ID, text)
				}
			}
		}
	})
}
