package forecast

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// WhatIf compares the forecast of every queued subjob with what it would be
// after the changes, which are carried out at now in their order. Both are
// sampled alike, so that what differs is the changes' doing. A change that
// names something unknown, or breaks a bound, is an error for the caller.
func WhatIf(in Input, changes []Change, now structs.UnixNano, seed uint64) (Effect, error) {
	return Look(in, now, seed).WhatIf(changes)
}

// WhatIf compares with what would be after the changes. It costs another Look.
func (f *Futures) WhatIf(changes []Change) (Effect, error) {
	if len(changes) > ChangesMax {
		return Effect{}, structs.NewError(structs.CodeTooLarge, "forecast.changes_many", "count", len(changes), "max", ChangesMax)
	}
	in := f.in
	in.Board = f.start.Clone()
	then := scenario{Futures: f, board: in.Board}
	for i := range changes {
		if err := then.apply(&changes[i]); err != nil {
			return Effect{}, err
		}
	}
	return compare(f.Queue(), Look(in, f.now, f.seed).Queue()), nil
}

// compare reports what differs between two forecasts.
func compare(before, after []Start) Effect {
	effect := Effect{Shifts: []Shift{}}
	was := make(map[structs.AttemptKey]*Start, len(before))
	for i := range before {
		was[keyOf(before[i].JobID, before[i].Subjob)] = &before[i]
	}
	add := func(s *Start, b, a *When) {
		shift := Shift{JobID: s.JobID, JobName: s.JobName, Project: s.Project, Subjob: s.Subjob, Before: b, After: a}
		if b != nil && a != nil && b.P50 != 0 && a.P50 != 0 {
			shift.By = structs.Duration(a.P50.Sub(b.P50))
		}
		switch {
		case b == nil || a == nil || b.Verdict != a.Verdict || shift.By != 0:
			effect.Shifts = append(effect.Shifts, shift)
		default:
			effect.Same++
		}
		switch {
		case shift.By < 0:
			effect.Earlier++
		case shift.By > 0:
			effect.Later++
		}
	}
	for i := range after {
		s := &after[i]
		key := keyOf(s.JobID, s.Subjob)
		if b := was[key]; b != nil {
			add(s, &b.When, &s.When)
			delete(was, key)
		} else {
			add(s, nil, &s.When)
		}
	}
	for i := range before {
		if s := &before[i]; was[keyOf(s.JobID, s.Subjob)] != nil {
			add(s, &s.When, nil)
		}
	}
	slices.SortStableFunc(effect.Shifts, func(x, y Shift) int { return cmp.Compare(max(y.By, -y.By), max(x.By, -x.By)) })
	if over := len(effect.Shifts) - ShiftsMax; over > 0 {
		effect.Shifts, effect.More = effect.Shifts[:ShiftsMax], over
	}
	return effect
}

// scenario applies changes to a board.
type scenario struct {
	*Futures
	board     *scheduler.Board
	submitted int // subjobs, by changes before
}

func (p *scenario) apply(c *Change) error {
	switch c.Kind {
	case ChangeDrain:
		return p.drain(c)
	case ChangeAddNodes:
		return p.addNodes(c)
	case ChangeQuota:
		return p.quota(c)
	case ChangePriority:
		if !p.board.SetPriority(c.JobID, c.Priority) {
			return unknownJob(c.JobID)
		}
	case ChangeMove:
		return p.move(c)
	case ChangeSubmit:
		return p.submit(c)
	case ChangeStop:
		return p.stop(c)
	default:
		return structs.NewError(structs.CodeInvalid, "forecast.change_unknown", "kind", c.Kind)
	}
	return nil
}

func unknownJob(id string) error {
	return structs.NewError(structs.CodeNotFound, "forecast.job_unknown", "job", id)
}

// node finds a node by name or id.
func (p *scenario) node(name string) (*structs.Node, error) {
	for node := range p.board.Nodes() {
		if node.ID == name || node.Name == name {
			return node, nil
		}
	}
	return nil, structs.NewError(structs.CodeNotFound, "forecast.node_unknown", "node", name)
}

