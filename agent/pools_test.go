package agent

import (
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// clientAs makes a token of a role and returns a client that uses it.
func clientAs(t *testing.T, admin *api.Client, role, project, user string) *api.Client {
	t.Helper()
	made, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: role, Project: project, User: user})
	if err != nil {
		t.Fatal(err)
	}
	return admin.WithToken(made.Secret)
}

// The limit of a running job is changed without touching it; when it has
// passed, the job is expired.
func TestTimeLimitOfARunningJob(t *testing.T) {
	_, client := devAgent(t)
	job := runJob(t, client, hello("sleep 600"), structs.JobRunning)
	before, _, err := client.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.SetTimeLimit(t.Context(), "hello", structs.Duration(time.Hour)); err != nil {
		t.Fatal(err)
	}
	again, _, err := client.Job(t.Context(), "hello", nil)
	if err != nil || again.Job.TimeLimit.Std() != time.Hour || again.Attempt != 1 || again.State != structs.JobRunning {
		t.Errorf("with a limit: %+v %v", again, err)
	}
	after, _, err := client.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
	if err != nil || after.Allocations[0].StartedAt != before.Allocations[0].StartedAt {
		t.Errorf("the task was touched: %+v %v", after, err)
	}
	if _, err := client.SetTimeLimit(t.Context(), "hello", -1); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a negative limit: %v", err)
	}
	if _, err := client.SetTimeLimit(t.Context(), "hello", structs.Duration(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, job.Job.ID, structs.JobExpired)
}
