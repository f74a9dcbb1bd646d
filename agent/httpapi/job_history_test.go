package httpapi

import (
	"fmt"
	"math"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// The points of a job's past span the attempt, as finely as one answer may be.
func TestGridOfThePast(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 3, 0, time.UTC)
	at := func(seconds int) structs.UnixNano { return structs.At(noon.Add(time.Duration(seconds) * time.Second)) }
	alloc := func(status structs.AllocStatus, started, finished int) *structs.Allocation {
		a := &structs.Allocation{Status: status, PlacedAt: at(started - 10), StartedAt: at(started)}
		if finished != 0 {
			a.FinishedAt = at(finished)
		}
		return a
	}
	many := make([]*structs.Allocation, structs.RankHistoryAllocsMax)
	for i := range many {
		many[i] = alloc(structs.AllocComplete, 0, 86_400)
	}
	for name, c := range map[string]struct {
		gang   []*structs.Allocation
		since  time.Duration
		points int
		want   string
	}{
		"runs":              {[]*structs.Allocation{alloc(structs.AllocRunning, 0, 0), alloc(structs.AllocComplete, 7, 20)}, math.MaxInt64, 240, "0s 20s 181"},
		"ended":             {[]*structs.Allocation{alloc(structs.AllocComplete, 0, 59), alloc(structs.AllocComplete, 0, 20)}, math.MaxInt64, 240, "0s 5s 13"},
		"its last minute":   {[]*structs.Allocation{alloc(structs.AllocComplete, 0, 600)}, time.Minute, 240, "9m0s 5s 13"},
		"one point":         {[]*structs.Allocation{alloc(structs.AllocComplete, 0, 600)}, math.MaxInt64, 1, "0s 10m5s 1"},
		"lost, nobody says": {[]*structs.Allocation{alloc(structs.AllocLost, 0, 0)}, math.MaxInt64, 1, "0s 1h0m5s 1"},
		"not yet started":   {[]*structs.Allocation{{Status: structs.AllocPending, PlacedAt: at(3595)}}, math.MaxInt64, 10, "59m55s 5s 2"},
		"clocks disagree":   {[]*structs.Allocation{alloc(structs.AllocRunning, 7200, 0)}, math.MaxInt64, 10, "1h0m0s 5s 1"},
		"many ranks":        {many, math.MaxInt64, 1440, "0s 45m5s 32"},
	} {
		got := historyGrid(c.gang, noon.Add(time.Hour), c.since, c.points)
		from := got.From.Time().Sub(noon.Truncate(pastTick))
		if text := fmt.Sprintf("%v %v %d", from, got.Step.Std(), got.Count); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
		if got.Count*structs.HistoryGaugesMax*len(c.gang) > structs.HistoryValuesMax {
			t.Errorf("%s: too many values", name)
		}
	}
}
