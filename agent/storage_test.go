package agent

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// TestDataOfAJob runs the example of the website from its file to its output,
// and a job that asks for a storage that no node has.
func TestDataOfAJob(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"nas/algorithm/count/count.sh": "wc -l <$1/list >$2/lines\n", "nas/dataset/words/list": "a\nb\nc\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	yes := true
	options := testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{{Name: "nas", Path: dir + "/nas/{kind}"}}}}, options)
	client := savedClient(t, options)
	example, err := os.ReadFile("../website/examples/data.hcl")
	if err != nil {
		t.Fatal(err)
	}
	runJob(t, client, string(example), structs.JobSucceeded)
	if text, err := os.ReadFile(filepath.Join(dir, "nas/output/counts/first/lines")); err != nil || strings.TrimSpace(string(text)) != "3" {
		t.Errorf("output %q, %v", text, err)
	}
	far := strings.Replace(strings.Replace(string(example), "\"data\"", "\"far\"", 1), `output "counts/first" {}`, `output "a" { storage = "far" }`, 1)
	id := runJob(t, client, far, structs.JobQueued).Job.ID
	text := ""
	eventually.Within(t, time.Minute, "hear why it waits", func() bool {
		detail, _, err := client.Job(t.Context(), id, nil)
		if err != nil || len(detail.Subjobs) == 0 || detail.Subjobs[0].Wait == nil {
			return false
		}
		wait := detail.Subjobs[0].Wait
		text = messages.Text(messages.English, wait.ID, wait.Params)
		return true
	})
	if text != "no node has a storage far that serves output" {
		t.Errorf("the job waits: %q", text)
	}
}

// What no node has is told before a job is queued, by its plan too; the file names it.
// A job that is queued meanwhile says the same cause everywhere, and no exit code.
func TestMissingDataIsToldBefore(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "nas/dataset/there"), 0o755); err != nil {
		t.Fatal(err)
	}
	yes := true
	options := testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{{Name: "nas", Path: dir + "/nas/{kind}"}, {Name: "mine", Path: dir + "/home/{user}/{kind}"}}}}, options)
	client := savedClient(t, options)
	// What lies by user is looked for where the user's data is.
	self, err := client.SelfToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "home", cmp.Or(self.User, self.ID), "dataset/own"), 0o755); err != nil {
		t.Fatal(err)
	}
	own := api.JobRequest{HCL: "job \"own\" {\n  dataset \"own\" {\n    storage = \"mine\"\n    read_only = true\n  }\n  task { command = \"true\" }\n}\n"}
	if _, err := client.SubmitJob(t.Context(), own, ""); err != nil {
		t.Errorf("data of the user's own: %v", err)
	}
	own.HCL = strings.ReplaceAll(own.HCL, "\"own\"", "\"lost\"")
	var lost *structs.Error
	if _, err := client.SubmitJob(t.Context(), own, ""); !errors.As(err, &lost) || len(lost.Details) != 1 || lost.Details[0].Params["name"] != "lost" {
		t.Errorf("data of the user's own that is not there: %v", err)
	}
	file := func(dataset string) *api.JobRequest {
		return &api.JobRequest{HCL: `job "reads" {
  checkpoint { max_resumes = 2 }
  dataset "there" { read_only = true }
  dataset "` + dataset + `" { read_only = true }
  task { command = "true" }
}`}
	}
	plan, err := client.PlanJob(t.Context(), *file("gone"))
	if err != nil || plan.StartsNow || plan.Starts != 0 || plan.Wait == nil || plan.Wait.ID != "client.data_missing" || plan.Wait.Params["name"] != "gone" || len(plan.Lacks) != 1 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	_, err = client.SubmitJob(t.Context(), *file("gone"), "")
	var refused *structs.Error
	if !errors.As(err, &refused) || refused.Code != structs.CodeInvalid || len(refused.Details) != 1 || refused.Details[0].ID != "agent.data_missing" || refused.Details[0].Params["path"] != "dataset[1]" {
		t.Fatalf("submitted: %v", err)
	}
	at := filepath.Join(dir, "nas/dataset/comes")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if plan, err = client.PlanJob(t.Context(), *file("comes")); err != nil || !plan.StartsNow {
		t.Errorf("plan %+v, %v", plan, err)
	}
	// A storage that is away cannot be asked: the job is let in.
	if err := os.Rename(filepath.Join(dir, "nas"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.SubmitJob(t.Context(), *file("comes"), ""); err != nil {
		t.Errorf("with a storage that is away: %v", err)
	}
}

// An output in which something lies is said of before the job is submitted, and when it
// is; an empty one, or one of the job's own, is not.
func TestOutputThatHoldsSomethingIsTold(t *testing.T) {
	dir := t.TempDir()
	yes := true
	options := testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{{Name: "nas", Path: dir + "/nas/{kind}"}}}}, options)
	client := savedClient(t, options)
	file := func(output string) api.JobRequest {
		return api.JobRequest{HCL: "job \"writes\" {\n  output \"" + output + "\" {}\n  task { command = \"true\" }\n}\n"}
	}
	told := func(warnings []structs.Error) (ids []string) {
		for i := range warnings {
			ids = append(ids, warnings[i].ID)
		}
		return ids
	}
	for _, name := range []string{"run7", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, "nas/output", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "nas/output/run7/model.pt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]string{"run7": "agent.output_kept", "empty": "", "none-yet": "", "run7/${job.id}": ""} {
		plan, err := client.PlanJob(t.Context(), file(output))
		if err != nil || !plan.StartsNow || strings.Join(told(plan.Warnings), " ") != want {
			t.Errorf("plan with %s: %v %v, %v", output, told(plan.Warnings), plan.StartsNow, err)
		}
	}
	sent, err := client.SubmitJob(t.Context(), file("run7"), "")
	if err != nil || strings.Join(told(sent.Warnings), " ") != "agent.output_kept" || sent.Warnings[0].Params["place"] != filepath.Join(dir, "nas/output/run7") {
		t.Errorf("submitted: %+v, %v", sent, err)
	}
}
