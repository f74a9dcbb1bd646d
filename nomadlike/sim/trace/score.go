package trace

import (
	"math"
	"slices"
	"time"
)

// A forecast hits when it is off by at most hitAbsolute, or hitRelative of the
// true wait.
const (
	hitAbsolute = 300 * time.Second
	hitRelative = 0.2
)

// Score is how good the forecasts of a replay were. Errors are forecast wait
// minus true wait, in seconds.
type Score struct {
	N        int     `json:"n"`             // forecasts that were scored
	HitPct   float64 `json:"hit_pct"`       // |error| <= max(300 s, 20 % of the true wait)
	MAE      float64 `json:"mae_s"`         // mean |error|
	MedAE    float64 `json:"medae_s"`       // median |error|
	P90Error float64 `json:"p90_abs_err_s"` // of |error|
	Cov50Pct float64 `json:"cov50_pct"`     // true waits at or below the P50
	Cov90Pct float64 `json:"cov90_pct"`     // true waits at or below the P90
}

// forecastSample is one forecast with what came true. Spans count from the
// submission.
type forecastSample struct {
	point, p50, p90 time.Duration // given
	wait            time.Duration // true: until it first started
}

func (s forecastSample) miss() time.Duration { return (s.point - s.wait).Abs() }

func (s forecastSample) hit() bool {
	return s.miss() <= max(hitAbsolute, time.Duration(hitRelative*float64(s.wait)))
}

// score sums up samples.
func score(samples []forecastSample) *Score {
	made := &Score{N: len(samples)}
	if len(samples) == 0 {
		return made
	}
	misses := make([]time.Duration, len(samples))
	var sum float64
	hits, under50, under90 := 0, 0, 0
	for i, s := range samples {
		misses[i] = s.miss()
		sum += s.miss().Seconds()
		hits += one(s.hit())
		under50 += one(s.wait <= s.p50)
		under90 += one(s.wait <= s.p90)
	}
	slices.Sort(misses)
	n := float64(len(samples))
	made.MAE, made.MedAE, made.P90Error = rounded(sum/n), percentile(misses, 50), percentile(misses, 90)
	made.HitPct, made.Cov50Pct, made.Cov90Pct = percent(hits, n), percent(under50, n), percent(under90, n)
	return made
}

func percent(count int, of float64) float64 { return math.Round(float64(count)/of*1e4) / 100 }

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
