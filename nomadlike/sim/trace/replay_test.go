package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/internal/golden"
)

// small is a workload that fills its pools, for tests that replay it often.
func small(seed uint64) (*Trace, []Pool) {
	return Generate(Workload{Seed: seed, Jobs: 300, Days: 2, Users: 10, Pools: 2, Nodes: 6, NodeGPUs: 4, Load: 100})
}

func replayed(t *testing.T, trace *Trace, options Options) Report {
	t.Helper()
	report, err := Replay(context.Background(), trace, options)
	if err != nil {
		t.Fatalf("%+v: %v", options, err)
	}
	return report
}

func asJSON(t *testing.T, report Report) string {
	t.Helper()
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// TestReplayMatchesItsTwin: fifo and sjf are what the obvious replay says,
// to the nanosecond, whatever the trace.
func TestReplayMatchesItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace, pools := drawTrace(t)
		options := Options{
			Pools: pools, Estimate: EstimateTrue,
			Policy: rapid.SampledFrom([]Policy{PolicyFIFO, PolicySJF}).Draw(t, "policy"),
			Place:  rapid.SampledFrom([]Place{PlaceConsolidate, PlaceFungible}).Draw(t, "place"),
		}
		got, err := Replay(context.Background(), trace, options)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(twin(trace, options), got); diff != "" {
			t.Fatalf("differs from the twin (-twin +replay):\n%s", diff)
		}
	})
}

// drawTrace draws a short trace that is dense in what is hard: instants with
// several events, runs of no length, gangs with a remainder, jobs too large.
func drawTrace(t *rapid.T) (*Trace, []Pool) {
	pools := make([]Pool, rapid.IntRange(1, 2).Draw(t, "pools"))
	for i := range pools {
		pools[i] = Pool{Name: fmt.Sprintf("p%d", i), Nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), GPUs: rapid.IntRange(1, 4).Draw(t, "gpus")}
	}
	trace := &Trace{}
	at := 0
	for i := range rapid.IntRange(1, 40).Draw(t, "jobs") {
		at += rapid.IntRange(0, 3).Draw(t, "pause")
		in, size := rapid.IntRange(0, len(pools)).Draw(t, "pool"), rapid.IntRange(0, 12).Draw(t, "size")
		if in < len(pools) && size > pools[in].GPUs {
			size -= size % pools[in].GPUs
		}
		trace.Jobs = append(trace.Jobs, Job{
			ID: fmt.Sprint(i), Group: fmt.Sprintf("p%d", in), Submit: time.Duration(at) * time.Second,
			Duration: time.Duration(rapid.IntRange(-1, 12).Draw(t, "run")) * time.Second, GPUs: size,
		})
	}
	return trace, pools
}

// TestEnginesAgree: the board alone and the board on the replicated state give
// the same report, under every policy that both know.
func TestEnginesAgree(t *testing.T) {
	trace, pools := small(5)
	trace.Jobs = trace.Jobs[:150]
	for _, policy := range Policies() {
		for _, estimate := range Estimates() {
			if policy == string(PolicySRTF) || policy == string(PolicyEASY) && estimate != string(EstimateTrue) {
				continue
			}
			options := Options{Pools: pools, Policy: Policy(policy), Estimate: Estimate(estimate), Place: PlaceConsolidate, Engine: EngineBoard}
			board := asJSON(t, replayed(t, trace, options))
			options.Engine = EngineState
			if diff := cmp.Diff(board, asJSON(t, replayed(t, trace, options))); diff != "" {
				t.Errorf("%s %s: the engines differ (-board +state):\n%s", policy, estimate, diff)
			}
		}
	}
}

// TestReplayGolden shows the reports of one workload under the policies whose
// meaning is fixed to the last start.
func TestReplayGolden(t *testing.T) {
	trace, pools := small(1)
	for _, policy := range []Policy{PolicyFIFO, PolicySJF, PolicySRTF} {
		report := replayed(t, trace, Options{Pools: pools, Policy: policy, Estimate: EstimateTrue, Place: PlaceConsolidate})
		golden.Assert(t, "testdata/"+string(policy)+".golden.json", asJSON(t, report))
	}
}

