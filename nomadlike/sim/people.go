package sim

import (
	"fmt"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// people submit jobs, stop some, and remember what they were promised.
type people struct {
	w        *Cluster
	number   int
	asked    []*wish
	promised map[string]*wish   // by job id, once it was acknowledged
	failed   map[attemptOf]bool // attempts in which a rank failed by itself
}

// wish is one submission, with what its processes will do.
type wish struct {
	number  int
	job     *structs.Job
	tries   int
	acked   bool
	known   string // the id that was acknowledged
	runs    time.Duration
	failing float64 // probability that a rank fails by itself
}

func newPeople(w *Cluster) *people {
	return &people{w: w, promised: make(map[string]*wish), failed: make(map[attemptOf]bool)}
}

// begin spreads the submissions over the busy time.
func (p *people) begin() {
	for range p.w.config.Jobs {
		p.w.after(p.w.span(100*time.Millisecond, p.w.config.Busy*9/10), p.submit)
	}
}

// submit admits a job as server/admit does: time, id and key are fixed here.
func (p *people) submit() {
	w := p.w
	p.number++
	job := &structs.Job{
		Name: fmt.Sprintf("job-%d", p.number), Project: "default", Type: structs.JobTypeTraining,
		Priority: structs.PriorityNormal, Nodes: 1 + w.rng.IntN(3),
		Distributed: structs.Distributed{Mode: structs.ModeNone},
		Resources:   []structs.Resources{{CPU: float64(1+w.rng.IntN(8)) / 4, Memory: int64(1+w.rng.IntN(16)) << 27}},
		Task:        structs.Task{Driver: "exec", Command: "train"},
		StopGrace:   structs.Duration(w.span(500*time.Millisecond, 5*time.Second)),
		ID:          fmt.Sprintf("%032x", p.number), User: "li", SubmittedAt: w.wall(),
		IdempotencyKey: fmt.Sprintf("key-%d", p.number),
	}
	wish := &wish{number: p.number, job: job, runs: w.span(200*time.Millisecond, 30*time.Second)}
	switch w.rng.IntN(8) {
	case 0:
		job.Type, job.Batch, job.Nodes = structs.JobTypeBatch, &structs.Batch{Count: 2 + w.rng.IntN(6)}, 1
	case 1:
		job.Priority = structs.PriorityUrgent
	case 2:
		job.TimeLimit = structs.Duration(w.span(time.Second, 10*time.Second))
	case 3:
		job.Resources[0].Ports = []structs.PortRequest{{Name: "web"}}
		job.Distributed.Mode = structs.ModePyTorch
	case 4:
		job.Nodes = w.config.Nodes + 1 // can never start as the cluster is built
	}
	if p.number%rangeEvery == rangeFirst && job.Batch == nil {
		p.stretch(wish)
	}
	if p.number%3 == 0 {
		job.Fencing = structs.FencingStrict
	}
	if w.chance(0.3) {
		wish.failing = 0.5
		job.Restart = &structs.Restart{MaxRestarts: w.rng.IntN(3)}
		if w.chance(0.5) {
			job.Restart, job.Checkpoint = nil, &structs.Checkpoint{MaxResumes: w.rng.IntN(3), Signal: "SIGUSR1", Grace: structs.Duration(time.Second)}
		}
	}
	if w.chance(0.5) {
		job.Debug = &structs.Debug{Hold: structs.Duration(w.span(time.Second, 40*time.Second))}
		w.after(w.span(time.Second, 60*time.Second), func() { p.release(wish) })
	}
	p.asked = append(p.asked, wish)
	p.send(wish)
	if w.chance(0.2) {
		w.after(w.span(time.Second, 20*time.Second), func() { p.pause(wish) })
	}
	if w.chance(0.15) {
		w.after(w.span(time.Second, 20*time.Second), func() { p.stop(wish) })
	}
}

// send proposes a submission, again and again with the same key until its
// outcome is known.
func (p *people) send(wish *wish) {
	if p.w.config.Break == PlantForgottenAck && wish.number == 5 {
		p.promise(wish, wish.job.ID)
		return
	}
	wish.tries++
	job := wish.job
	if wish.tries > 1 { // whoever repeats a request does not know the id of the first
		copied := *job
		copied.ID = fmt.Sprintf("%028x%04x", wish.number, wish.tries)
		job = &copied
	}
	p.w.log.propose(structs.CommandJobSubmit, "li", &structs.JobSubmit{Job: p.sent(job)}, func(result structs.ApplyResult, err error) {
		if err != nil {
			p.w.after(p.w.span(100*time.Millisecond, 2*time.Second), func() { p.send(wish) })
			return
		}
		if result.Err != nil {
			p.w.fail("submission of %s refused: %v", wish.job.Name, result.Err)
			return
		}
		p.promise(wish, result.JobID)
	})
}

func (p *people) promise(wish *wish, id string) {
	if wish.acked && wish.known != id {
		p.w.fail("I5: key %s was acknowledged as %s and as %s", wish.job.IdempotencyKey, wish.known, id)
	}
	wish.acked, wish.known = true, id
	p.promised[id] = wish
}

func (p *people) stop(wish *wish) {
	if !wish.acked {
		return
	}
	p.w.log.propose(structs.CommandJobStop, "li", &structs.JobStop{JobID: wish.known, Reason: "not needed"}, func(structs.ApplyResult, error) {})
}

// release ends the debug holds of a job, or frees their devices.
func (p *people) release(wish *wish) {
	what := structs.ReleaseHold
	if p.w.chance(0.5) {
		what = structs.ReleaseDevices
	}
	if wish.acked {
		p.w.log.propose(structs.CommandJobStop, "li", &structs.JobStop{JobID: wish.known, Release: what}, func(structs.ApplyResult, error) {})
	}
}

// pause pauses a job and lets it go on later, or finishes it.
func (p *people) pause(wish *wish) {
	if !wish.acked {
		return
	}
	propose := func(kind structs.CommandKind, body any) {
		p.w.log.propose(kind, "li", body, func(structs.ApplyResult, error) {})
	}
	if p.w.chance(0.2) {
		propose(structs.CommandJobFinish, &structs.JobFinish{JobID: wish.known})
		return
	}
	propose(structs.CommandJobControl, &structs.JobControl{JobID: wish.known, Paused: true})
	p.w.after(p.w.span(100*time.Millisecond, 3*time.Second), func() {
		propose(structs.CommandJobControl, &structs.JobControl{JobID: wish.known, Continue: true})
	})
}

// plan decides what a process that has just started will do.
func (p *people) plan(m *machine, allocID string) {
	a := p.w.log.state().Alloc(allocID)
	if a == nil {
		return // checkStart has told
	}
	wish := p.promised[a.JobID]
	runs, failing := p.w.span(200*time.Millisecond, 5*time.Second), 0.0
	if wish != nil {
		runs, failing = wish.runs, wish.failing
	}
	result := driver.ExitResult{}
	if p.w.chance(failing / float64(max(1, len(slices.Collect(p.w.log.state().Gang(a.JobID, a.Subjob, a.Attempt)))))) {
		result.Code, runs = 3, p.w.span(50*time.Millisecond, runs)
		p.failed[attemptOf{a.JobID, a.Subjob, a.Attempt}] = true
	}
	if wish != nil && wish.job.Checkpoint != nil {
		m.save(allocID, m.processes[allocID], a.Attempt)
	}
	m.exit(allocID, runs, result)
}
