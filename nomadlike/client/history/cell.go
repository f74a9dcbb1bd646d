package history

import (
	"math"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// fold is how several values of one span become one.
type fold int

const (
	mean  fold = iota
	most       // the highest
	least      // the lowest
	last       // the newest: of what only rises
)

// gaugesKept is the number of gauges in a cell.
const gaugesKept = 9

// gauge is one of those that are kept.
type gauge struct {
	gauge string
	fold  fold
}

// gauges are those that are kept, by their places in a cell. A place never
// gets another meaning: files of older agents are read.
func gauges() [gaugesKept]gauge {
	return [gaugesKept]gauge{
		{structs.GaugeHealthy, least},
		{device.GaugeUtilization, mean},
		{device.GaugeMemoryUsed, most},
		{device.GaugeTemperature, most},
		{device.GaugePower, mean},
		{device.GaugeThrottled, mean},
		{device.GaugeECCCorrected, last},
		{device.GaugeECCUncorrected, last},
		{structs.GaugeCores, mean},
	}
}

// values are figures at their places; NaN: not measured.
type values [gaugesKept]float32

// cell is what was measured in one span: a minute of a Book, or a span of a
// Record.
type cell struct {
	at     int64 // since 1970: minutes, or seconds of a Record
	values values
}

// sums put values of one span together, in the order in which they were
// measured.
type sums struct {
	value [gaugesKept]float64
	count [gaugesKept]int
}

func (s *sums) add(place int, how fold, value float64) { s.addTimes(place, how, value, 1) }

// addTimes adds a value that stands for so many.
func (s *sums) addTimes(place int, how fold, value float64, times int) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	first := s.count[place] == 0
	s.count[place] += times
	switch {
	case how == mean:
		s.value[place] += value * float64(times)
	case first, how == last, how == most && value > s.value[place], how == least && value < s.value[place]:
		s.value[place] = value
	}
}

// of returns a figure of the span; false: it was not measured.
func (s *sums) of(place int, how fold) (float64, bool) {
	switch {
	case s.count[place] == 0:
		return 0, false
	case how == mean:
		return s.value[place] / float64(s.count[place]), true
	}
	return s.value[place], true
}

// cell closes a span.
func (s *sums) cell(at int64, kept [gaugesKept]gauge) cell {
	c := cell{at: at}
	for place := range kept {
		c.values[place] = float32(math.NaN())
		if value, ok := s.of(place, kept[place].fold); ok {
			c.values[place] = float32(value)
		}
	}
	return c
}

// line is the past of one device, or of the machine: closed minutes in the
// order of time, and the one that is being measured.
type line struct {
	cells []cell
	open  int64 // minute; 0: none
	sums  sums
}

// turn opens a minute. A clock that was set back a little goes on in the minute
// that is open.
func (l *line) turn(minute int64, kept [gaugesKept]gauge) {
	switch {
	case l.open == minute || l.open == minute+1:
		return
	case l.open > minute:
		l.open, l.sums = 0, sums{}
	case l.open != 0:
		l.cells = append(l.cells, l.sums.cell(l.open, kept))
	}
	for len(l.cells) > 0 && l.cells[len(l.cells)-1].at >= minute {
		l.cells = l.cells[:len(l.cells)-1]
	}
	old := 0
	for old < len(l.cells) && l.cells[old].at <= minute-Kept {
		old++
	}
	l.cells = append(l.cells[:0], l.cells[old:]...)
	l.open, l.sums = minute, sums{}
}

// all returns every minute, the open one too.
func (l *line) all(kept [gaugesKept]gauge) []cell {
	if l.open == 0 {
		return l.cells
	}
	return append(l.cells[:len(l.cells):len(l.cells)], l.sums.cell(l.open, kept))
}

// series puts minutes together to count points of step minutes each, from the
// minute first on. Figures that were never measured are left out.
func series(cells []cell, kept [gaugesKept]gauge, first, step int64, count int) []structs.GaugeHistory {
	spans := make([]sums, count)
	for i := range cells {
		at := (cells[i].at - first) / step
		if cells[i].at < first || at >= int64(count) {
			continue
		}
		for place, value := range cells[i].values {
			spans[at].add(place, kept[place].fold, float64(value))
		}
	}
	return told(spans, kept)
}

// told returns the figures of spans, except those that were never measured.
func told(spans []sums, kept [gaugesKept]gauge) []structs.GaugeHistory {
	var all []structs.GaugeHistory
	for place, figure := range kept {
		one := structs.GaugeHistory{Gauge: figure.gauge, Values: make([]*float64, len(spans))}
		known := false
		for i := range spans {
			if value, ok := spans[i].of(place, figure.fold); ok {
				one.Values[i], known = &value, true
			}
		}
		if known {
			all = append(all, one)
		}
	}
	return all
}
