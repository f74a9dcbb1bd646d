package agent

import (
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// What a running rank uses is told to whoever may read its job, and cordoning
// a node is in its history.
func TestFiguresOfAJob(t *testing.T) {
	agent, client := devAgent(t)
	job := runJob(t, client, sleeper("measured", "default", "none"), structs.JobRunning)
	eventually.Within(t, time.Minute, "figures of the rank", func() bool {
		figures, err := client.JobUsage(t.Context(), job.Job.ID, 0)
		return err == nil && len(figures.Ranks) == 1 && figures.Ranks[0].Measured && figures.Ranks[0].MemoryUsed > 0 && figures.Ranks[0].Processes > 0
	})
	if _, err := client.JobUsage(t.Context(), job.Job.ID, 1); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a subjob that it has not: %v", err)
	}
	if _, err := client.CordonNode(t.Context(), agent.ID()); err != nil {
		t.Fatal(err)
	}
	events, err := client.NodeEvents(t.Context(), agent.ID())
	if err != nil || len(events.Events) == 0 {
		t.Fatalf("history of the node: %+v %v", events, err)
	}
	for _, event := range events.Events {
		if event.NodeID != agent.ID() || event.JobID != "" {
			t.Errorf("not of the node: %+v", event)
		}
	}
}

// What a rank used while it ran is told over time, also after it has ended.
func TestPastOfAJob(t *testing.T) {
	_, client := devAgent(t)
	job := runJob(t, client, sleeper("kept", "default", "none"), structs.JobRunning)
	past := func(filter api.JobHistoryFilter) *api.JobHistory {
		t.Helper()
		found, err := client.JobHistory(t.Context(), job.Job.ID, filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, rank := range found.Ranks {
			for _, series := range rank.Series {
				if len(series.Values) != len(found.At) {
					t.Errorf("%s has %d values at %d times", series.Gauge, len(series.Values), len(found.At))
				}
			}
		}
		return found
	}
	memory := func(found *api.JobHistory) float64 {
		most := 0.0
		for _, rank := range found.Ranks {
			for _, series := range rank.Series {
				for _, value := range series.Values {
					if series.Gauge == device.GaugeMemoryUsed && value != nil {
						most = max(most, *value)
					}
				}
			}
		}
		return most
	}
	eventually.Within(t, 30*time.Second, "the rank's memory is written down", func() bool { return memory(past(api.JobHistoryFilter{})) > 0 })
	if _, err := client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, job.Job.ID, structs.JobStopped)
	rank := 0
	ended := past(api.JobHistoryFilter{Attempt: 1, Rank: &rank, Points: 1})
	if memory(ended) <= 0 || len(ended.At) != 1 || ended.Attempt != 1 || len(ended.Away) != 0 || ended.Ranks[0].Memory == 0 {
		t.Errorf("after its end %+v", ended)
	}
	rank = 7
	if none := past(api.JobHistoryFilter{Rank: &rank}); len(none.Ranks) != 0 {
		t.Errorf("of a rank that it has not: %+v", none)
	}
	if none := past(api.JobHistoryFilter{Attempt: 9}); len(none.Ranks) != 0 || none.Attempt != 9 {
		t.Errorf("of an attempt that it has not: %+v", none)
	}
	if _, err := client.JobHistory(t.Context(), job.Job.ID, api.JobHistoryFilter{Subjob: 1}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a subjob that it has not: %v", err)
	}
	if _, err := client.JobHistory(t.Context(), job.Job.ID, api.JobHistoryFilter{Points: structs.HistoryPointsMax + 1}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("too many points: %v", err)
	}
}