func (p *scenario) drain(c *Change) error {
	node, err := p.node(c.Node)
	if err != nil {
		return err
	}
	gangs := slices.Collect(p.board.Running())
	for i := range gangs {
		if slices.Contains(gangs[i].Nodes, node.ID) {
			p.board.Requeue(gangs[i].Subjob.JobID, gangs[i].Subjob.Index)
		}
	}
	drained := *node
	drained.Eligibility = structs.NodeDraining
	p.board.PutNode(node.ID, &drained, p.board.NodeUsage(node.ID))
	return nil
}

func (p *scenario) addNodes(c *Change) error {
	node, err := p.node(c.Node)
	if err != nil {
		return err
	}
	if c.Count < 1 || c.Count > AddNodesMax {
		return structs.NewError(structs.CodeInvalid, "forecast.add_count", "count", c.Count, "max", AddNodesMax)
	}
	id := newcomerID + node.ID + "+"
	before := 0 // of another change like this one
	for known := range p.board.Nodes() {
		if strings.HasPrefix(known.ID, id) {
			before++
		}
	}
	windows := p.windowsOfAll(node.PoolName())
	for i := range c.Count {
		number := strconv.Itoa(before + i + 1)
		added := *node
		added.ID = id + number
		added.Name = node.Name + "+" + number
		added.Status, added.Eligibility = structs.NodeReady, structs.NodeEligible
		added.Maintenance = windows
		p.board.PutNode(added.ID, &added, nil)
	}
	return nil
}

func (p *scenario) quota(c *Change) error {
	project := structs.Project{Name: c.Project}
	if known := p.board.Project(c.Project); known != nil {
		project = *known
	}
	project.Quotas = c.Quotas
	p.board.PutProject(c.Project, &project)
	return nil
}

// places are the places of the queue's jobs in one tier and pool.
func (p *scenario) move(c *Change) error {
	var own, target *scheduler.Queued
	queue := slices.Collect(p.board.Queued())
	for i := range queue {
		switch queue[i].Subjob.JobID {
		case c.JobID:
			own = &queue[i]
		case c.Before:
			if target == nil {
				target = &queue[i]
			}
		}
	}
	if own == nil {
		return unknownJob(c.JobID)
	}
	if c.Before != "" && target == nil {
		return unknownJob(c.Before)
	}
	place := uint64(math.MaxUint64)
	if !c.Last {
		place = 1
		before := uint64(0) // the largest place of others before the target
		if target != nil {
			place = placeOf(target.Subjob)
		}
		for i := range queue {
			if s := queue[i].Subjob; target != nil && s.JobID != c.JobID && placeOf(s) < place {
				before = max(before, placeOf(s))
			}
		}
		if target != nil {
			place = before + (place-before)/2
		}
	}
	p.board.Move(c.JobID, max(place, 1))
	return nil
}

// placeOf is the place of a subjob in its tier.
func placeOf(s *structs.Subjob) uint64 {
	if s.Place == 0 {
		return s.CreateIndex
	}
	return s.Place
}

func (p *scenario) submit(c *Change) error {
	if c.Job == nil {
		return structs.NewError(structs.CodeInvalid, "forecast.submit_empty")
	}
	if c.Count < 0 || c.Count > SubjobsMax {
		return structs.NewError(structs.CodeInvalid, "forecast.submit_count", "count", c.Count, "max", SubjobsMax)
	}
	job, subjob := p.admitted(c.Job)
	for range min(max(1, job.SubjobCount())*max(1, c.Count), SubjobsMax) {
		own := *subjob
		own.Index = p.submitted // several of one job stand beside each other as its subjobs
		p.submitted++
		p.board.Submit(job, &own)
	}
	return nil
}

func (p *scenario) stop(c *Change) error {
	stops := func(s *structs.Subjob) bool {
		return s.JobID == c.JobID && (c.Subjob == nil || *c.Subjob == s.Index)
	}
	done := false
	for _, q := range slices.Collect(p.board.Queued()) {
		if stops(q.Subjob) {
			done = p.board.Withdraw(q.Subjob.JobID, q.Subjob.Index) || done
		}
	}
	for _, r := range slices.Collect(p.board.Running()) {
		if stops(r.Subjob) {
			done = p.board.End(r.Subjob.JobID, r.Subjob.Index) || done
		}
	}
	if !done {
		return unknownJob(c.JobID)
	}
	return nil
}
