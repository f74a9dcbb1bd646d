package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

const epoch = structs.UnixNano(1_600_000_000_000_000_000)

// past is a run of a user that ended at a time after the epoch.
func past(user, name string, devices int, end, runtime time.Duration) Run {
	return Run{Pool: "a", Project: "p", User: user, Name: name, Devices: devices, Nodes: 1, Runtime: runtime, Outcome: structs.OutcomeSucceeded, EndedAt: epoch.Add(end)}
}

// asked is a job of a user that is submitted at a time after the epoch.
func asked(user, name string, devices int, at time.Duration) *structs.Job {
	return &structs.Job{
		Project: "p", User: user, Name: name, Nodes: 1, Placement: structs.Placement{Pool: "a"}, SubmittedAt: epoch.Add(at),
		Resources: []structs.Resources{{Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: devices}}}},
	}
}

func within(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: got %v, want %v to %v", what, got, low, high)
	}
}

func TestEstimateKnowsNothingAtFirst(t *testing.T) {
	m := NewModel()
	e := m.Estimate(asked("li", "a-1", 1, 0))
	// Half of what lasts t goes on for another t, from a second on.
	within(t, "P50 of one that runs for an hour", e.Remaining(time.Hour, 0.5), 50*time.Minute, 70*time.Minute)
	within(t, "P90 of one that runs for an hour", e.Remaining(time.Hour, 0.9), 8*time.Hour, 10*time.Hour)
}

func TestEstimateFollowsProgramUserAndSize(t *testing.T) {
	m := NewModel()
	at := time.Duration(0)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		at += time.Hour
		jitter := 1 + 0.2*rng.Float64()
		m.Learn(past("li", fmt.Sprintf("short-%d", i), 1, at, time.Duration(jitter*float64(10*time.Minute))))
		m.Learn(past("wu", fmt.Sprintf("long-%d", i), 1, at, time.Duration(jitter*float64(20*time.Hour))))
		m.Learn(past("wu", fmt.Sprintf("wide-%d", i), 8, at, time.Duration(jitter*float64(2*time.Hour))))
	}
	at += time.Hour
	within(t, "short", m.Estimate(asked("li", "short-99", 1, at)).Quantile(0.5), 9*time.Minute, 14*time.Minute)
	within(t, "long", m.Estimate(asked("wu", "long-99", 1, at)).Quantile(0.5), 18*time.Hour, 26*time.Hour)
	within(t, "wide", m.Estimate(asked("wu", "wide-99", 8, at)).Quantile(0.5), 100*time.Minute, 170*time.Minute)
	within(t, "another user's", m.Estimate(asked("an", "wide-1", 8, at)).Quantile(0.5), 80*time.Minute, 3*time.Hour)
}

func TestEstimateSeesTheSweepItself(t *testing.T) {
	m := NewModel()
	for i := range 40 { // until now such jobs took ten minutes
		m.Learn(past("li", "sweep", 1, time.Duration(i)*time.Hour, 10*time.Minute))
	}
	start := 100 * time.Hour
	running := func(yield func(Ongoing) bool) { // fifty of a new sweep run for three hours
		for i := range 50 {
			at := start + time.Duration(i)*time.Second
			if !yield(Ongoing{Job: asked("li", "sweep", 1, at), Since: epoch.Add(at)}) {
				return
			}
		}
	}
	o := m.Outlook(epoch.Add(start+3*time.Hour), running)
	queued := o.Estimate(asked("li", "sweep", 1, start+time.Minute))
	within(t, "P10 of one more of the sweep", queued.Quantile(0.1), 150*time.Minute, 400*time.Hour)
	other := o.Estimate(asked("li", "sweep", 1, start+3*time.Hour))
	within(t, "P10 of the next sweep", other.Quantile(0.1), time.Minute, 15*time.Minute)
	again := m.Outlook(epoch.Add(start+3*time.Hour), nil).Estimate(asked("li", "sweep", 1, start+time.Minute))
	within(t, "P50 when nothing is known to run", again.Quantile(0.5), 8*time.Minute, 15*time.Minute)
}

func TestSurvivorsCountAsLonger(t *testing.T) {
	lost, failed := NewModel(), NewModel()
	for i := range 50 {
		run := past("li", "train", 1, time.Duration(i)*time.Hour, time.Hour)
		failed.Learn(run)
		run.Outcome = structs.OutcomeLost
		lost.Learn(run)
	}
	job := asked("li", "train", 1, 60*time.Hour)
	if l, f := lost.Estimate(job).Quantile(0.5), failed.Estimate(job).Quantile(0.5); l < 2*f {
		t.Errorf("P50 %v after runs cut short at an hour, %v after ended ones: want at least twice that", l, f)
	}
}

func TestUsersWordsCount(t *testing.T) {
	m := NewModel()
	job := asked("li", "new", 1, 0)
	job.ExpectedRuntime = structs.Duration(6 * time.Hour)
	within(t, "P50 of an expected runtime alone", m.Estimate(job).Quantile(0.5), 10*time.Minute, 9*time.Hour)
	for i := range 200 { // they take half of what their user expects, each time another program and time
		run := past("li", fmt.Sprintf("%c%c", 'a'+i%26, 'a'+i/26), 1, time.Duration(i)*100*time.Hour, time.Duration(1+i%40)*time.Hour)
		run.Expected = 2 * run.Runtime
		m.Learn(run)
	}
	job = asked("li", "unseen", 1, 30000*time.Hour)
	job.ExpectedRuntime = structs.Duration(80 * time.Hour)
	within(t, "P50 of what is expected to take 80 h", m.Estimate(job).Quantile(0.5), 30*time.Hour, 50*time.Hour)
	job.TimeLimit = structs.Duration(20 * time.Hour)
	within(t, "P90 under a limit", m.Estimate(job).Quantile(0.9), 20*time.Hour, 20*time.Hour)
}

