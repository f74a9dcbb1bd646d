package progress

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"time"

	"nomadlike/nomadlike/structs"
)

// What is learned, and when it is believed.
const (
	stepsKept  = 33              // step marks that are remembered
	stepsLeast = 4               // of which so many are needed
	gapsKept   = 64              // silences that are remembered
	gapsLeast  = 4               // of which so many are needed without steps
	gapFactor  = 2               // silence is not unusual before this many times the longest seen
	gapNoticed = time.Second     // shorter silences are not worth remembering
	toldEvery  = 1 * time.Minute // least time between two tellings that change little
)

// UseIdle is the share of the time below which a device, or a processor of the
// task, counts as idle.
const UseIdle = 0.05

// Use is what a task's devices, or its processors when it has none, have done
// since the last measurement.
type Use struct {
	At    time.Duration
	Cards map[string]float64 // share of the time with work, by device id
	Cores float64            // busy cores of the task, when Cards is nil
}

// Pulse is the hang watch of one task.
type Pulse struct {
	policy  structs.Hang
	pattern *regexp.Regexp
	heard   time.Duration // the last sign of life
	spoke   bool          // it has logged something
	step    int64
	stepped time.Duration            // when it was made
	steps   []time.Duration          // when the last steps were made, oldest first
	gaps    []time.Duration          // silences, oldest first
	waits   []time.Duration          // long times between steps, oldest first
	busy    map[string]time.Duration // when each device was last seen at work; "" stands for the processors
	told    structs.Progress
	toldAt  time.Duration
}

// NewPulse begins a watch at the start of a task, or when its agent came back.
func NewPulse(policy structs.Hang, now time.Duration) (*Pulse, error) {
	pattern, err := regexp.Compile(cmp.Or(policy.Pattern, structs.StepPattern))
	if err != nil {
		return nil, err
	}
	return &Pulse{policy: policy, pattern: pattern, heard: now, stepped: now, busy: make(map[string]time.Duration)}, nil
}

// Line takes a line of the log. It reports when the task was believed silent, and
// is no more: of one that stalls any line but a step says nothing.
func (p *Pulse) Line(line []byte, now time.Duration) (structs.Progress, bool) {
	if gap := now - p.heard; p.spoke && gap >= gapNoticed {
		p.gaps = appendBounded(p.gaps, gap, gapsKept)
	}
	p.heard, p.spoke = now, true
	if found := p.pattern.FindSubmatch(line); len(found) > 1 {
		if step, err := strconv.ParseInt(string(found[1]), 10, 64); err == nil && step != p.step {
			if wait := now - p.stepped; len(p.steps) > 0 && wait >= gapNoticed {
				p.waits = appendBounded(p.waits, wait, gapsKept)
			}
			p.step, p.stepped = step, now
			p.steps = appendBounded(p.steps, now, stepsKept)
		}
	}
	if !p.told.Silent || p.stalls(now) {
		return structs.Progress{}, false
	}
	p.told, p.toldAt = structs.Progress{Step: p.step}, now
	return p.told, true
}

// Rest says that the task has stood still by order until now.
func (p *Pulse) Rest(now time.Duration) {
	p.heard, p.stepped = now, now
	for id := range p.busy {
		p.busy[id] = now
	}
	p.steps = nil // the next one would seem to have taken as long
}

// Measured takes what devices do.
func (p *Pulse) Measured(use Use) {
	see := func(id string, share float64) {
		if _, known := p.busy[id]; !known || share >= UseIdle {
			p.busy[id] = use.At
		}
	}
	if use.Cards == nil {
		see("", use.Cores)
		return
	}
	for id, share := range use.Cards {
		see(id, share)
	}
}

// Limit is how much silence is too much: Factor times what a step takes, or the
// longest silence when there are no steps, never less than twice the longest
// silence, and between Least and Most. While nothing is learned it is Most.
func (p *Pulse) Limit() time.Duration {
	least, most := p.policy.Least.Std(), p.policy.Most.Std()
	longest := time.Duration(0)
	if len(p.gaps) > 0 {
		longest = slices.Max(p.gaps)
	}
	var usual time.Duration
	switch {
	case len(p.steps) >= stepsLeast:
		usual = p.stepTime()
	case len(p.gaps) >= gapsLeast:
		usual = longest
	default:
		return most
	}
	learned := time.Duration(min(p.policy.Factor*float64(usual), float64(most)))
	return min(max(learned, gapFactor*longest, least), most)
}

// stepTime is the median time between steps.
func (p *Pulse) stepTime() time.Duration {
	var spans []time.Duration
	for i := 1; i < len(p.steps); i++ {
		spans = append(spans, p.steps[i]-p.steps[i-1])
	}
	slices.Sort(spans)
	return spans[len(spans)/2]
}

// stepLimit is how long a task that goes on logging may make no step while a
// device is idle: twice as long as one that is silent. It is to be asked only
// when steps are known.
func (p *Pulse) stepLimit() time.Duration {
	longest := time.Duration(0)
	if len(p.waits) > 0 {
		longest = slices.Max(p.waits)
	}
	least, most := p.policy.Least.Std(), p.policy.Most.Std()
	learned := time.Duration(min(p.policy.Factor*float64(p.stepTime()), float64(most)))
	return min(gapFactor*max(learned, gapFactor*longest, least), most)
}

// stalls reports whether the task makes no steps any more, whatever it logs: it
// tries something again and again, say, while a device of it has nothing to do.
func (p *Pulse) stalls(now time.Duration) bool {
	if len(p.steps) < stepsLeast {
		return false
	}
	limit := p.stepLimit()
	if now-p.stepped < limit {
		return false
	}
	for _, at := range p.busy {
		if now-at >= limit {
			return true
		}
	}
	return false
}

// Tick looks whether the task is silent, or stalls. It returns what the servers should hear
// when that has changed: that it is, which devices are idle, that it has been
// for the longest that is borne. A task that has never logged anything is told
// of too, as mute, for its gang's sake.
func (p *Pulse) Tick(now time.Duration) (structs.Progress, bool) {
	silence, limit := now-p.heard, p.Limit()
	wait := limit
	if !p.spoke {
		wait = p.policy.Least.Std()
	}
	if silence < wait {
		if !p.stalls(now) {
			return structs.Progress{}, false
		}
		silence, limit = now-p.stepped, p.stepLimit()
		wait = limit
	}
	fresh := structs.Progress{
		Silent: true, Mute: !p.spoke, Over: silence >= p.policy.Most.Std(),
		For: structs.Duration(silence), Limit: structs.Duration(limit), Step: p.step,
	}
	fresh.Measured = len(p.busy) > 0
	for id, at := range p.busy {
		if now-at < min(silence, wait) {
			continue
		}
		fresh.Idle = true
		if id != "" && len(fresh.Cards) < structs.ProgressCardsMax {
			fresh.Cards = append(fresh.Cards, id)
		}
	}
	slices.Sort(fresh.Cards)
	first := !p.told.Silent
	changed := fresh.Over != p.told.Over || fresh.Idle != p.told.Idle || !slices.Equal(fresh.Cards, p.told.Cards)
	if !first && (!changed || now-p.toldAt < toldEvery && fresh.Over == p.told.Over) {
		return structs.Progress{}, false
	}
	p.told, p.toldAt = fresh, now
	return fresh, true
}

// appendBounded appends to a list of at most most.
func appendBounded(list []time.Duration, value time.Duration, most int) []time.Duration {
	list = append(list, value)
	return list[max(0, len(list)-most):]
}
