package server

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// What was said is learned once, however often the state is looked at, and by
// every server alike; jobs that started twice as late as foreseen make the next
// answer a later one.
func TestForecastsAreCalibrated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1) // without a node: nothing starts before the forecasts are kept
		features := make([]float64, forecast.Features)
		features[forecast.FeatureP10], features[forecast.FeatureP50], features[forecast.FeatureP90] = 1500, 1800, 2100
		var waits []time.Duration
		for i := range 30 {
			waits = append(waits, 25*time.Minute+time.Duration(i)*20*time.Second)
		}
		stepwise, fresh := &calibration{}, &calibration{}
		stepwise.follow(c.servers[0].Store().Snapshot())
		said := func(of *calibration) [3]time.Duration {
			point, p50, p90 := of.calibrator.Correct(forecast.About{At: c.servers[0].now(), Features: features}, waits, 24*time.Hour)
			return [3]time.Duration{point, p50, p90}
		}
		before := said(stepwise)

		var ids []string
		for i := range 40 {
			ids = append(ids, c.submit(0, testJob(fmt.Sprintf("j%d", i), 1)))
			now := c.servers[0].now()
			c.put(structs.CommandForecasts, &structs.Forecasts{Forecasts: []structs.Forecast{{JobID: ids[i], Attempt: 1, GivenAt: now,
				Point: now.Add(30 * time.Minute), P50: now.Add(30 * time.Minute), P90: now.Add(35 * time.Minute), Features: features}}})
		}
		time.Sleep(time.Hour)
		if _, _, err := c.servers[0].Submit(t.Context(), structs.CommandJobStop, "ann", &structs.JobStop{JobID: ids[0]}); err != nil {
			t.Fatal(err)
		}
		stepwise.follow(c.servers[0].Store().Snapshot())
		c.small("a", 64).connect(0)
		snapshot := c.eventually(0, 10*time.Second, "all have started", func(s *state.Snapshot) bool {
			return !slices.ContainsFunc(ids[1:], func(id string) bool { return s.Subjob(id, 0).Attempt == 0 })
		})
		stepwise.follow(snapshot)
		stepwise.follow(snapshot)
		fresh.follow(snapshot)
		after := said(stepwise)
		if after != said(fresh) {
			t.Errorf("learned step by step %v, at once %v", after, said(fresh))
		}
		if before[1] < 25*time.Minute || before[1] > 35*time.Minute || after[1] < 45*time.Minute || after[2] < after[1] {
			t.Errorf("before %v, after %v", before, after)
		}
		older := state.New().Snapshot()
		if stepwise.follow(older); said(stepwise) != before {
			t.Errorf("after a restore %v, want %v", said(stepwise), before)
		}
	})
}
