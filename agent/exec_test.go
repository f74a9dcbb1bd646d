package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// On a node that isolates tasks a job's processes are alone, and what the agent
// keeps for itself is not there.
func TestIsolatedTasks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("isolation of every kind needs root")
	}
	yes, required, private, options := true, "required", "private", testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Enabled: &yes, Exec: &config.ExecBlock{Isolation: &required, View: &private}}}, options)
	client := loggedIn(t, options)
	job := runJob(t, client, hello(`sh -c 'ls /proc | grep -c "^[0-9]"; ls -A `+agent.DataDir()+`/identity | wc -l; touch mine && echo mine; touch /usr/x 2>/dev/null || echo read-only'`), structs.JobSucceeded)
	got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{})
	if len(got) < 2 || got[1] != '\n' || got[2:] != "0\nmine\nread-only\n" {
		t.Errorf("the task sees %q", got)
	}
}

// Processes mount what the administrator lets them, as the job says, and have
// the shared memory that they asked for, in both views.
func TestMountsOfProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("isolation of every kind needs root")
	}
	for _, view := range []string{"shared", "private"} {
		t.Run(view, func(t *testing.T) {
			open := t.TempDir()
			if err := os.Chmod(open, 0o777); err != nil { // tasks are not root
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(open, "data"), []byte("data\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/etc", filepath.Join(open, "away")); err != nil {
				t.Fatal(err)
			}
			yes, required, options := true, "required", testOptions(t)
			startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{
				Enabled: &yes,
				Exec:    &config.ExecBlock{Isolation: &required, View: &view, MountRoots: []string{open}},
			}}, options)
			client := loggedIn(t, options)
			job := runJob(t, client, mounting("mounts", `cat /in/data; touch /in/x 2>/dev/null || echo read-only; echo new >/out/made; df -k /dev/shm | tail -1 | tr -s " " | cut -d" " -f2`,
				[2]string{open, "/in"}, [2]string{open, "/out"}), structs.JobSucceeded)
			if got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); got != "data\nread-only\n8192\n" {
				t.Errorf("the task says %q", got)
			}
			if made, err := os.ReadFile(filepath.Join(open, "made")); err != nil || string(made) != "new\n" {
				t.Errorf("what it wrote: %q, %v", made, err)
			}
			for name, source := range map[string]string{"link": filepath.Join(open, "away"), "foreign": "/usr"} {
				job := runJob(t, client, mounting(name, "ls /out", [2]string{source, "/out"}), structs.JobFailed)
				if job.Reason == nil || !strings.Contains(job.Reason.ID, "mount") {
					t.Errorf("%s: failed because of %+v", name, job.Reason)
				}
			}
		})
	}
}

// A node whose processes see its own files refuses what they cannot have, and
// names the cure.
func TestRawTasksMountNothing(t *testing.T) {
	yes, raw, options := true, "raw", testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Enabled: &yes, Exec: &config.ExecBlock{Isolation: &raw, MountRoots: []string{"/usr"}}}}, options)
	client := loggedIn(t, options)
	for name, want := range map[string]struct {
		mounts [][2]string
		reason string
	}{
		"mounts": {[][2]string{{"/usr", "/out"}}, "client.mount_raw"},
		"memory": {nil, "client.shm_raw"},
	} {
		job := runJob(t, client, mounting(name, "true", want.mounts...), structs.JobFailed)
		if job.Reason == nil || job.Reason.ID != want.reason {
			t.Errorf("%s: failed because of %+v", name, job.Reason)
		}
	}
}

// mounting is a job with 8 MiB of shared memory and mounts: those at /in are
// read-only.
func mounting(name, command string, mounts ...[2]string) string {
	var blocks strings.Builder
	for _, mount := range mounts {
		fmt.Fprintf(&blocks, "mount %q {\n source = %q\n read_only = %v\n}\n", mount[1], mount[0], mount[1] == "/in")
	}
	return fmt.Sprintf(`
job %q {
  resources {
    cpu           = 0.1
    memory        = "32MiB"
    shared_memory = "8MiB"
  }
  task {
    driver  = "exec"
    command = %q
  }
  %s
}
`, name, "sh -c '"+command+"'", blocks.String())
}
