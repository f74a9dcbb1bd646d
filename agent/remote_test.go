package agent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/structs"
)

// TestRemoteData runs the example that reads from a web server and from an
// object store, twice: the second job copies nothing.
func TestRemoteData(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"www/dataset/words/list": "a\nb\n", "www/dataset/words/more/list": "c\n",
		"www/dataset/words/SHA256SUMS": "-  list\n-  ./more/list\n", "nas/.keep": "",
		"keys": "[default]\naws_access_key_id = who\naws_secret_access_key = hidden-key\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var whole atomic.Int64 // requests for contents
	faults := remote.Faults{Every: func(r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Range") != "bytes=0-0" && !strings.HasSuffix(r.URL.Path, "SHA256SUMS") {
			whole.Add(1)
		}
	}}
	web := httptest.NewServer(faults.Around(http.FileServer(http.Dir(filepath.Join(dir, "www")))))
	defer web.Close()
	bucket := &remote.FakeStore{Bucket: "datasets", AccessKey: "who", SecretKey: "hidden-key", Page: 10}
	bucket.Put("default/digits/train.csv", []byte("1,2,3\n4,5,6\n"))
	store := httptest.NewServer(faults.Around(bucket))
	defer store.Close()

	yes, free := true, 0.001 // whatever else fills this machine's disk
	keys, prefix := filepath.Join(dir, "keys"), "{project}"
	options := testOptions(t)
	home := filepath.Join(dir, "home")
	startAgent(t, config.Settings{Dev: &yes, DataDir: &home, Client: &config.ClientBlock{Data: &config.DataBlock{FreeMin: &free}, Storages: []config.StorageBlock{
		{Name: "nas", Path: dir + "/nas", Serves: []string{structs.StorageOutput}},
		{Name: "mirror", HTTP: &config.StorageHTTPBlock{URL: web.URL + "/{kind}"}},
		{Name: "minio", S3: &config.StorageS3Block{URL: store.URL, Bucket: "datasets", Prefix: &prefix, CredentialsFile: &keys}},
	}}}, options)
	client := savedClient(t, options)
	example, err := os.ReadFile("../website/examples/remote-data.hcl")
	if err != nil {
		t.Fatal(err)
	}
	runJob(t, client, string(example), structs.JobSucceeded)
	for file, want := range map[string]string{"words/list": "a\nb\n", "words/more/list": "c\n", "digits/train.csv": "1,2,3\n4,5,6\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, "nas/copies", file)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	if n := whole.Swap(0); n != 3 {
		t.Errorf("%d requests for contents", n)
	}
	again := strings.NewReplacer(`job "remote-data"`, `job "again"`, `output "copies"`, `output "again"`).Replace(string(example))
	runJob(t, client, again, structs.JobSucceeded)
	if n := whole.Load(); n != 0 {
		t.Errorf("the second job asked %d times for contents", n)
	}

	missing := strings.NewReplacer(`job "remote-data"`, `job "missing"`, "train.csv", "test.csv").Replace(string(example))
	detail := runJob(t, client, missing, structs.JobFailed)
	if text := fmt.Sprintf("%+v", detail); strings.Contains(text, "hidden-key") {
		t.Error("the job's record holds the secret")
	}

	// Whatever went to the servers' log, the credentials did not.
	err = filepath.WalkDir(home, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !entry.Type().IsRegular() {
			return nil // of a task that is going
		}
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), "hidden-key") {
			t.Errorf("the secret is in %s", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
