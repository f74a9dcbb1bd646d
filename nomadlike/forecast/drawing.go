package forecast

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/load"
	"nomadlike/nomadlike/structs"
)

// LoadAhead is how far the spans of a drawing reach.
const LoadAhead = 12 * structs.Duration(3600e9)

// Drawing is what happens on every node, up to the horizon of the futures that
// it was drawn from. It never changes: any number of goroutines may cut
// timelines out of it.
type Drawing struct {
	now, horizon structs.UnixNano
	rows         []drawnRow // by id of the node
	spans        []load.Span
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
	d.spans = d.spansOf()
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

// Spans is what is held of the nodes after the instant of the drawing, until
// LoadAhead after it: the bars of its timeline, all of them, in cards. It is
// shared, and must not be changed.
func (d *Drawing) Spans() []load.Span { return d.spans }

// spansOf makes spans of all bars.
func (d *Drawing) spansOf() (spans []load.Span) {
	begins := make(map[structs.AttemptKey]Bar) // the first of those that are foreseen
	each := func(take func(node *structs.Node, bar *Bar)) {
		for i := range d.rows {
			for k := range d.rows[i].bars {
				if bar := &d.rows[i].bars[k]; bar.From <= d.now.Add(LoadAhead.Std()) {
					take(d.rows[i].node, bar)
				}
			}
		}
	}
	each(func(node *structs.Node, bar *Bar) {
		if bar.Kind == BarReserved {
			return
		}
		span := load.Span{Node: node.ID, Kind: load.Used, Cards: bar.Devices, From: max(bar.From, d.now+1), To: bar.To}
		if bar.Kind == BarForecast {
			span.Kind = load.Foreseen
			key := keyOf(bar.JobID, bar.Subjob)
			if first, known := begins[key]; !known || bar.From < first.From {
				begins[key] = *bar
			}
		}
		spans = append(spans, span)
	})
	each(func(node *structs.Node, bar *Bar) {
		if bar.Kind != BarReserved {
			return
		}
		// Until its job starts, and with as many cards as that takes of a node; of one
		// that is not seen to start, all that nobody else has.
		span := load.Span{Node: node.ID, Kind: load.Reserved, Cards: len(node.Devices), From: max(bar.From, d.now+1)}
		if first, known := begins[keyOf(bar.JobID, bar.Subjob)]; known {
			span.Cards, span.To = first.Devices, first.From
		}
		spans = append(spans, span)
	})
	return spans
}
