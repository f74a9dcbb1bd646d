package agent

import (
	"os"
	"testing"

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
	agent := startAgent(t, Settings{Dev: &yes, Client: &Client{Enabled: &yes, Exec: &ExecBlock{Isolation: &required, View: &private}}}, options)
	client := loggedIn(t, options)
	job := runJob(t, client, hello(`sh -c 'ls /proc | grep -c "^[0-9]"; ls -A `+agent.DataDir()+`/identity | wc -l; touch mine && echo mine; touch /usr/x 2>/dev/null || echo read-only'`), structs.JobSucceeded)
	got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{})
	if len(got) < 2 || got[1] != '\n' || got[2:] != "0\nmine\nread-only\n" {
		t.Errorf("the task sees %q", got)
	}
}
