package agent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

const secretValue = "hunter2/is+24=characters"

// secretJob has a secret as a variable and as a file, beside its command and in a
// hook, and keeps a record for a debug hold.
const secretJob = `
job "hello" {
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "sh -c 'test \"$TOKEN\" = \"$(cat $NOMADLIKE_SECRETS_DIR/token)\" && test $${#TOKEN} = 24 && stat -c %a $NOMADLIKE_SECRETS_DIR/token && stat -f -c %T $NOMADLIKE_SECRETS_DIR && echo same && echo $TOKEN && echo -n user:$TOKEN | base64 >&2'"
    env     = { TOKEN = secret("token"), PLAIN = "a-plain-value-for-comparison" }
    secrets = ["token"]
    hook "prestart" {
      command = "sh -c 'test $${#TOKEN} = 24 && echo $TOKEN'"
    }
  }
  debug { hold = "1m" }
}
`

// A task has its secrets as variables and as files of mode 0400 in memory, and nothing
// else has them: no file of the agent, no answer of the API, no line that it logs.
func TestSecretsReachTheirTaskAlone(t *testing.T) {
	yes, dir := true, openDir(t)
	options := testOptions(t)
	var log lockedBuffer
	options.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &dir}, options)
	client := savedClient(t, options)
	letRoot(t, client)
	if _, err := client.SubmitJob(t.Context(), jobOf(secretJob), ""); err == nil || !strings.Contains(string(mustJSON(t, err)), "server.secret_unknown") {
		t.Errorf("a job that names no secret: %v", err)
	}
	set, err := client.SetSecret(t.Context(), "token", false, []byte(secretValue))
	if err != nil || set.Version != 1 {
		t.Fatalf("set: %+v, %v", set, err)
	}
	job := runJob(t, client, secretJob, structs.JobSucceeded)
	allocs, _, err := client.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := allocs.Allocations[0].ID
	if got := logsOf(t, client, id, api.LogOptions{}); got != "400\ntmpfs\nsame\n[masked: token]\n" {
		t.Errorf("the task printed %q", got)
	}
	if got := logsOf(t, client, id, api.LogOptions{Stream: "stderr"}); !strings.Contains(got, "[masked: token]") {
		t.Errorf("the task printed in base64 %q", got)
	}
	record, err := client.Audit(t.Context(), api.AuditQuery{Action: audit.ActionSecretUse})
	if err != nil || len(record.Records) == 0 {
		t.Fatalf("audit: %+v, %v", record, err)
	}
	if use := record.Records[0]; use.Object.ID != "token" || use.Object.Part != id || use.Actor.Kind != "node" || use.Outcome != audit.Allowed {
		t.Errorf("recorded %+v", use)
	}
	var spool bytes.Buffer
	if _, err := client.SaveSnapshot(t.Context(), &spool); err != nil {
		t.Fatal(err)
	}
	list, err := client.Secrets(t.Context())
	if err != nil || len(list.Secrets) != 1 || list.Secrets[0].Version != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	plan, err := client.PlanJob(t.Context(), jobOf(secretJob))
	if err != nil {
		t.Fatal(err)
	}
	events, _, err := client.JobEvents(t.Context(), job.Job.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{secretValue, base64.StdEncoding.EncodeToString([]byte(secretValue)), url.QueryEscape(secretValue)} {
		scanFiles(t, agent.DataDir(), []byte(form))
		for name, text := range map[string][]byte{
			"the log": []byte(log.String()), "the snapshot": spool.Bytes(), "the job": mustJSON(t, job), "the list": mustJSON(t, list),
			"the plan": mustJSON(t, plan), "the events": mustJSON(t, events), "the audit record": mustJSON(t, record),
		} {
			if len(text) == 0 || bytes.Contains(text, []byte(form)) {
				t.Errorf("%s holds the value, or nothing", name)
			}
		}
	}
	if found := filesWith(t, agent.DataDir(), []byte("a-plain-value-for-comparison")); len(found) == 0 {
		t.Error("what is no secret is in no file either: the look finds nothing")
	}
}

// scanFiles fails for a file of a directory that holds a text.
func scanFiles(t *testing.T, dir string, text []byte) {
	t.Helper()
	for _, path := range filesWith(t, dir, text) {
		t.Errorf("%s holds the value", path)
	}
}

// filesWith lists the files of a directory that hold a text.
func filesWith(t *testing.T, dir string, text []byte) (found []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // it went away meanwhile
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // so did this one
		}
		files++
		if bytes.Contains(data, text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil || files < 10 {
		t.Errorf("looked at %d files: %v", files, err)
	}
	return found
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
