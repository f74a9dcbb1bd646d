package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// What a job writes becomes a version when it succeeds, and each checkpoint where it
// says so; jobs after it use it by its name, and it says what made it.
func TestOutputsBecomeVersions(t *testing.T) {
	shelf := t.TempDir()
	yes := true
	options := testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{{Name: "shelf", Path: shelf + "/{kind}"}}}}, options)
	client := savedClient(t, options)
	model := api.DataName{Kind: structs.StorageModel, Name: "resnet"}
	version := func(of api.DataName, number int) *structs.DataVersion {
		t.Helper()
		var found *structs.DataVersion
		eventually.Within(t, 20*time.Second, "version "+of.Name, func() bool {
			detail, err := client.DataObject(t.Context(), of)
			if err != nil {
				return false
			}
			found = detail.Object.Version(number)
			return found != nil && found.State == structs.DataReady
		})
		return found
	}
	made := runJob(t, client, `job "train" {
  output "run1" {
    keep "model" { name = "resnet" }
  }
  task { command = "sh -c 'mkdir /workspace/outputs/sub && echo weights > /workspace/outputs/model.pt && echo log > /workspace/outputs/sub/log'" }
}
`, structs.JobSucceeded)
	v := version(model, 1)
	if v.JobID != made.Job.ID || v.Attempt != 1 || v.Files != 2 || v.Origin == nil || v.Origin.Job != "train" || v.Origin.Failed {
		t.Errorf("made: %+v, %+v", v, v.Origin)
	}
	if text, err := os.ReadFile(filepath.Join(shelf, "model/resnet/1/sub/log")); err != nil || string(text) != "log\n" {
		t.Errorf("on the storage: %q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(shelf, "output/run1/model.pt")); err != nil || string(text) != "weights\n" {
		t.Errorf("the output stays: %q, %v", text, err)
	}
	used := runJob(t, client, `job "use" {
  model "resnet" {}
  output "run2" {
    keep "dataset" {
      name = "answers"
      path = "best"
    }
  }
  task { command = "sh -c 'mkdir /workspace/outputs/best && cat /workspace/model/private/resnet/model.pt > /workspace/outputs/best/a && touch /workspace/outputs/left'" }
}
`, structs.JobSucceeded)
	v = version(api.DataName{Name: "answers"}, 1)
	want := []structs.DataInput{{DataID: structs.DataID{Project: "default", Kind: "model", Name: "resnet"}, Version: 1, Digest: used.Job.Models[0].Object.Digest}}
	if v.Files != 1 || !slices.Equal(v.Origin.Inputs, want) {
		t.Errorf("made of a model: %+v, %+v", v, v.Origin)
	}
	runJob(t, client, `job "fails" {
  output "run3" { 
    keep "model" { name = "resnet" }
  }
  task { command = "sh -c 'echo half > /workspace/outputs/half; exit 3'" }
}
`, structs.JobFailed)
	empty := runJob(t, client, `job "empty" {
  output "run4" { 
    keep "model" { name = "resnet" }
  }
  task { command = "true" }
}
`, structs.JobSucceeded)
	eventually.Within(t, 20*time.Second, "the refusal is told", func() bool {
		list, _, err := client.JobEvents(t.Context(), empty.Job.ID, nil)
		return err == nil && slices.ContainsFunc(list.Events, func(e structs.Event) bool {
			return e.ID == "event.job.output_refused" && e.Cause != nil && e.Cause.ID == "objects.take_empty"
		})
	})
	lineage, err := client.DataLineage(t.Context(), model, 1)
	if err != nil || len(lineage.Nodes) != 4 || len(lineage.Edges) != 3 || lineage.Nodes[3].Name != "answers" || lineage.Nodes[3].Depth != 2 {
		t.Errorf("lineage: %+v, %v", lineage, err)
	}
	failed, err := client.TakeData(t.Context(), api.DataName{Kind: structs.StorageAlgorithm, Name: "half"}, api.DataTakeRequest{Job: "fails", Path: "half"})
	if err != nil || failed.Version != 1 {
		t.Fatalf("of a failed job: %+v, %v", failed, err)
	}
	if v := version(api.DataName{Kind: structs.StorageAlgorithm, Name: "half"}, 1); v.Files != 1 || !v.Origin.Failed {
		t.Errorf("of a failed job: %+v, %+v", v, v.Origin)
	}
	if detail, err := client.DataObject(t.Context(), model); err != nil || len(detail.Object.Versions) != 1 {
		t.Errorf("a failed job and an empty output made versions: %+v, %v", detail, err)
	}
}
