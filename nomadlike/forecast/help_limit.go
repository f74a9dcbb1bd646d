package forecast

import (
	"cmp"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// Limits that end before a window leave limitSlack for whoever reads of them to act,
// and are so round that people would write them.
const (
	limitSlack   = 5 * time.Minute
	limitsBefore = 6 // tried
)

// limitBefore is a time limit that ends before a window starts.
type limitBefore struct {
	limit time.Duration
	start structs.UnixNano
}

// beforeWindows lists limits that end before windows which keep the job from nodes:
// with a start at now, or when somebody leaves before that in the most typical future.
// The longest come first.
func (h *helper) beforeWindows() []limitBefore {
	starts := h.windowStarts()
	if len(starts) == 0 {
		return nil
	}
	var limits []limitBefore
	add := func(from, start structs.UnixNano) {
		room, round := start.Sub(from)-limitSlack, time.Minute
		if room > 2*time.Hour {
			round = 15 * time.Minute
		}
		room = room.Truncate(round)
		if room >= time.Minute && !slices.ContainsFunc(limits, func(b limitBefore) bool { return b.limit == room }) {
			limits = append(limits, limitBefore{room, start})
		}
	}
	for _, start := range starts {
		add(h.now, start)
	}
	u := &h.futures[h.typical()]
	for i := range u.occupancies {
		for _, start := range starts {
			if to := u.occupancies[i].to; to > h.now && to < start {
				add(to, start)
			}
		}
	}
	slices.SortStableFunc(limits, func(a, b limitBefore) int { return cmp.Compare(b.limit, a.limit) })
	if len(limits) > limitsBefore { // spread over all of them
		some := make([]limitBefore, limitsBefore)
		for i := range some {
			some[i] = limits[i*(len(limits)-1)/(limitsBefore-1)]
		}
		limits = some
	}
	return limits
}

// windowStarts lists when windows begin on nodes that the job could use, by time.
func (h *helper) windowStarts() []structs.UnixNano {
	var starts []structs.UnixNano
	for at := range h.asIs.tests {
		if !h.asIs.tests[at].able {
			continue
		}
		windows := h.view().sites[at].node.Maintenance
		for i := range windows {
			if w := &windows[i]; w.Start > h.now && !slices.Contains(starts, w.Start) {
				starts = append(starts, w.Start)
			}
		}
	}
	slices.Sort(starts)
	return starts
}
