package agent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
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

// Every server tells of all: it has copies of the others' records within a second,
// says whose records are those of a copy, and of changed ones where.
func TestAuditOfACluster(t *testing.T) {
	c := startCluster(t, 3, 0)
	clients := make([]*api.Client, 3)
	for i, server := range c.servers {
		clients[i] = c.at(t, server, c.token)
	}
	last := c.servers[2]
	made, err := clients[2].CreateToken(t.Context(), api.TokenRequest{Name: "a name", Role: "viewer", Project: "default", User: "vic"})
	if err != nil {
		t.Fatal(err)
	}
	written := time.Now()
	copied := func(agent *Agent) bool {
		page, err := agent.journal.Query(t.Context(), audit.Filter{Action: "tokens.create", Object: "token/" + made.Token.ID}, "", 1)
		return err == nil && len(page.Records) == 1 && page.Records[0].Server == last.ID()
	}
	waitFor(t, "copies of a record", func() bool { return copied(c.servers[0]) && copied(c.servers[1]) })
	t.Logf("a record is on all disks %s after its answer", time.Since(written))
	if _, err := c.at(t, c.servers[1], made.Secret).CreateToken(t.Context(), api.TokenRequest{Role: "admin"}); err == nil {
		t.Fatal("a viewer made a token")
	}
	list, err := clients[0].Audit(t.Context(), api.AuditQuery{Refused: true, User: "vic", Since: "1h"})
	if err != nil || len(list.Records) != 1 || list.Records[0].Server != c.servers[1].ID() || list.Records[0].Reason != "auth.forbidden.role" || len(list.Servers) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, server := range list.Servers {
		if !server.Answered || server.Last == 0 || server.Name == "" {
			t.Errorf("%+v", server)
		}
	}
	if _, err := c.at(t, c.servers[0], made.Secret).Audit(t.Context(), api.AuditQuery{}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a viewer reads the record: %v", err)
	}
	var check *api.AuditCheck
	waitFor(t, "copies of all records", func() bool {
		check, err = clients[1].VerifyAudit(t.Context())
		if err != nil || !check.Whole {
			t.Fatalf("%+v, %v", check, err)
		}
		return len(check.Chains) == 9
	})

	files, err := filepath.Glob(filepath.Join(last.DataDir(), auditDir, last.ID(), "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], bytes.Replace(data, []byte(made.Token.ID), []byte(strings.Repeat("0", len(made.Token.ID))), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	check, err = clients[0].VerifyAudit(t.Context())
	broken := 0
	for _, chain := range check.Chains {
		if chain.Broken != "" {
			broken++
			if chain.Server != last.ID() || chain.Holder != last.ID() || chain.Broken != "copy" || chain.Seq != chain.Last { // nothing came after it yet: only the copies can tell
				t.Errorf("%+v", chain)
			}
		}
	}
	if err != nil || check.Whole || broken != 1 {
		t.Errorf("%d broken chains, %+v, %v", broken, check, err)
	}

	checkHistoryIsFetched(t, c.servers)

	stopAgent(t, last)
	list, err = clients[0].Audit(t.Context(), api.AuditQuery{Object: "token/" + made.Token.ID, Action: "tokens"})
	if err != nil || len(list.Records) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, server := range list.Servers {
		if server.Answered != (server.ID != last.ID()) || server.Last == 0 {
			t.Errorf("%+v", server)
		}
	}
	if check, err := clients[0].VerifyAudit(t.Context()); err != nil || check.Whole || len(check.Away) != 1 || check.Away[0] != last.ID() {
		t.Errorf("%+v, %v", check, err)
	}
}

// checkHistoryIsFetched has one server have rows that another one, which comes back by a
// snapshot, never had: it fetches them, in several parts.
func checkHistoryIsFetched(t *testing.T, servers []*Agent) {
	const far, count = 1 << 40, 5000
	var rows []structs.HistoryRow
	for i := range uint64(count) {
		rows = append(rows, structs.HistoryRow{Index: far + i, Kind: structs.HistoryAttempt, JobID: "job", User: "ann", Start: 1, End: 2})
	}
	servers[0].history.Add(far+count, rows)
	servers[1].history.Restored(far + count)
	waitFor(t, "rows of another server", func() bool {
		have, _ := servers[1].history.View().Rows()
		return have >= count && len(servers[1].history.Gaps()) == 0
	})
}

// What a server records is in the file that it was told of, too, line by line.
func TestAuditIsForwarded(t *testing.T) {
	yes, path, options := true, filepath.Join(t.TempDir(), "audit.jsonl"), testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes, Server: &config.ServerBlock{Audit: &config.AuditBlock{File: &path}}}, options)
	made, err := savedClient(t, options).CreateToken(t.Context(), api.TokenRequest{Role: "operator", User: "olga"})
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	waitFor(t, "the record in the file", func() bool {
		data, _ = os.ReadFile(path)
		return bytes.Contains(data, []byte(made.Token.ID))
	})
	chain := audit.Chain{Server: agent.ID()}
	for line := range bytes.Lines(data) {
		if _, err := chain.Next(line); err != nil {
			t.Error(err)
		}
	}
	if chain.First != 1 || chain.Lines < 3 {
		t.Errorf("%+v", chain)
	}
}
