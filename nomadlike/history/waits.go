package history

import (
	"cmp"
	"math/bits"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Wait is what one line of a report on waits says: how long attempts that were placed
// between the report's ends had waited, from when on nothing but room kept them. Spans are in
// milliseconds; P50, P90 and P95 are up to 1.6 % more than they were.
type Wait struct {
	Key      string `json:"key"`
	Period   string `json:"period,omitempty"`
	Attempts int64  `json:"attempts"`
	MeanMs   int64  `json:"mean_ms"`
	P50Ms    int64  `json:"p50_ms"`
	P90Ms    int64  `json:"p90_ms"`
	P95Ms    int64  `json:"p95_ms"`
	MaxMs    int64  `json:"max_ms"`
	Within   int64  `json:"within_minute"` // of Attempts, that waited a minute at most
	Forecast int64  `json:"forecast"`      // of Attempts, of which a start was forecast when they began to wait
	HeldP50  int64  `json:"held_p50"`      // of Forecast, that started by the time that half were to
	HeldP90  int64  `json:"held_p90"`      // likewise of nine tenths
}

// spread counts spans in steps of a sixty-fourth.
type spread struct {
	Wait
	sum   int64
	steps map[int]int64
}

// Waits sums up how long whoever waited.
type Waits struct {
	question Question
	cuts     []structs.UnixNano
	groups   map[string][]spread
}

// NewWaits begins a report on waits.
func NewWaits(q Question) (*Waits, error) {
	cuts, err := q.periods()
	if err != nil {
		return nil, err
	}
	return &Waits{question: q, cuts: cuts, groups: make(map[string][]spread)}, nil
}

// stepBits is how many bits of a span are kept.
const stepBits = 6

// stepOf is the step of a span, and stepTop the longest of a step.
func stepOf(ms int64) int {
	if ms < 1<<stepBits {
		return int(ms)
	}
	shift := bits.Len64(uint64(ms)) - stepBits - 1
	return (shift+1)<<stepBits + int(ms>>shift) - 1<<stepBits
}

func stepTop(step int) int64 {
	if step < 1<<stepBits {
		return int64(step)
	}
	shift := step>>stepBits - 1
	return (int64(step&(1<<stepBits-1))+1<<stepBits+1)<<shift - 1
}

// Take adds a part of the history. A part that cannot be read adds nothing.
func (w *Waits) Take(part Columns) error {
	c, err := readColumns(part)
	if err != nil {
		return err
	}
	numbers := make(map[string][]int64)
	for _, name := range []string{"eligible", "forecast_p50", "forecast_p90"} {
		if numbers[name], err = part.Numbers(name); err != nil {
			return err
		}
	}
	keys := w.question.keys(c)
	chosen := w.question.chosen(c, structs.HistoryAttempt)
	from, to := int64(w.question.From), int64(w.question.To)
	for row := range part.Len() {
		start := c.begin[row]
		if start < from || start >= to || !chosen(row) {
			continue
		}
		at, exact := slices.BinarySearchFunc(w.cuts, structs.UnixNano(start), cmp.Compare)
		if !exact {
			at--
		}
		for _, key := range w.question.lineKeys(keys.Of(row)) {
			lines, there := w.groups[key]
			if !there {
				lines = make([]spread, len(w.cuts)-1)
				w.groups[key] = lines
			}
			lines[at].add(max(ms(start)-ms(numbers["eligible"][row]), 0), start, numbers["forecast_p50"][row], numbers["forecast_p90"][row])
		}
	}
	return nil
}

func (s *spread) add(waited, start, p50, p90 int64) {
	if s.steps == nil {
		s.steps = make(map[int]int64)
	}
	s.steps[stepOf(waited)]++
	s.Attempts++
	s.sum += waited
	s.MaxMs = max(s.MaxMs, waited)
	if waited <= 60_000 {
		s.Within++
	}
	if p50 == 0 {
		return
	}
	s.Forecast++
	if start <= p50 {
		s.HeldP50++
	}
	if start <= p90 {
		s.HeldP90++
	}
}

// quantile is the span that so many of a thousand do not exceed.
func (s *spread) quantile(thousandths int64) int64 {
	steps := make([]int, 0, len(s.steps))
	for step := range s.steps {
		steps = append(steps, step)
	}
	slices.Sort(steps)
	left := (s.Attempts*thousandths + 999) / 1000
	for _, step := range steps {
		if left -= s.steps[step]; left <= 0 {
			return min(stepTop(step), s.MaxMs)
		}
	}
	return s.MaxMs
}

// Lines are the lines of the report: by period, and then by key; of BySize from small to
// large.
func (w *Waits) Lines() []Wait {
	list := []Wait{}
	for key, lines := range w.groups {
		for i := range lines {
			line := &lines[i]
			if line.Attempts == 0 {
				continue
			}
			line.Key, line.Period, line.MeanMs = key, w.question.name(w.cuts[i]), line.sum/line.Attempts
			line.P50Ms, line.P90Ms, line.P95Ms = line.quantile(500), line.quantile(900), line.quantile(950)
			list = append(list, line.Wait)
		}
	}
	order := make(map[string]int)
	if w.question.By == BySize {
		for i, size := range append(slices.Clone(sizes), sizes[len(sizes)-1]+1) {
			order[sizeName(size)] = i
		}
	}
	slices.SortFunc(list, func(x, y Wait) int {
		return cmp.Or(cmp.Compare(x.Period, y.Period), cmp.Compare(order[x.Key], order[y.Key]), cmp.Compare(x.Key, y.Key))
	})
	return list
}