// TestPolicies: knowing more, or passing, lets jobs wait less on a full
// cluster; every job ends under every policy.
func TestPolicies(t *testing.T) {
	trace, pools := small(1)
	wait := make(map[Policy]float64)
	for _, name := range Policies() {
		policy := Policy(name)
		for _, estimate := range []Estimate{EstimateLearned, EstimateLimit, EstimateTrue} {
			report := replayed(t, trace, Options{Pools: pools, Policy: policy, Estimate: estimate, Place: PlaceConsolidate})
			if report.Jobs != len(trace.Jobs) || report.Dropped != 0 {
				t.Errorf("%s %s: %d jobs of %d", policy, estimate, report.Jobs, len(trace.Jobs))
			}
			wait[policy] = report.AvgWait // at last with true run times
		}
	}
	for _, better := range []struct{ a, than Policy }{
		{PolicyDefault, PolicyFIFO}, {PolicyEASY, PolicyFIFO}, {PolicySJF, PolicyFIFO}, {PolicySRTF, PolicySJF},
	} {
		if wait[better.a] >= wait[better.than] {
			t.Errorf("under %s jobs wait %.0f s, under %s only %.0f s", better.a, wait[better.a], better.than, wait[better.than])
		}
	}
}

// TestReplaySame: two replays print the same bytes.
func TestReplaySame(t *testing.T) {
	trace, pools := small(2)
	for _, estimate := range Estimates() {
		options := Options{Pools: pools, Policy: PolicyDefault, Estimate: Estimate(estimate), Place: PlaceConsolidate}
		if diff := cmp.Diff(asJSON(t, replayed(t, trace, options)), asJSON(t, replayed(t, trace, options))); diff != "" {
			t.Errorf("%s: the second replay differs:\n%s", estimate, diff)
		}
	}
}

