package forecast

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Drawing is what happens on every node, up to the horizon of the futures that
// it was drawn from. It never changes: any number of goroutines may cut
// timelines out of it.
type Drawing struct {
	now, horizon structs.UnixNano
	rows         []drawnRow // by id of the node
}

// drawnRow is a node with all that happens on it.
type drawnRow struct {
	node *structs.Node
	bars []Bar              // the first BarsMax by From
	rest []structs.UnixNano // From of those that were left out, in order
}

// Draw draws what happens on all nodes.
func (f *Futures) Draw() *Drawing {
	d := &Drawing{now: f.now, horizon: f.horizon}
	rows := make(map[string]int)
	for node := range f.base.Nodes() {
		rows[node.ID] = len(d.rows)
		d.rows = append(d.rows, drawnRow{node: node})
	}
	put := func(nodeID string, bar Bar) {
		if at, ok := rows[nodeID]; ok {
			d.rows[at].bars = append(d.rows[at].bars, bar)
		}
	}
	f.drawOccupancies(f.horizon, put)
	f.drawReserved(f.horizon, put)
	for i := range d.rows {
		row := &d.rows[i]
		slices.SortStableFunc(row.bars, func(a, b Bar) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Subjob, b.Subjob), cmp.Compare(a.Kind, b.Kind))
		})
		if len(row.bars) > BarsMax {
			for _, bar := range row.bars[BarsMax:] {
				row.rest = append(row.rest, bar.From)
			}
			row.bars = slices.Clone(row.bars[:BarsMax])
		}
	}
	return d
}

// Timeline is what happens until a horizon, 0 for HorizonTimeline; on all nodes,
// or on those that wanted chooses. It is the caller's to change.
func (d *Drawing) Timeline(horizon structs.Duration, wanted func(*structs.Node) bool) Timeline {
	if horizon <= 0 {
		horizon = HorizonTimeline
	}
	t := Timeline{From: d.now, To: min(d.now.Add(horizon.Std()), d.horizon), Rows: []Row{}}
	for i := range d.rows {
		drawn := &d.rows[i]
		if wanted != nil && !wanted(drawn.node) {
			continue
		}
		if len(t.Rows) == RowsMax {
			t.More++
			continue
		}
		node := drawn.node
		row := Row{NodeID: node.ID, Node: node.Name, Pool: node.PoolName(), Devices: len(node.Devices), Away: !node.Schedulable(), Bars: []Bar{}}
		begun := func(from structs.UnixNano) bool { return from <= t.To }
		until := len(drawn.bars)
		for until > 0 && !begun(drawn.bars[until-1].From) {
			until--
		}
		row.Bars = append(row.Bars, drawn.bars[:until]...)
		for _, from := range drawn.rest {
			if begun(from) {
				row.More++
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
