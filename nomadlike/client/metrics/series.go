package metrics

import (
	"cmp"
	"math"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Bounds of what a Collector keeps.
const (
	PointsMax = 1024 // of a series; then every second goes
	SeriesMax = 64   // of an allocation
	NameMax   = 128  // bytes of a name
)

// observation is one figure as it was found. Without a step, Step is negative.
type observation struct {
	Name  string
	Step  int64
	Value float64
}

// series is one figure. Its points are the observations whose number is a
// multiple of Stride.
type series struct {
	structs.MetricSeries
	Stride int64 `json:"stride"`
}

func (s *series) add(step int64, at structs.UnixNano, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		s.NotFinite++
		s.NotFiniteAt = at
		return
	}
	if step < 0 {
		step = s.Count
	}
	p := structs.MetricPoint{Step: step, At: at, Value: value}
	if s.Count == 0 {
		s.Min, s.Max = value, value
	}
	s.Min, s.Max, s.Last = min(s.Min, value), max(s.Max, value), p
	s.Stride = max(s.Stride, 1)
	if s.Count%s.Stride == 0 {
		if len(s.Points) == PointsMax {
			s.Points = everyNth(s.Points, 2)
			s.Stride *= 2
		}
		if s.Count%s.Stride == 0 {
			s.Points = append(s.Points, p)
		}
	}
	s.Count++
}

// everyNth keeps the first of every n points.
func everyNth(points []structs.MetricPoint, n int) []structs.MetricPoint {
	kept := make([]structs.MetricPoint, 0, PointsMax)
	for i := 0; i < len(points); i += n {
		kept = append(kept, points[i])
	}
	return kept
}

// shown is the series with at most so many points, the last observation among
// them.
func (s *series) shown(points int) structs.MetricSeries {
	out := s.MetricSeries
	points = max(points, 2)
	n := 1
	for (len(s.Points)+n-1)/n > points-1 {
		n++
	}
	out.Points = everyNth(s.Points, n)
	if len(out.Points) > 0 && out.Points[len(out.Points)-1] != s.Last {
		out.Points = append(out.Points, s.Last)
	}
	return out
}

type seriesKey struct{ Name, Source string }

// set is the series of one allocation.
type set struct {
	series  map[seriesKey]*series
	leftOut int
}

func (s *set) add(source string, at structs.UnixNano, o observation) {
	if o.Name == "" || len(o.Name) > NameMax {
		s.leftOut++
		return
	}
	key := seriesKey{o.Name, source}
	one := s.series[key]
	if one == nil {
		if len(s.series) == SeriesMax {
			s.leftOut++
			return
		}
		one = &series{MetricSeries: structs.MetricSeries{Name: o.Name, Source: source}}
		s.series[key] = one
	}
	one.add(o.Step, at, o.Value)
}

// sorted returns the series by name and source.
func (s *set) sorted() []*series {
	list := make([]*series, 0, len(s.series))
	for _, one := range s.series {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b *series) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
	})
	return list
}
