package httpapi

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Results are the least and the most over attempts and subjobs, and the newest value;
// a log goes before event files, and the first rank before the last.
func TestResultsOfAJob(t *testing.T) {
	alloc := func(subjob int, attempt uint64, rank int) *structs.Allocation {
		return &structs.Allocation{ID: fmt.Sprint(subjob, attempt, rank), Subjob: subjob, Attempt: attempt, Rank: rank}
	}
	series := func(name, source string, count int64, least, most, last float64, at structs.UnixNano) structs.MetricSeries {
		return structs.MetricSeries{Name: name, Source: source, Count: count, Min: least, Max: most, Last: structs.MetricPoint{Step: int64(at), At: at, Value: last}}
	}
	allocs := []*structs.Allocation{alloc(0, 2, 0), alloc(0, 2, 7), alloc(0, 1, 0), alloc(1, 1, 0)}
	found := map[string]structs.AllocMetrics{
		allocs[0].ID: {Series: []structs.MetricSeries{
			series("loss", "runs/a", 9, 0, 9, 5, 30), // the same, of event files
			series("loss", structs.MetricFromLog, 10, 1, 3, 1.5, 30),
			series("empty", structs.MetricFromLog, 0, 0, 0, 0, 0),
		}},
		allocs[1].ID: {Series: []structs.MetricSeries{
			series("loss", structs.MetricFromLog, 10, 0.5, 3, 1.5, 31), // the last rank tells the same
			series("acc", structs.MetricFromLog, 2, 0.1, 0.7, 0.6, 29),
		}},
		allocs[2].ID: {Series: []structs.MetricSeries{series("loss", structs.MetricFromLog, 4, 2, 8, 2, 20)}},
		allocs[3].ID: {Series: []structs.MetricSeries{series("acc", structs.MetricFromLog, 1, 0.9, 0.9, 0.9, 40)}},
	}
	want := []api.MetricResult{
		{Name: "acc", Count: 3, Min: 0.1, Max: 0.9, Last: structs.MetricPoint{Step: 40, At: 40, Value: 0.9}, Subjob: 1},
		{Name: "loss", Count: 14, Min: 1, Max: 8, Last: structs.MetricPoint{Step: 30, At: 30, Value: 1.5}},
	}
	if diff := cmp.Diff(want, resultsOf(allocs, found, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], resultsOf(allocs, found, []string{"loss"})); diff != "" {
		t.Errorf("of one name (-want +got):\n%s", diff)
	}
}

// No node is asked for more allocations at a time than it takes, and none is asked
// for ever.
func TestRoundsOfANode(t *testing.T) {
	var allocs []*structs.Allocation
	for i := range 25 {
		allocs = append(allocs, &structs.Allocation{ID: fmt.Sprint(i), NodeID: "busy"})
	}
	allocs = append(allocs, &structs.Allocation{ID: "other", NodeID: "quiet"})
	var got []string
	for _, round := range roundsOf(allocs, 10, 2) {
		counts := make(map[string]int)
		for _, alloc := range round {
			counts[alloc.NodeID]++
		}
		got = append(got, fmt.Sprint(counts))
	}
	if diff := cmp.Diff([]string{"map[busy:10 quiet:1]", "map[busy:10]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Jobs that the caller may not read are no secret that a list reports.
func TestResultsOfForeignJobs(t *testing.T) {
	h := newHarness(t)
	h.node("machine-1", 8)
	id := h.start(h.admin, sleeper("secret", "vision", "none"))
	for name, client := range map[string]*api.Client{"of another project": h.as("user", "speech", "li"), "the administrator": h.admin} {
		found, err := client.JobResults(t.Context(), []string{id, id, "nobody"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// The node is not there: whoever may read the job is told so.
		if want := name == "the administrator"; len(found.Jobs) != 0 || (len(found.Away) == 1) != want {
			t.Errorf("%s: %+v", name, found)
		}
	}
	many := make([]string, api.ResultJobsMax+1)
	if _, err := h.admin.JobResults(t.Context(), many, nil); structs.CodeOf(err) != structs.CodeTooLarge {
		t.Errorf("too many jobs: %v", err)
	}
}
