package capacity

import (
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// bound is an exact number, cut to what an int64 holds.
func bound(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func number() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-4, 4), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64}))
}

// TestAmountAgainstTwin compares amounts with numbers that have no end.
func TestAmountAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) ([3]*big.Int, Amount) {
			n := rapid.SliceOfN(number(), 3, 3).Draw(t, name)
			return [3]*big.Int{big.NewInt(n[0]), big.NewInt(n[1]), big.NewInt(n[2])}, Amount{n[0], n[1], n[2]}
		}
		of := func(n [3]*big.Int) Amount { return Amount{bound(n[0]), bound(n[1]), bound(n[2])} }
		x, a := draw("a")
		y, b := draw("b")
		var sum, rest, positive [3]*big.Int
		fits, beside := true, true
		for i := range x {
			sum[i], rest[i] = new(big.Int).Add(x[i], y[i]), new(big.Int).Sub(x[i], y[i])
			if positive[i] = x[i]; x[i].Sign() < 0 {
				positive[i] = new(big.Int)
			}
			fits = fits && x[i].Cmp(y[i]) <= 0
			beside = beside && (i == 2 || x[i].Cmp(y[i]) <= 0)
		}
		if got := a.Add(b); got != of(sum) {
			t.Errorf("%+v and %+v are %+v, not %+v", a, b, of(sum), got)
		}
		if got := a.Sub(b); got != of(rest) {
			t.Errorf("%+v without %+v is %+v, not %+v", a, b, of(rest), got)
		}
		if got := a.Positive(); got != of(positive) {
			t.Errorf("of %+v, %+v is positive, not %+v", a, of(positive), got)
		}
		if a.Fits(b) != fits || a.FitsBeside(b) != beside {
			t.Errorf("%+v fits %+v: %t, beside devices %t; want %t, %t", a, b, a.Fits(b), a.FitsBeside(b), fits, beside)
		}
		if over := x[0].Sign() < 0 || x[1].Sign() < 0; a.Over() != over {
			t.Errorf("%+v is over: %t", a, a.Over())
		}
	})
}

// TestTakeAndGive: what was taken and given back, in any order, leaves what was
// there.
func TestTakeAndGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 1 << 50 // far more than a job may ask for
		start := Amount{most, most, 8}
		var taken []Amount
		free := start
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "give") {
				at := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				free = free.Add(taken[at])
				taken = slices.Delete(taken, at, at+1)
				continue
			}
			one := Amount{rapid.Int64Range(0, most).Draw(t, "cpu"), rapid.Int64Range(0, most).Draw(t, "memory"), rapid.Int64Range(0, 8).Draw(t, "devices")}
			taken = append(taken, one)
			free = free.Sub(one)
		}
		for _, one := range taken {
			free = free.Add(one)
		}
		if free != start {
			t.Errorf("%+v is left of %+v", free, start)
		}
	})
}

// TestSetAgainstTwin compares sets with maps.
func TestSetAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		draw := func(name string) (Set, map[int]bool) {
			set, twin := NewSet(n), make(map[int]bool)
			for _, i := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, name) {
				if rapid.Bool().Draw(t, "drop") {
					set.Drop(i)
					delete(twin, i)
				} else {
					set.Add(i)
					twin[i] = true
				}
			}
			return set, twin
		}
		set, twin := draw("set")
		other, otherTwin := draw("other")
		both, span := 0, 0
		lo := rapid.IntRange(0, n).Draw(t, "lo")
		hi := rapid.IntRange(lo, n).Draw(t, "hi")
		for i := range n {
			if set.Has(i) != twin[i] {
				t.Errorf("%d is a member: %t", i, set.Has(i))
			}
			if twin[i] && otherTwin[i] {
				both++
			}
			if twin[i] && i >= lo && i < hi {
				span++
			}
		}
		if set.Count() != len(twin) || set.CountIn(other) != both || set.CountSpan(lo, hi) != span {
			t.Errorf("%d members, %d in both, %d from %d to %d; want %d, %d, %d", set.Count(), set.CountIn(other), set.CountSpan(lo, hi), lo, hi, len(twin), both, span)
		}
		members := make([]int, 0, len(twin))
		for _, i := range set.Members() {
			members = append(members, int(i))
		}
		if want := slices.Sorted(maps.Keys(twin)); !slices.Equal(members, want) {
			t.Errorf("members %v, want %v", members, want)
		}
	})
}

// TestPortsAgainstTwin compares lists of ports with maps, and lets no list change
// under those who share it.
func TestPortsAgainstTwin(t *testing.T) {
	port := rapid.Int32Range(1, 60)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(port).Draw(t, "held")
		ports, twin := PortsOf(slices.Clone(list)), make(map[int32]bool)
		for _, p := range list {
			twin[p] = true
		}
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			shared, before := ports, slices.Clone(ports)
			change := rapid.SliceOf(port).Draw(t, "change")
			if rapid.Bool().Draw(t, "take") {
				ports = ports.With(change)
				for _, p := range change {
					twin[p] = true
				}
			} else {
				ports = ports.Without(change)
				for _, p := range change {
					delete(twin, p)
				}
			}
			if !slices.Equal(shared, before) {
				t.Fatalf("a shared list changed from %v to %v", before, shared)
			}
		}
		if want := slices.Sorted(maps.Keys(twin)); !slices.Equal(ports, want) {
			t.Errorf("held %v, want %v", ports, want)
		}
		low, high := port.Draw(t, "low"), port.Draw(t, "high")
		within := 0
		for p := range twin {
			if p >= low && p < high {
				within++
			}
		}
		if high >= low && ports.CountIn(low, high) != within {
			t.Errorf("%d from %d to %d, want %d", ports.CountIn(low, high), low, high, within)
		}
		if p := port.Draw(t, "port"); ports.Contains(p) != twin[p] {
			t.Errorf("%d is contained: %t", p, ports.Contains(p))
		}
	})
}
