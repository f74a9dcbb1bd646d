package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
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
	startAgent(t, Settings{Dev: &yes, Client: &Client{Storages: []StorageBlock{{Name: "nas", Path: dir + "/nas/{kind}"}}}}, options)
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

// TestStorageConfig: what is wrong with a storage is told with its place.
func TestStorageConfig(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		blocks []StorageBlock
		want   string
	}{
		"name":        {[]StorageBlock{{Name: "A b", Path: "/a"}}, "client.storage[0]"},
		"twice":       {[]StorageBlock{{Name: "a", Path: "/a"}, {Name: "a", Path: "/b"}}, "two storages are called a"},
		"path":        {[]StorageBlock{{Name: "a", Path: "a"}}, "client.storage[0].path"},
		"word":        {[]StorageBlock{{Name: "a", Path: "/a/{who}"}}, "a placeholder that is not known"},
		"kind of two": {[]StorageBlock{{Name: "a", Path: "/a"}, {Name: "b", Path: "/b", Serves: []string{"x"}}}, "client.storage[1].serves"},
		"kind":        {[]StorageBlock{{Name: "a", Path: "/a", Serves: []string{"datasets"}}}, "datasets is not one of algorithm, dataset"},
	} {
		_, err := Load(nil, Settings{Dev: &yes, Client: &Client{Storages: c.blocks}}, messages.English)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