// TestSRTFKeepsProgress: a preempted job goes on where it was, and a shorter
// one never waits for a longer one that it could end.
func TestSRTFKeepsProgress(t *testing.T) {
	trace := &Trace{Jobs: []Job{
		{ID: "long", Group: "p", Submit: 0, Duration: 100 * time.Second, GPUs: 1},
		{ID: "short", Group: "p", Submit: 30 * time.Second, Duration: 20 * time.Second, GPUs: 1},
		{ID: "longer", Group: "p", Submit: 40 * time.Second, Duration: 90 * time.Second, GPUs: 1},
		{ID: "shortest", Group: "p", Submit: 60 * time.Second, Duration: 5 * time.Second, GPUs: 1},
	}}
	r, err := start(trace, Options{Pools: []Pool{{"p", 1, 1}}, Policy: PolicySRTF, Estimate: EstimateTrue, Place: PlaceConsolidate})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, task := range r.tasks {
		fmt.Fprintf(&got, "%s: first %s, ended %s, %d runs\n", task.trace.ID, task.first, task.end, task.runs)
	}
	want := "long: first 0s, ended 2m5s, 3 runs\nshort: first 30s, ended 50s, 1 runs\n" +
		"longer: first 2m5s, ended 3m35s, 1 runs\nshortest: first 1m0s, ended 1m5s, 1 runs\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

// TestSRTFForecasts: a policy that knows all run times foretells the start of a job that
// nobody overtakes, behind runs that were interrupted before.
func TestSRTFForecasts(t *testing.T) {
	trace := &Trace{Jobs: []Job{
		{ID: "long", Group: "p", Submit: 0, Duration: 100 * time.Second, GPUs: 1},
		{ID: "short", Group: "p", Submit: 30 * time.Second, Duration: 20 * time.Second, GPUs: 1},
		{ID: "longer", Group: "p", Submit: 60 * time.Second, Duration: 90 * time.Second, GPUs: 1},
	}}
	for _, estimate := range []Estimate{EstimateTrue, EstimateLimit, EstimateLearned} {
		report := replayed(t, trace, Options{
			Pools: []Pool{{"p", 1, 1}}, Policy: PolicySRTF, Estimate: estimate, Place: PlaceConsolidate, Predict: &Predict{OnlyQueued: true},
		})
		if estimate == EstimateTrue && (report.Score.N != 1 || report.Score.MAE != 0) {
			t.Errorf("%+v", report.Score)
		}
	}
}

// TestWindow: submissions outside are not there, those on its edges are.
func TestWindow(t *testing.T) {
	trace := &Trace{}
	for i := range 10 {
		trace.Jobs = append(trace.Jobs, Job{ID: fmt.Sprint(i), Submit: time.Duration(i) * time.Minute, Duration: time.Minute, GPUs: 1})
	}
	options := Options{Pools: []Pool{{"", 1, 1}}, Policy: PolicyFIFO, Estimate: EstimateTrue, Place: PlaceConsolidate, From: 2 * time.Minute, To: 5 * time.Minute}
	report := replayed(t, trace, options)
	if report.Jobs != 4 || report.AvgWait != 0 || report.Makespan != 240 || report.Utilisation != 1 || report.PerPool["all"] != report.Statistics {
		t.Errorf("%+v", report)
	}
}

// TestDropped: what cannot run is counted in its pool, or in the total alone.
func TestDropped(t *testing.T) {
	trace := &Trace{Jobs: []Job{
		{ID: "fine", Group: "a", Duration: time.Second, GPUs: 8},
		{ID: "too large", Group: "a", Duration: time.Second, GPUs: 9},
		{ID: "no devices", Group: "a", Duration: time.Second, CPUs: 3},
		{ID: "no run time", Group: "b", Duration: -1, GPUs: 1},
		{ID: "no pool", Group: "c", Duration: time.Second, GPUs: 1},
	}}
	report := replayed(t, trace, Options{Pools: []Pool{{"a", 2, 4}, {"b", 1, 4}}, Policy: PolicyDefault, Estimate: EstimateLimit, Place: PlaceConsolidate})
	if report.Jobs != 1 || report.Dropped != 4 || report.PerPool["a"].Dropped != 2 || report.PerPool["b"].Dropped != 1 {
		t.Errorf("%+v", report)
	}
}

// TestProcessors: a trace without devices counts processors, also more of them
// than a bag counts one by one.
func TestProcessors(t *testing.T) {
	trace := &Trace{Jobs: []Job{
		{ID: "half", Duration: 10 * time.Second, CPUs: 1500}, {ID: "most", Duration: 10 * time.Second, CPUs: 2000}, {ID: "last", Duration: 10 * time.Second, CPUs: 3000},
	}}
	for _, engine := range []Engine{EngineBoard, EngineState} {
		report := replayed(t, trace, Options{Pools: []Pool{{"", 3, 1000}}, Policy: PolicyFIFO, Estimate: EstimateTrue, Place: PlaceFungible, Engine: engine})
		if report.Jobs != 3 || report.AvgWait != 10 || report.Makespan != 30 {
			t.Errorf("%s: %+v", engine, report)
		}
	}
}

func TestReplayProblems(t *testing.T) {
	trace := &Trace{Jobs: []Job{{ID: "a", Duration: time.Second, GPUs: 1}}}
	good := Options{Pools: []Pool{{"", 1, 1}}, Policy: PolicyFIFO, Estimate: EstimateTrue, Place: PlaceConsolidate}
	cases := []struct {
		name   string
		change func(*Options)
	}{
		{"policy", func(o *Options) { o.Policy = "fair" }},
		{"estimate", func(o *Options) { o.Estimate = "wrong" }},
		{"place", func(o *Options) { o.Place = "" }},
		{"no pools", func(o *Options) { o.Pools = nil }},
		{"srtf on the state", func(o *Options) { o.Engine, o.Policy = EngineState, PolicySRTF }},
		{"window", func(o *Options) { o.From, o.To = 10*time.Second, 5*time.Second }},
	}
	var all strings.Builder
	for _, c := range cases {
		options := good
		c.change(&options)
		_, err := Replay(context.Background(), trace, options)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		fmt.Fprintf(&all, "== %s\n%s", c.name, render(t, err))
	}
	golden.Assert(t, "testdata/options.golden", all.String())

	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Replay(stopped, trace, good); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped replay returned %v", err)
	}
}
