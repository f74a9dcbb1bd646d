package agent

import (
	"errors"
	"io"
	"strings"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

// recordsOf are the audit records of an agent with an action, newest first.
func recordsOf(t testing.TB, agent *Agent, action string) []audit.Record {
	t.Helper()
	page, err := agent.journal.Query(t.Context(), audit.Filter{Action: action}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	return page.Records
}

// A terminal has a record of its opening and one of its end, with what went
// through it; who made a job and a token, and which, is recorded under the id
// that the answer had.
func TestAuditOfAnAgent(t *testing.T) {
	agent, client := devAgent(t)
	made, err := client.CreateToken(t.Context(), api.TokenRequest{Name: "ann's", Role: "user", Project: "default", User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	ann := client.WithToken(made.Secret)
	job := runJob(t, ann, hello("sleep 600"), structs.JobRunning)
	alloc := allocOf(t, ann, job.Job.ID)
	conn, err := ann.Exec(t.Context(), alloc.ID, structs.ExecStart{Command: []string{"sh", "-c", "read line; echo $line$line"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SendStdin(t.Context(), []byte("four\n")); err != nil {
		t.Fatal(err)
	}
	for {
		down, err := conn.Recv(t.Context())
		if errors.Is(err, io.EOF) || down != nil && down.Exit != nil {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the end of the terminal", func() bool { return len(recordsOf(t, agent, audit.ActionExecEnd)) == 1 })
	open, end := recordsOf(t, agent, "allocations.exec")[0], recordsOf(t, agent, audit.ActionExecEnd)[0]
	if open.Request == "" || open.Request != end.Request || open.Actor != end.Actor || open.Actor.User != "ann" || open.Object.ID != job.Job.ID || open.Object.Part != alloc.ID {
		t.Errorf("%+v\n%+v", open, end)
	}
	if end.Sent != 9 || end.Received != 5 || end.Took <= 0 {
		t.Errorf("%+v", end)
	}
	if submitted := recordsOf(t, agent, "jobs.submit"); len(submitted) != 1 || submitted[0].Object.ID != job.Job.ID || submitted[0].Object.Owner != "ann" || submitted[0].Index == 0 {
		t.Errorf("%+v", submitted)
	}
	if tokens := recordsOf(t, agent, "tokens.create"); len(tokens) != 1 || tokens[0].Object.ID != made.Token.ID || tokens[0].Actor.Role != "admin" {
		t.Errorf("%+v", tokens)
	}
	if uses := recordsOf(t, agent, audit.ActionTokenUse); len(uses) != 2 || uses[0].Object.ID != made.Token.ID {
		t.Errorf("%+v", uses)
	}
	states, err := agent.journal.Check(t.Context())
	if err != nil || len(states) != 1 || states[0].Broken != nil || !strings.HasPrefix(states[0].Server, agent.ID()) {
		t.Errorf("%+v, %v", states, err)
	}
}
