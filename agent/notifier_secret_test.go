package agent

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
)

// A task that fails with its secret in its last words has them told without it: at the
// webhook, at the bell, in the state and in every event.
func TestToldFailuresHoldNoSecret(t *testing.T) {
	h := newHook(t)
	options := notifying(t, h)
	yes, dir := true, openDir(t)
	agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &dir, Server: &config.ServerBlock{Notify: &config.NotifyBlock{Allow: []string{h.host()}}}}, options)
	admin := savedClient(t, options)
	letRoot(t, admin)
	li, _ := teach(t, admin, h)
	if _, err := li.SetSecret(t.Context(), "token", false, []byte(secretValue)); err != nil {
		t.Fatal(err)
	}
	loud := strings.Replace(strings.Replace(failingJob, "NAME", "loud", 1), `command = "sh -c 'exit 3'"`,
		`command = "sh -c 'echo RuntimeError: 401 for $TOKEN >&2; exit 3'"
    env     = { TOKEN = secret("token") }`, 1)
	job := runJob(t, li, loud, structs.JobFailed)
	eventually.Within(t, 30*time.Second, "the webhook is told", func() bool { return len(h.all()) == 1 })
	list, err := li.Notifications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var stored bytes.Buffer
	if err := agent.store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	failed, _, err := li.Job(t.Context(), job.Job.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string][]byte{"the webhook": h.all()[0].body, "the bell": mustJSON(t, list), "the state": stored.Bytes(), "the job": mustJSON(t, failed)} {
		if bytes.Contains(text, []byte("hunter2")) || !bytes.Contains(text, []byte("loud")) {
			t.Errorf("%s holds the value, or nothing of the job: %.400s", where, text)
		}
	}
	scanFiles(t, agent.DataDir(), []byte(secretValue))
}
