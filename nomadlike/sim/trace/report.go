package trace

import (
	"math"
	"slices"
	"time"
)

// slowdownBound is the shortest run that bounded slowdown counts with, so that
// a job of one second that waited ten is no disaster.
const slowdownBound = 10 * time.Second

// Statistics sums up what a set of jobs saw. Times are in seconds, rounded to
// milliseconds.
type Statistics struct {
	Jobs        int     `json:"jobs"`     // replayed to their end
	Dropped     int     `json:"dropped"`  // never submitted: too large, no such pool, no devices, or no run time known
	AvgJCT      float64 `json:"avg_jct"`  // from submission to the end
	AvgWait     float64 `json:"avg_wait"` // of that, without running; a preempted job waits again
	AvgBSLD     float64 `json:"avg_bsld"` // bounded slowdown: (wait + run) / max(run, 10 s), at least 1
	P50Wait     float64 `json:"p50_wait"`
	P90Wait     float64 `json:"p90_wait"`
	P99Wait     float64 `json:"p99_wait"`
	Utilisation float64 `json:"utilisation"` // share of the device time, from the first submission to the last end
	Makespan    float64 `json:"makespan"`    // from the first submission to the last end
}

// Report is the outcome of a replay. It holds no time of the machine that
// made it: the same replay writes the same bytes.
type Report struct {
	Statistics
	*Score
	PerPool map[string]Statistics `json:"per_pool"`
}

// record is what happened to one job.
type record struct {
	pool     int
	gpus     int
	submit   time.Duration
	duration time.Duration
	end      time.Duration
}

func (r record) wait() time.Duration { return r.end - r.submit - r.duration }

func (r record) slowdown() float64 {
	return max(1, float64(r.end-r.submit)/float64(max(r.duration, slowdownBound)))
}

// statistics sums up records on so many devices.
func statistics(records []record, gpus, dropped int) Statistics {
	f := Statistics{Jobs: len(records), Dropped: dropped}
	if len(records) == 0 {
		return f
	}
	waits := make([]time.Duration, len(records))
	first, last := records[0].submit, records[0].end
	var jct, wait, slow, busy float64
	for i, r := range records {
		waits[i] = r.wait()
		first, last = min(first, r.submit), max(last, r.end)
		jct += (r.end - r.submit).Seconds()
		wait += r.wait().Seconds()
		slow += r.slowdown()
		busy += r.duration.Seconds() * float64(r.gpus)
	}
	slices.Sort(waits)
	n := float64(len(records))
	f.AvgJCT, f.AvgWait, f.AvgBSLD = rounded(jct/n), rounded(wait/n), rounded(slow/n)
	f.P50Wait, f.P90Wait, f.P99Wait = percentile(waits, 50), percentile(waits, 90), percentile(waits, 99)
	f.Makespan = rounded((last - first).Seconds())
	if last > first && gpus > 0 {
		f.Utilisation = math.Round(busy/((last-first).Seconds()*float64(gpus))*1e6) / 1e6
	}
	return f
}

// percentile is the smallest of the sorted spans that at least p per cent do
// not exceed (nearest rank).
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return rounded(sorted[max(rank, 1)-1].Seconds())
}

func rounded(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

// report sums up a whole replay. dropped counts by pool; jobs without a pool
// count in the total alone.
func report(pools []Pool, records []record, dropped []int, homeless int) Report {
	byPool := make([][]record, len(pools))
	for _, r := range records {
		byPool[r.pool] = append(byPool[r.pool], r)
	}
	gpus, lost := 0, homeless
	made := Report{PerPool: make(map[string]Statistics, len(pools))}
	for i, pool := range pools {
		size := pool.Nodes * pool.GPUs
		gpus += size
		lost += dropped[i]
		made.PerPool[pool.shownName()] = statistics(byPool[i], size, dropped[i])
	}
	made.Statistics = statistics(records, gpus, lost)
	return made
}

// shownName names the pool of a cluster that has only one.
func (p Pool) shownName() string {
	if p.Name == "" {
		return "all"
	}
	return p.Name
}
