package agent

import (
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The thin real path: file, HTTP, Raft, process, logs and back.
func TestDevelopmentAgentRunsAJob(t *testing.T) {
	begin := time.Now()
	_, client := devAgent(t)
	t.Logf("ready after %s", time.Since(begin))
	begin = time.Now()
	job := runJob(t, client, hello(`echo hello from $NOMADLIKE_JOB_NAME`), structs.JobSucceeded)
	t.Logf("job done after %s", time.Since(begin))
	alloc := allocOf(t, client, job.Job.ID)
	if got := logsOf(t, client, alloc.ID, api.LogOptions{}); got != "hello from hello\n" {
		t.Errorf("log %q", got)
	}
	events, _, err := client.JobEvents(t.Context(), job.Job.ID, nil)
	if err != nil || len(events.Events) < 3 {
		t.Errorf("history %+v %v", events, err)
	}
}
