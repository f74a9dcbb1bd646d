package predict

import "time"

// Estimate is how long a job runs, as a distribution. It never changes and may
// be shared. The zero value knows nothing.
type Estimate struct {
	curve *curve        // nil: nothing is known
	limit time.Duration // 0: none
}

// Quantile is the run time that a share p of such jobs does not exceed. It is
// at least zero, at most the time limit, and rises with p.
func (e Estimate) Quantile(p float64) time.Duration { return e.Remaining(0, p) }

// Remaining is the same for what is left to a job that has run for elapsed.
func (e Estimate) Remaining(elapsed time.Duration, p float64) time.Duration {
	elapsed = min(max(elapsed, 0), longest)
	left := e.left(elapsed.Seconds(), min(max(p, 0), 1))
	if e.limit > 0 {
		left = min(left, max(e.limit-elapsed, 0))
	}
	return left
}

// Sample is a run time for a job that has run for elapsed, which is included
// and counts as 400 days at most: the one at the share u, so that a u drawn evenly between 0 and 1 draws run
// times as often as they are likely.
func (e Estimate) Sample(u float64, elapsed time.Duration) time.Duration {
	return min(max(elapsed, 0), longest) + e.Remaining(elapsed, u)
}

// left is what is left in seconds without a limit.
func (e Estimate) left(elapsed, p float64) time.Duration {
	if !(p >= 0) { // also when it is no number
		p = 0.5
	}
	const tailMax = 0.999 // what is beyond is as good as for ever
	p = min(p, tailMax)
	end := edges()[bins]
	if e.curve == nil || elapsed >= end {
		// Nothing is known of such times but what holds for all.
		return spanOf(max(elapsed, 60) * p / (1 - p))
	}
	reached := e.curve.at(elapsed)
	return spanOf(e.curve.reach(reached*(1-p), elapsed) - elapsed)
}

// mix stirs two numbers into one that depends on every bit of both.
func mix(a, b uint64) uint64 {
	x := a + 0x9e3779b97f4a7c15*(b+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit turns a number into an even chance below one.
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }
