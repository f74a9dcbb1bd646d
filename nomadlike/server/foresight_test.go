package server

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
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
			point, p50, p90 := of.calibrator.Correct(forecast.About{At: c.servers[0].config.now(), Features: features}, waits, 24*time.Hour)
			return [3]time.Duration{point, p50, p90}
		}
		before := said(stepwise)

		var ids []string
		for i := range 40 {
			ids = append(ids, c.submit(0, testJob(fmt.Sprintf("j%d", i), 1)))
			now := c.servers[0].config.now()
			c.put(structs.CommandForecasts, &structs.Forecasts{Forecasts: []structs.Forecast{{
				JobID: ids[i], Attempt: 1, GivenAt: now,
				Point: now.Add(30 * time.Minute), P50: now.Add(30 * time.Minute), P90: now.Add(35 * time.Minute), Features: features,
			}}})
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
		var archive bytes.Buffer
		if err := state.New().Snapshot().Persist(&archive); err != nil {
			t.Fatal(err)
		}
		restored := state.New()
		if err := restored.Restore(&archive); err != nil {
			t.Fatal(err)
		}
		if stepwise.follow(restored.Snapshot()); said(stepwise) != before {
			t.Errorf("after a restore %v, want %v", said(stepwise), before)
		}
	})
}

// snapshots lets many ask at once, and returns what they got.
func snapshots(t *testing.T, s *Server, knows uint64) map[*ForecastSnapshot]int {
	var mu sync.Mutex
	var group sync.WaitGroup
	got := make(map[*ForecastSnapshot]int)
	for range 50 {
		group.Go(func() {
			shown, err := s.ForecastSnapshot(t.Context(), knows, "")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[shown]++
		})
	}
	group.Wait()
	return got
}

// looks reports how many looks were ever begun.
func (f *foresight) looks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.looks
}

// However many ask, there is one look for each change, and all see the same.
func TestOneLookForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		follower := c.servers[1] // nobody asks it by itself
		for i := range 5 {
			c.submit(1, testJob(fmt.Sprint("j", i), 1))
			pass(time.Minute) // the leader explains and keeps what it foresees, which are changes too
			for range 3 {
				if got := snapshots(t, follower, Newest); len(got) != 1 {
					t.Errorf("50 who asked got %d forecasts", len(got))
				}
			}
			if looks := follower.foresight.looks(); looks != i+1 {
				t.Errorf("%d looks for %d changes", looks, i+1)
			}
		}
	})
}

// While somebody computes, those who want a forecast have the one before, a dear
// look is not made again for everybody who knows something newer, and submissions
// go on.
func TestNobodyWaitsForWhoComputes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		c.submit(1, testJob("first", 1))
		follower := c.servers[1]
		before := snapshots(t, follower, Newest)
		f := follower.foresight
		entered, done := make(chan struct{}), make(chan struct{})
		var preview sync.WaitGroup
		preview.Go(func() {
			if err := follower.Preview(t.Context(), Asker{User: "ann"}, func(*forecast.Futures) error {
				close(entered)
				<-done
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		<-entered
		dear := *f.newest.Load()
		dear.cost = 4 * time.Second
		f.newest.Store(&dear)
		first := dear.Starts[0].JobID
		second := c.submit(1, testJob("second", 1)) // nothing waits for the preview
		time.Sleep(foresightOld + time.Second)
		for range 100 {
			shown, err := follower.ForecastSnapshot(t.Context(), follower.Store().Snapshot().Index(), first)
			if err != nil || shown != &dear {
				t.Fatalf("a job that the forecast names: %v %v, before %v", shown, err, before)
			}
		}
		if looks := f.looks(); looks != 2 {
			t.Errorf("%d looks, want 2: the one that waits for its turn is for all", looks)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := follower.ForecastSnapshot(short, follower.Store().Snapshot().Index(), second); structs.CodeOf(err) != structs.CodeTimeout {
			t.Errorf("a job that no forecast names yet: %v", err)
		}
		close(done)
		preview.Wait()
		shown, err := follower.ForecastSnapshot(t.Context(), follower.Store().Snapshot().Index(), second)
		if err != nil || len(slices.Collect(shown.OfJob(second))) != 1 || f.looks() != 2 {
			t.Errorf("the next forecast: %+v %v after %d looks", shown, err, f.looks())
		}
	})
}

// One look that took long on a busy machine does not let those who have just changed
// something see what was before: they wait a moment for the next.
func TestOneSlowLookIsNoDearOne(t *testing.T) {
	const slow = 3 * foresightDear
	cheap := &ForecastSnapshot{cost: time.Millisecond}
	once := &ForecastSnapshot{cost: costAfter(cheap, slow)}
	for _, c := range []struct {
		before *ForecastSnapshot
		took   time.Duration
		want   time.Duration
	}{{nil, time.Millisecond, time.Millisecond}, {nil, slow, foresightDear}, {cheap, slow, foresightDear}, {once, slow, slow}, {once, time.Millisecond, time.Millisecond}, {&ForecastSnapshot{cost: slow}, slow, slow}} {
		if cost := costAfter(c.before, c.took); cost != c.want {
			t.Errorf("after %+v one of %v counts as %v, want %v", c.before, c.took, cost, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		c.submit(1, testJob("first", 1))
		follower := c.servers[1]
		snapshots(t, follower, Newest)
		f := follower.foresight
		f.computing.enterFirst() // as a look that takes long
		second := c.submit(1, testJob("second", 1))
		time.AfterFunc(2*foresightDear, f.computing.leave)
		shown, err := follower.ForecastSnapshot(t.Context(), Newest, "")
		if err != nil || len(slices.Collect(shown.OfJob(second))) != 1 {
			t.Errorf("who has changed something is shown %+v, %v", shown, err)
		}
	})
}

// Who computes waits while somebody writes, and no longer than it works.
func TestWritesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForesight(&Config{Now: time.Now})
		waited := func(calls int) time.Duration {
			begin := time.Now()
			for range calls {
				f.giveWay()
			}
			return time.Since(begin)
		}
		f.work.begin(time.Now())
		if span := waited(100); span != 0 {
			t.Errorf("nobody writes, and it waits %v", span)
		}
		f.writing.Add(1)
		if span := waited(1); span != foresightStep {
			t.Errorf("somebody writes, and it waits %v", span)
		}
		for range 100 {
			time.Sleep(10 * time.Millisecond) // of work
			waited(20)
		}
		if total := time.Since(f.work.began); 2*f.work.waited > total+2*foresightStep || 3*f.work.waited < total {
			t.Errorf("of %v it waited %v", total, f.work.waited)
		}
	})
}