// What a user states of a job outweighs what the others of his jobs did just
// before, how ever they ended, for the estimate and for every future, until the
// job itself outlives it; how far this user's words were off before counts.
func TestStatedRuntimeOutweighsTheUsersOtherRuns(t *testing.T) {
	for _, outcome := range []structs.Outcome{structs.OutcomeSucceeded, structs.OutcomeFailed} {
		m := NewModel()
		for i := range 5 {
			run := past("li", "train", 1, time.Duration(i)*10*time.Second, time.Second)
			run.Outcome = outcome
			m.Learn(run)
		}
		job := asked("li", "train", 1, time.Minute)
		within(t, "P50 of a job of which nothing is said", m.Estimate(job).Quantile(0.5), time.Second, 30*time.Second)
		job.ExpectedRuntime, job.TimeLimit = structs.Duration(2*time.Hour), structs.Duration(3*time.Hour)
		within(t, "P10 of what is to take 2 h", m.Estimate(job).Quantile(0.1), 30*time.Minute, 2*time.Hour)
		within(t, "P50 of what is to take 2 h", m.Estimate(job).Quantile(0.5), 90*time.Minute, 150*time.Minute)
		within(t, "what is left of it after 170 min", m.Estimate(job).Remaining(170*time.Minute, 0.5), time.Minute, 10*time.Minute)
		outlook, short := m.Outlook(job.SubmittedAt, nil), 0
		for seed := range uint64(1000) {
			if outlook.Draw(seed).Estimate(job).Quantile(0.5) < 30*time.Minute {
				short++
			}
		}
		if short > 80 {
			t.Errorf("in %d of 1000 futures a job that is to take 2 h takes seconds", short)
		}
		for i := range 20 { // and failures do not make of 2 h what they took
			run := past("li", "train", 1, time.Duration(i+1)*time.Hour, time.Second)
			run.Outcome, run.Expected = structs.OutcomeFailed, 2*time.Hour
			m.Learn(run)
		}
		job.SubmittedAt = epoch.Add(21 * time.Hour)
		within(t, "P50 of what is to take 2 h, after failures", m.Estimate(job).Quantile(0.5), 90*time.Minute, 150*time.Minute)
		for i := range 20 { // but success does
			run := past("li", "train", 1, time.Duration(i+30)*time.Hour, 30*time.Minute)
			run.Expected = 2 * time.Hour
			m.Learn(run)
		}
		within(t, "P50 of what took a quarter of what was said twenty times", m.Estimate(job).Quantile(0.5), 20*time.Minute, 45*time.Minute)
	}
}

func TestDrawsShareTheirSweep(t *testing.T) {
	m := NewModel()
	for i := range 60 { // sweeps of five take ten minutes or ten hours
		for k := range 5 {
			runtime := 10 * time.Minute
			if i%2 == 0 {
				runtime = 10 * time.Hour
			}
			m.Learn(past("li", "sweep", 1, time.Duration(i)*100*time.Hour+runtime+time.Duration(k)*time.Second, runtime))
		}
	}
	o := m.Outlook(epoch.Add(9000*time.Hour), nil)
	short, long := 0, 0
	for seed := range uint64(200) {
		d := o.Draw(seed)
		e := d.Estimate(asked("li", "sweep", 1, 9000*time.Hour))
		if e != d.Estimate(asked("li", "sweep", 1, 9000*time.Hour+time.Minute)) {
			t.Fatal("two jobs of a sweep got different futures")
		}
		switch p50 := e.Quantile(0.5); {
		case p50 < 30*time.Minute:
			short++
		case p50 > 5*time.Hour:
			long++
		}
	}
	if short < 60 || long < 60 {
		t.Errorf("of 200 futures %d were short and %d long: want both often", short, long)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := NewModel()
	for i := range burstsMax + burstsMax/4 {
		run := past(fmt.Sprint("u", i), "x", 1+i%8, time.Duration(i)*time.Hour, time.Minute)
		run.Expected = time.Minute
		m.Learn(run)
		if len(m.bursts) > burstsMax || len(m.cohorts) > burstsMax*cohortLevels || len(m.byUser) > burstsMax || len(m.expected.users) > usersMax {
			t.Fatalf("after %d runs: %d bursts, %d cohorts, %d users, %d ratios", i, len(m.bursts), len(m.cohorts), len(m.byUser), len(m.expected.users))
		}
	}
	for key, on := range m.cohorts {
		for _, s := range on.bursts {
			if s.cohorts[key.level] != on {
				t.Fatal("a cohort holds a burst that does not know it")
			}
		}
	}
}

// TestFarthestSubmissions: a job that is asked about twice is in one burst,
// however odd the time of its submission.
func TestFarthestSubmissions(t *testing.T) {
	for _, at := range []time.Duration{math.MinInt64, math.MinInt64 + 1, math.MaxInt64} {
		m := NewModel()
		job := asked("li", "x", 1, 0)
		job.SubmittedAt = structs.UnixNano(at)
		for range 3 {
			m.Estimate(job)
		}
		if len(m.bursts) != 1 {
			t.Errorf("submitted at %d: %d bursts", at, len(m.bursts))
		}
	}
}
