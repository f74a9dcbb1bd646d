package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
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
	outputsAre(t, client, "train", []api.JobOutput{{State: api.OutputKept, Path: "run1", Kind: "model", Name: "resnet", Version: 1}})
	outputsAre(t, client, "fails", []api.JobOutput{{State: api.OutputUnkept, Path: "run3", Kind: "model", Name: "resnet"}})
	outputsAre(t, client, "empty", []api.JobOutput{{State: api.OutputRefused, Path: "run4", Kind: "model", Name: "resnet", Cause: &structs.Reason{ID: "objects.take_empty"}}})
	shown, err := client.DataWithOutputs(t.Context(), model)
	if err != nil || len(shown.Outputs) != 2 || shown.Outputs[0].Name != "empty" || shown.Outputs[1].Output.State != api.OutputUnkept {
		t.Errorf("jobs that made no version: %+v, %v", shown, err)
	}
	runJob(t, client, `job "saves" {
  output "run5" {
    keep "model" {
      name = "steps"
      when = "checkpoint"
    }
  }
  task {
    command = <<-EOT
    sh -c '
      save() {
        mkdir /workspace/outputs/$1
        echo $1 > /workspace/outputs/$1/weights
        printf "/workspace/outputs/%s\nstep %s\n" $1 $2 > $NOMADLIKE_CHECKPOINT_INBOX/$2
        while [ -e $NOMADLIKE_CHECKPOINT_INBOX/$2 ]; do sleep 0.05; done
      }
      save one 1
      save two 2
      touch /workspace/outputs/not-kept
      printf "/tmp/elsewhere\nstep 3\n" > $NOMADLIKE_CHECKPOINT_INBOX/3
      while [ -e $NOMADLIKE_CHECKPOINT_INBOX/3 ]; do sleep 0.05; done
      exit 4'
  EOT
  }
}
`, structs.JobFailed)
	for step, name := range map[int]string{1: "one", 2: "two"} {
		v := version(api.DataName{Kind: structs.StorageModel, Name: "steps"}, step)
		if text, err := os.ReadFile(filepath.Join(shelf, "model/steps", strconv.Itoa(step), "weights")); err != nil || string(text) != name+"\n" || v.Files != 1 || v.Origin.Step != int64(step) {
			t.Errorf("checkpoint %s: %q, %v, %+v, %+v", name, text, err, v, v.Origin)
		}
		if text, err := os.ReadFile(filepath.Join(shelf, "output/run5", name, "weights")); err != nil || string(text) != name+"\n" {
			t.Errorf("the checkpoint stays: %q, %v", text, err)
		}
	}
	outputsAre(t, client, "saves", []api.JobOutput{
		{State: api.OutputKept, Step: 1, Path: "run5/one", Kind: "model", Name: "steps", Version: 1},
		{State: api.OutputKept, Step: 2, Path: "run5/two", Kind: "model", Name: "steps", Version: 2},
		{State: api.OutputRefused, Step: 3, Kind: "model", Name: "steps", Cause: &structs.Reason{ID: "state.take_outside"}},
	})
	runJob(t, client, `job "sweep" {
  type = "batch"
  batch { count = 3 }
  output "run6" {
    keep "model" {
      name = "swept"
      path = "best"
    }
  }
  task { command = "sh -c 'test $NOMADLIKE_SUBJOB_INDEX != 1 && mkdir /workspace/outputs/best && echo $NOMADLIKE_SUBJOB_INDEX > /workspace/outputs/best/lr'" }
}
`, structs.JobFailed)
	var found []string
	for _, number := range []int{1, 2} {
		v := version(api.DataName{Kind: structs.StorageModel, Name: "swept"}, number)
		text, err := os.ReadFile(filepath.Join(shelf, "model/swept", strconv.Itoa(number), "lr"))
		if err != nil || !v.Origin.Apart || strings.TrimSpace(string(text)) != strconv.Itoa(v.Origin.Subjob) || v.Files != 1 {
			t.Errorf("version %d of the batch: %q, %v, %+v, %+v", number, text, err, v, v.Origin)
		}
		found = append(found, strings.TrimSpace(string(text)))
	}
	if slices.Sort(found); strings.Join(found, " ") != "0 2" {
		t.Errorf("subjobs that made versions: %v", found)
	}
	batch, _, err := client.Job(t.Context(), "sweep", nil)
	if err != nil || batch.OutputCounts[api.OutputKept] != 2 || len(batch.Outputs) != 3 || batch.Outputs[1].State != api.OutputUnkept || batch.Outputs[1].Path != "run6/sweep-1" {
		t.Errorf("outputs of the batch: %+v, %v", batch, err)
	}
	one := 2
	if _, err := client.TakeData(t.Context(), api.DataName{Kind: structs.StorageDataset, Name: "of-one"}, api.DataTakeRequest{Job: "sweep", Subjob: &one}); err != nil {
		t.Fatal(err)
	}
	if v := version(api.DataName{Name: "of-one"}, 1); v.Files != 1 || v.Origin.Path != "sweep-2" {
		t.Errorf("of one subjob: %+v, %+v", v, v.Origin)
	}
}

// outputsAre compares what a job says of its outputs.
func outputsAre(t *testing.T, client *api.Client, job string, want []api.JobOutput) {
	t.Helper()
	detail, _, err := client.Job(t.Context(), job, nil)
	if err != nil || len(detail.Outputs) == 0 || detail.Outputs[0].Node == "" {
		t.Fatalf("outputs of %s: %+v, %v", job, detail, err)
	}
	for i := range want {
		want[i].Attempt, want[i].Node = 1, detail.Outputs[0].Node
	}
	got := slices.Clone(detail.Outputs)
	for i := range got {
		if got[i].Cause != nil {
			got[i].Cause = &structs.Reason{ID: got[i].Cause.ID}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("outputs of %s: %+v, want %+v", job, got, want)
	}
}
