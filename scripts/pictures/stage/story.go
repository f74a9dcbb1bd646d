package stage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// How long a gang takes from its placement until its ranks are prepared and run.
const (
	preparing = 35 * time.Second
	launching = 50 * time.Second
)

// agenda is what is still to happen, by time; what happens at one time happens in the
// order in which it was planned.
type agenda []entry

type entry struct {
	at time.Time
	do func(context.Context) error
}

func (a *agenda) add(at time.Time, do func(context.Context) error) {
	i, _ := slices.BinarySearchFunc(*a, at, func(e entry, t time.Time) int { return cmp.Or(e.at.Compare(t), -1) })
	*a = slices.Insert(*a, i, entry{at, do})
}

// before is a time before Now.
func before(d time.Duration) time.Time { return Now.Add(-d) }

// play is a job of the story, and how it goes.
type play struct {
	name, user string
	hcl        string
	at         time.Duration       // before Now
	runs       time.Duration       // 0: still at Now
	ends       structs.AllocStatus // "": complete
	exit       int
	rank       int    // that fails first
	holds      string // the step at which its start stands at Now
	percent    int

	id   string
	seen map[string]bool // allocations that were taken up
}

// plan has a job submitted at its time.
func (s *Stage) plan(p *play) {
	p.seen = map[string]bool{}
	s.plays = append(s.plays, p)
	s.agenda.add(before(p.at), func(ctx context.Context) error {
		made, err := s.people[p.user].SubmitJob(ctx, api.JobRequest{HCL: p.hcl}, "story-"+p.name)
		if err != nil {
			return fmt.Errorf("submit %s: %w", p.name, err)
		}
		p.id = made.JobID
		return nil
	})
}

// job is the id of a job that was submitted.
func (s *Stage) job(name string) string {
	for _, p := range s.plays {
		if p.name == name {
			return p.id
		}
	}
	return ""
}

// pass lets time pass until Now.
func (s *Stage) pass(ctx context.Context) error {
	for len(s.agenda) > 0 && !s.agenda[0].at.After(Now) {
		next := s.agenda[0]
		s.agenda = s.agenda[1:]
		s.replica.SetNow(next.at)
		if err := next.do(ctx); err != nil {
			return err
		}
		if len(s.agenda) > 0 && s.agenda[0].at.Equal(next.at) {
			continue
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	s.replica.SetNow(Now)
	if err := s.settle(ctx); err != nil {
		return err
	}
	return s.foresee(ctx)
}

// settle places what can start, and has its nodes take it up.
func (s *Stage) settle(ctx context.Context) error {
	if err := s.replica.Schedule(ctx); err != nil {
		return err
	}
	now := s.replica.Now()
	for _, p := range s.plays {
		if p.id == "" {
			continue
		}
		gangs := map[int][]*structs.Allocation{}
		for alloc := range s.replica.Store().Snapshot().AllocsOfJob(p.id) {
			if !p.seen[alloc.ID] && !alloc.Status.Terminal() {
				p.seen[alloc.ID] = true
				gangs[alloc.Subjob] = append(gangs[alloc.Subjob], alloc)
			}
		}
		for subjob := range len(p.seen) + 1 {
			if gang := gangs[subjob]; len(gang) > 0 {
				s.start(now, p, gang)
			}
		}
	}
	return nil
}

// start plans how an attempt goes.
func (s *Stage) start(now time.Time, p *play, gang []*structs.Allocation) {
	if p.holds != "" {
		s.agenda.add(now.Add(time.Second), func(ctx context.Context) error {
			return s.report(ctx, gang, func(r *structs.AllocReport) {
				r.Status, r.Step, r.Progress = structs.AllocPreparing, p.holds, p.percent
			})
		})
		return
	}
	s.agenda.add(now.Add(preparing), func(ctx context.Context) error {
		return s.report(ctx, gang, func(r *structs.AllocReport) { r.Status = structs.AllocPrepared })
	})
	s.agenda.add(now.Add(launching), func(ctx context.Context) error {
		return s.report(ctx, gang, func(r *structs.AllocReport) { r.Status = structs.AllocRunning })
	})
	if p.runs == 0 {
		return
	}
	s.agenda.add(now.Add(launching+p.runs), func(ctx context.Context) error {
		if p.ends != structs.AllocFailed {
			return s.report(ctx, gang, func(r *structs.AllocReport) { r.Status = cmp.Or(p.ends, structs.AllocComplete) })
		}
		err := s.report(ctx, gang[p.rank:p.rank+1], func(r *structs.AllocReport) { r.Status, r.ExitCode = structs.AllocFailed, p.exit })
		if err != nil {
			return err
		}
		return s.report(ctx, gang, func(r *structs.AllocReport) { r.Status, r.Signal = structs.AllocKilled, 15 })
	})
}

// report has nodes say how allocations are that live still. What fill leaves out is
// as it was.
func (s *Stage) report(ctx context.Context, gang []*structs.Allocation, fill func(*structs.AllocReport)) error {
	now := structs.At(s.replica.Now())
	for _, alloc := range gang {
		known := s.replica.Store().Snapshot().Alloc(alloc.ID)
		if known == nil || known.Status.Terminal() {
			continue
		}
		report := structs.AllocReport{AllocID: alloc.ID, Attempt: alloc.Attempt, StartedAt: known.StartedAt}
		fill(&report)
		switch {
		case report.Status == structs.AllocRunning && known.StartedAt == 0:
			report.StartedAt = now
		case report.Status.Terminal():
			report.FinishedAt = now
		}
		if err := s.put(ctx, structs.CommandAllocReports, &structs.AllocReports{NodeID: alloc.NodeID, Reports: []structs.AllocReport{report}}); err != nil {
			return err
		}
	}
	return nil
}

// note has rank 0 of a job's live attempt tell something.
func (s *Stage) note(ctx context.Context, name string, fill func(*structs.AllocNote)) error {
	for alloc := range s.replica.Store().Snapshot().AllocsOfJob(s.job(name)) {
		if alloc.Status != structs.AllocRunning || alloc.Rank != 0 {
			continue
		}
		note := structs.AllocNote{AllocID: alloc.ID, Attempt: alloc.Attempt, Seq: alloc.NoteSeq + 1, At: structs.At(s.replica.Now())}
		fill(&note)
		if err := s.put(ctx, structs.CommandAllocReports, &structs.AllocReports{NodeID: alloc.NodeID, Notes: []structs.AllocNote{note}}); err != nil {
			return err
		}
	}
	return nil
}

// obey has the nodes of a job do what its control says.
func (s *Stage) obey(ctx context.Context, name string) error {
	for alloc := range s.replica.Store().Snapshot().AllocsOfJob(s.job(name)) {
		if alloc.Status != structs.AllocRunning || alloc.Control == nil {
			continue
		}
		err := s.report(ctx, []*structs.Allocation{alloc}, func(r *structs.AllocReport) {
			r.Status, r.Control = alloc.Status, &structs.ControlAnswer{Seq: alloc.Control.Seq}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// foresee keeps when everything that waits will start, as the leader does.
func (s *Stage) foresee(ctx context.Context) error {
	shown, err := s.replica.ForecastSnapshot(ctx, s.replica.Store().Snapshot().Index(), "")
	if err != nil {
		return err
	}
	var kept structs.Forecasts
	for i := range shown.Starts {
		if shown.Starts[i].P50 != 0 {
			kept.Forecasts = append(kept.Forecasts, shown.Starts[i].Forecast(shown.At))
		}
	}
	if len(kept.Forecasts) == 0 {
		return nil
	}
	return s.put(ctx, structs.CommandForecasts, &kept)
}
