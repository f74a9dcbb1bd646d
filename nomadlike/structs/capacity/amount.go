package capacity

import "math"

// Amount is so much of what a node has for work. Free amounts may be negative:
// a node can come back smaller than what it holds.
type Amount struct {
	CPU     int64 // thousandths of a core
	Memory  int64 // bytes
	Devices int64 // of whatever kind and model
}

// Add returns the sum. What is beyond the largest number stays there: sums of
// what users wrote must never wrap round.
func (a Amount) Add(more Amount) Amount {
	return Amount{add(a.CPU, more.CPU), add(a.Memory, more.Memory), add(a.Devices, more.Devices)}
}

// Sub returns what is left of a without less, and stays at the smallest number
// likewise: a full node must never look free.
func (a Amount) Sub(less Amount) Amount {
	return Amount{sub(a.CPU, less.CPU), sub(a.Memory, less.Memory), sub(a.Devices, less.Devices)}
}

// Fits reports whether free has as much of everything.
func (a Amount) Fits(free Amount) bool {
	return a.CPU <= free.CPU && a.Memory <= free.Memory && a.Devices <= free.Devices
}

// FitsBeside is Fits for cores and memory alone, where devices are compared one
// by one.
func (a Amount) FitsBeside(free Amount) bool { return a.CPU <= free.CPU && a.Memory <= free.Memory }

// Over reports whether more cores or memory are held than there are, so that a
// free amount has become negative. Devices cannot be held twice.
func (a Amount) Over() bool { return a.CPU < 0 || a.Memory < 0 }

// Positive returns the amount with nothing below zero.
func (a Amount) Positive() Amount { return Amount{max(a.CPU, 0), max(a.Memory, 0), max(a.Devices, 0)} }

func add(a, b int64) int64 {
	sum := a + b
	if (a^sum)&(b^sum) < 0 { // both have the sign that the sum lost
		return limit(a)
	}
	return sum
}

func sub(a, b int64) int64 {
	rest := a - b
	if (a^b)&(a^rest) < 0 {
		return limit(a)
	}
	return rest
}

// limit is the end of the numbers on the side of a.
func limit(a int64) int64 {
	if a < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}
