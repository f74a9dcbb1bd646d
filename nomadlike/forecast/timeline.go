package forecast

import (
	"math"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Bounds of a timeline.
const (
	RowsMax = 256 // nodes
	BarsMax = 64  // bars of a node
)

// HorizonTimeline is how far a timeline looks by default.
const HorizonTimeline = 24 * structs.Duration(3600e9)

// TimelineOf looks into the future of a board and draws what happens on its
// nodes. See Futures.Timeline.
func TimelineOf(in Input, now structs.UnixNano, horizon structs.Duration, seed uint64) Timeline {
	return Look(in, now, seed).Timeline(horizon, nil)
}

// Timeline draws what happens on nodes until a horizon, 0 for HorizonTimeline;
// of all nodes, or of those that wanted chooses.
func (f *Futures) Timeline(horizon structs.Duration, wanted func(*structs.Node) bool) Timeline {
	return f.Draw().Timeline(horizon, wanted)
}

// drawOccupancies draws the gangs of the most typical future.
func (f *Futures) drawOccupancies(to structs.UnixNano, put func(string, Bar)) {
	if len(f.futures) == 0 {
		return
	}
	u := &f.futures[f.typical()]
	ends := f.ends()
	for i := range u.occupancies {
		h := &u.occupancies[i]
		if h.from > to || h.to <= f.now && h.to != never && h.placed != nil {
			continue
		}
		m := &f.members[h.member]
		bar := Bar{
			Kind: BarForecast, JobID: m.subjob.JobID, JobName: m.job.Name, Project: m.job.Project, Subjob: m.subjob.Index,
			From: h.from, To: h.to,
		}
		if h.to == never {
			bar.To = 0
		}
		e := ends[h.member]
		bar.P50, bar.P90 = e.p50, e.p90
		if h.placed == nil {
			bar.Kind = BarRunning
			for rank, id := range m.gang.Nodes {
				bar.Devices = m.job.SpecOf(int(h.spec), rank, len(m.gang.Nodes)).DeviceCount()
				put(id, bar)
			}
			continue
		}
		for _, p := range h.placed {
			bar.Devices = len(p.Devices)
			put(p.NodeID, bar)
		}
	}
}

// span of ends of a member's first occupancy over all futures; 0: not known.
type spread struct{ p50, p90 structs.UnixNano }

func (f *Futures) ends() []spread {
	all := make([][]structs.UnixNano, len(f.members))
	seen := make([]int, len(f.members))
	for k := range f.futures {
		for i := range f.futures[k].occupancies {
			if h := &f.futures[k].occupancies[i]; seen[h.member] == k {
				seen[h.member] = k + 1
				all[h.member] = append(all[h.member], h.to)
			}
		}
		for m := range seen {
			if seen[m] == k {
				seen[m] = k + 1
				all[m] = append(all[m], never)
			}
		}
	}
	ends := make([]spread, len(all))
	for m, list := range all {
		slices.Sort(list)
		ends[m] = spread{known(rank(list, 0.5)), known(rank(list, 0.9))}
	}
	return ends
}

func known(at structs.UnixNano) structs.UnixNano {
	if at == never {
		return 0
	}
	return at
}

// typical is the future whose starts are nearest to what all futures say.
func (f *Futures) typical() int {
	best, least := 0, math.Inf(1)
	median := make([]float64, f.queued)
	list := make([]structs.UnixNano, len(f.futures))
	for i := range median {
		for k := range f.futures {
			list[k] = f.futures[k].sampleOf(i).at
		}
		slices.Sort(list)
		median[i] = rank(list, 0.5).Sub(f.now).Seconds()
	}
	for k := range f.futures {
		sum := 0.0
		for i := range median {
			off := f.futures[k].sampleOf(i).at.Sub(f.now).Seconds() - median[i]
			sum += math.Abs(off) / (60 + median[i]) // near starts matter most
		}
		if sum < least {
			best, least = k, sum
		}
	}
	return best
}

// drawReserved draws the nodes that blocked gangs have reserved.
func (f *Futures) drawReserved(to structs.UnixNano, put func(string, Bar)) {
	for _, r := range f.base.Reservations() {
		at, ok := f.found[keyOf(r.JobID, r.Subjob)]
		if !ok || r.At > to {
			continue
		}
		m := &f.members[at]
		bar := Bar{Kind: BarReserved, JobID: r.JobID, JobName: m.job.Name, Project: m.job.Project, Subjob: r.Subjob}
		if r.At > 0 {
			bar.From = max(r.At, f.now)
		}
		if int(at) < f.queued {
			w, _ := f.when(int(at))
			bar.P50, bar.P90 = w.P50, w.P90
		}
		for _, id := range r.Nodes {
			put(id, bar)
		}
	}
}
