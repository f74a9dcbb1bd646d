package stage

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
)

// What pages of the stories ask for, but for streams.
var asked = []string{
	"/v1/jobs?limit=1000", "/v1/nodes?limit=1000", "/v1/queue?forecast=true&limit=1000", "/v1/queue/timeline?hours=24", "/v1/outlook",
	"/v1/pools", "/v1/devices?limit=1000", "/v1/maintenance", "/v1/servers", "/v1/operator/autopilot", "/v1/projects/vision",
}

// Of the demonstration.
var askedOfDemo = []string{
	"/v1/jobs/llama-7b-sft", "/v1/jobs/llama-7b-sft/events", "/v1/jobs/llama-7b-sft/faults", "/v1/jobs/llama-7b-sft/figures", "/v1/jobs/llama-7b-sft/metrics?points=60",
	"/v1/jobs/llama-7b-sft/figures/past?points=240", "/v1/jobs/vit-l-pretrain/forecast?helps=true", "/v1/jobs/resnet-ab-3/diff", "/v1/jobs/llama-7b-sft/files?path=outputs",
	"/v1/nodes/gpu-03/figures?since=6h&points=240", "/v1/nodes/gpu-03/events", "/v1/nodes/gpu-03/devices",
}

func told(t *testing.T, story Story) *Stage {
	t.Helper()
	s, err := perform(t.Context(), story)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *Stage) get(ctx context.Context, path string) (int, string) {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1"+path, http.NoBody)
	request.Header.Set("Authorization", "Bearer "+s.Token)
	answer, _ := s.RoundTrip(request) // of a recorder: never fails
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// A story told twice is the same to the byte, and everything that pages ask for is answered.
func TestStoriesAreAlwaysTheSame(t *testing.T) {
	for name, story := range map[string]Story{"demo": Demo, "four": Four, "thousand": Thousand} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := told(t, story), told(t, story)
			paths := asked
			if name == "demo" {
				paths = slices.Concat(asked, askedOfDemo)
			}
			for _, path := range paths {
				if path == "/v1/projects/vision" && name != "demo" {
					continue
				}
				status, one := first.get(t.Context(), path)
				_, other := second.get(t.Context(), path)
				if status != http.StatusOK {
					t.Errorf("%s: status %d: %.300s", path, status, one)
				}
				if one != other {
					at := 0
					for at < min(len(one), len(other)) && one[at] == other[at] {
						at++
					}
					t.Errorf("%s: told twice it differs: …%.200s… and …%.200s…", path, one[max(0, at-60):], other[max(0, at-60):])
				}
			}
		})
	}
}

// The demonstration has a job in every state that a page shows.
func TestDemonstrationHasEveryState(t *testing.T) {
	s := told(t, Demo)
	found := map[structs.JobState]bool{}
	for view := range s.replica.Store().Snapshot().Jobs() {
		found[view.Status.State] = true
	}
	for _, state := range []structs.JobState{
		structs.JobQueued, structs.JobStarting, structs.JobRunning, structs.JobPaused, structs.JobSucceeded, structs.JobFailed, structs.JobStopped, structs.JobExpired,
	} {
		if !found[state] {
			t.Errorf("no job is %s, only %v", state, slices.Sorted(maps.Keys(found)))
		}
	}
	for name, want := range map[string]structs.JobState{
		"llama-7b-sft": structs.JobRunning, "vit-l-pretrain": structs.JobQueued, "moe-16e": structs.JobQueued, "sdxl-lora": structs.JobStarting, "wav2vec-base": structs.JobPaused,
		"resnet-ab-3": structs.JobFailed, "nccl-check": structs.JobFailed, "resnet-ab-2": structs.JobSucceeded, "ocr-sweep": structs.JobRunning,
	} {
		if view, ok := s.replica.Store().Snapshot().Job(s.job(name)); !ok || view.Status.State != want {
			t.Errorf("%s is %s, not %s", name, view.Status.State, want)
		}
	}
	attempts := 0
	for range s.replica.Store().Snapshot().Attempts(s.job("llama-7b-sft")) {
		attempts++
	}
	if attempts != 2 {
		t.Errorf("llama-7b-sft has %d attempts, not one that was lost and one that runs", attempts)
	}
}
