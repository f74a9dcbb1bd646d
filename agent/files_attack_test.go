package agent

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// stolen reads a file of a job by the API, and says what it got.
func stolen(t *testing.T, client *api.Client, job, path string) string {
	t.Helper()
	from, err := client.OpenFile(t.Context(), job, path, api.FileFilter{}, 0)
	if err != nil {
		return ""
	}
	defer from.Close()
	data, _ := io.ReadAll(from) // broken off is as good as whole
	return string(data)
}

// TestFilesOfTheNodeStayThere: a task that can write everywhere below the
// agent's data directory, as a raw task with the agent's own user can, replaces
// its logs and what the agent is controlled by. No road of the API leads out.
func TestFilesOfTheNodeStayThere(t *testing.T) {
	dir := t.TempDir()
	secret := "the key of the cluster"
	if err := os.MkdirAll(filepath.Join(dir, "nas", "output"), 0o755); err != nil {
		t.Fatal(err)
	}
	yes, raw := true, "raw"
	options := testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Exec: &config.ExecBlock{Isolation: &raw}, Storages: []config.StorageBlock{{Name: "nas", Path: dir + "/nas/{kind}"}}}}, options)
	identity := filepath.Join(agent.config.DataDir, identityDir)
	if err := os.WriteFile(filepath.Join(identity, "stdout.0"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	client := savedClient(t, options)
	letRoot(t, client)
	started, err := client.SubmitJob(t.Context(), jobOf(strings.Replace(hello(`sh -c "echo hello; exec sleep 600"`), "task {", "output \"run\" {}\n  task {", 1)), "")
	if err != nil {
		t.Fatal(err)
	}
	id := started.JobID
	awaitJob(t, client, id, structs.JobRunning)
	alloc := allocOf(t, client, id)
	eventually.Within(t, time.Minute, "logs", func() bool { return stolen(t, client, id, "logs/stdout.0") == "hello\n" })

	// What the task does, by the test's own hands: both have the same rights.
	root := filepath.Join(agent.config.DataDir, clientDir)
	records, old := filepath.Join(root, "records", alloc.ID), filepath.Join(root, "alloc", alloc.ID)
	if names, err := os.ReadDir(old); err != nil || len(names) != 1 || names[0].Name() != "task" {
		t.Errorf("beside the task's directory lies what is the agent's: %v, %v", names, err)
	}
	for _, place := range []string{records, old} {
		_ = os.Rename(filepath.Join(place, "logs"), filepath.Join(place, "logs.real"))
		for name, target := range map[string]string{"logs": identity, "hooks": identity, "outputs": "/"} {
			_ = os.Remove(filepath.Join(place, name))
			if err := os.Symlink(target, filepath.Join(place, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(place, "output.json"), []byte(`{"root":"/","path":"/"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"logs/stdout.0", "logs/gossip.key", "logs/credentials.json", "outputs/etc/passwd", "outputs" + identity + "/stdout.0", "hooks/stdout.0", "logs.real/stdout.0",
	} {
		if text := stolen(t, client, id, path); text != "" {
			t.Errorf("%s is given out: %.40q", path, text)
		}
	}
	for _, path := range []string{"logs", "outputs"} {
		if list, err := client.Files(t.Context(), id, path, api.FileFilter{}); err == nil {
			t.Errorf("%s is listed: %+v", path, list.Entries)
		}
	}
	for _, stream := range []string{structs.StreamHooks, "stdout"} {
		if reader, err := client.Logs(t.Context(), alloc.ID, api.LogOptions{Stream: stream}); err == nil {
			if text, _ := io.ReadAll(reader); strings.Contains(string(text), secret) {
				t.Errorf("the log %s has the key: %q", stream, text)
			}
			reader.Close()
		}
	}

	// The same by exchanging the directory for the link all the time.
	stop, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, records+"/logs", unix.AT_FDCWD, records+"/logs.real", unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 200 {
		if text := stolen(t, client, id, "logs/stdout.0"); strings.Contains(text, secret) {
			t.Errorf("the key is given out in between: %q", text)
			break
		}
	}
	close(stop)
	<-swapped
	if _, err := client.StopJob(t.Context(), id, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
}
