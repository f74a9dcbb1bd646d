package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/structs"
)

// hook is a webhook that keeps what it is sent.
type hook struct {
	sync.Mutex
	server *httptest.Server
	answer int
	got    []hooked
}

type hooked struct {
	id, signature, timestamp string
	body                     []byte
	at                       time.Time
}

func newHook(t *testing.T) *hook {
	h := &hook{answer: http.StatusOK}
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h.Lock()
		defer h.Unlock()
		h.got = append(h.got, hooked{r.Header.Get("webhook-id"), r.Header.Get("webhook-signature"), r.Header.Get("webhook-timestamp"), body, time.Now()})
		w.WriteHeader(h.answer)
	}))
	t.Cleanup(h.server.Close)
	return h
}

func (h *hook) say(answer int) {
	h.Lock()
	defer h.Unlock()
	h.answer = answer
}

func (h *hook) all() []hooked {
	h.Lock()
	defer h.Unlock()
	return append([]hooked(nil), h.got...)
}

func (h *hook) host() string { return strings.TrimPrefix(h.server.URL, "http://") }

// notifying is options and settings of servers that may send to a hook.
func notifying(t *testing.T, h *hook) Options {
	options := testOptions(t)
	options.reaches = func(to netip.AddrPort) bool { return to.String() == h.host() }
	return options
}

const failingJob = `
job "NAME" {
  project = "speech"
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "sh -c 'printf \"\\033[31mValueError: %s\\033[0m\\n\" $KEY >&2; exit 3'"
    env     = { KEY = secret("key") }
  }
}
`

// printedSecret is what the job prints to its log.
const printedSecret = "a-very-secret-key"

// teach makes an account in a project, with a hook for failures.
func teach(t *testing.T, admin *api.Client, h *hook) (client *api.Client, secret string) {
	t.Helper()
	ctx := t.Context()
	if _, err := admin.PutUser(ctx, &structs.User{Name: "li", Language: "zh"}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.PutProject(ctx, &structs.Project{Name: "speech", Members: []string{"li"}}); err != nil {
		t.Fatal(err)
	}
	token, err := admin.CreateToken(ctx, api.TokenRequest{Role: structs.RoleAccount, User: "li"})
	if err != nil {
		t.Fatal(err)
	}
	li := admin.WithToken(token.Secret).In("speech")
	for _, one := range []*api.Client{li, admin.In("vision")} {
		if _, err := one.SetSecret(ctx, "key", one == li, []byte(printedSecret)); err != nil {
			t.Fatal(err)
		}
	}
	made, err := li.SetNotifyChannel(ctx, "team", api.NotifyChannelRequest{Kind: structs.ChannelWebhook, URL: h.server.URL + "/very-secret-path"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := li.SetNotify(ctx, api.NotifyRequest{On: []structs.NotifyRule{{Kind: structs.NotifyFailed, Channels: []string{structs.ChannelBell, "team"}}}}); err != nil {
		t.Fatal(err)
	}
	return li, made.Secret
}

// A failure reaches a webhook within 2 s, signed, in the person's language, once; and the
// bell. Nothing of where it went is in a file, an answer or a line of the log.
func TestAFailureIsToldOnce(t *testing.T) {
	h := newHook(t)
	options := notifying(t, h)
	var log lockedBuffer
	options.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	yes, dir := true, openDir(t)
	agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &dir, Server: &config.ServerBlock{Notify: &config.NotifyBlock{Allow: []string{h.host()}}}}, options)
	admin := savedClient(t, options)
	letRoot(t, admin)
	li, secret := teach(t, admin, h)
	tested, err := li.TestNotifyChannel(t.Context(), "team")
	if err != nil || !tested.Sent || len(h.all()) != 1 {
		t.Fatalf("tested: %+v, %v", tested, err)
	}
	job := runJob(t, li, strings.Replace(failingJob, "NAME", "bert", 1), structs.JobFailed)
	runJob(t, admin, strings.Replace(strings.Replace(failingJob, "NAME", "other", 1), "speech", "vision", 1), structs.JobFailed)
	eventually.Within(t, 20*time.Second, "the webhook is told", func() bool { return len(h.all()) == 2 })
	got := h.all()[1]
	if late := got.at.Sub(job.FinishedAt.Time()); late > 2*time.Second {
		t.Errorf("told after %s", late)
	} else {
		t.Logf("told after %s", late)
	}
	var body struct {
		Type string
		Data struct {
			Title string
			JobID string `json:"job_id"`
			Lines []string
		}
	}
	if err := json.Unmarshal(got.body, &body); err != nil || body.Type != "nomadlike.failed" || body.Data.JobID != job.Job.ID || body.Data.Title != "任务 bert 失败" || !slices.Equal(body.Data.Lines, []string{"ValueError: [masked: key]"}) {
		t.Errorf("%s: %v", got.body, err)
	}
	message := agent.store.Snapshot().Notifications("li")[0]
	request, err := notify.RequestFor(structs.ChannelWebhook, notify.Target{Secret: secret}, message, notify.Text{}, structs.At(got.at))
	if err != nil || got.id != message.ID || request.Header["webhook-id"] != got.id || !strings.HasPrefix(got.signature, "v1,") {
		t.Errorf("%+v: %v", got, err)
	}
	eventually.Within(t, 10*time.Second, "the delivery is noted", func() bool {
		list, err := li.Notifications(t.Context())
		return err == nil && len(list.Notifications) == 1 && list.Unseen == 1 && list.Notifications[0].Deliveries[0].SentAt != 0
	})
	if all := h.all(); len(all) != 2 {
		t.Errorf("told %d times", len(all)-1)
	}
	status, err := li.NotifyStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var stored bytes.Buffer
	if err := agent.store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"very-secret-path", secret, printedSecret} {
		scanFiles(t, agent.DataDir(), []byte(form))
		for where, text := range map[string][]byte{"the log": []byte(log.String()), "the state": stored.Bytes(), "the status": mustJSON(t, status)} {
			if len(text) == 0 || bytes.Contains(text, []byte(form)) {
				t.Errorf("%s holds %s, or nothing", where, form)
			}
		}
	}
}

// A message whose webhook is out of order when its leader fails is delivered by the next
// one, under the same id; what was delivered before is not delivered again.
func TestToldAcrossAChangeOfLeader(t *testing.T) {
	h := newHook(t)
	c := &cluster{}
	settings := func(name string, join *string) config.Settings {
		s := serverSettings(t.TempDir(), name, 3, join)
		yes := true
		s.Server.Notify, s.Client = &config.NotifyBlock{Allow: []string{h.host()}}, &config.ClientBlock{Enabled: &yes}
		return s
	}
	founder := startAgent(t, settings("server-0", nil), notifying(t, h))
	c.servers = append(c.servers, founder)
	join := readJoin(t, founder, joinServer)
	for _, name := range []string{"server-1", "server-2"} {
		c.servers = append(c.servers, startAgent(t, settings(name, &join), notifying(t, h)))
	}
	anonymous := clientFor(t, "https://"+founder.Addr(), string(founder.CA()), "")
	var token *api.NewToken
	eventually.Within(t, time.Minute, "make the first token", func() bool {
		var err error
		token, err = anonymous.BootstrapToken(t.Context(), readJoin(t, founder, setupFile))
		return err == nil
	})
	admin := anonymous.WithToken(token.Secret)
	letRoot(t, admin)
	li, _ := teach(t, admin, h)
	runJob(t, li, strings.Replace(failingJob, "NAME", "first", 1), structs.JobFailed)
	eventually.Within(t, 20*time.Second, "the first is delivered", func() bool {
		list := founder.store.Snapshot().Notifications("li")
		return len(list) == 1 && list[0].Deliveries[0].SentAt != 0
	})
	h.say(http.StatusServiceUnavailable)
	runJob(t, li, strings.Replace(failingJob, "NAME", "second", 1), structs.JobFailed)
	eventually.Within(t, 20*time.Second, "the second is tried", func() bool { return len(h.all()) >= 2 })
	leader := leaderOf(t, c.servers)
	left := slices.DeleteFunc(slices.Clone(c.servers), func(agent *Agent) bool { return agent == leader })
	if err := leader.Stop(t.Context()); err != nil {
		t.Log(err)
	}
	h.say(http.StatusOK)
	eventually.Within(t, 40*time.Second, "another server delivers the second", func() bool {
		list := left[0].store.Snapshot().Notifications("li")
		return len(list) == 2 && list[0].Deliveries[0].SentAt != 0
	})
	ids := map[string]int{}
	for _, got := range h.all() {
		ids[got.id]++
	}
	list := left[0].store.Snapshot().Notifications("li")
	if len(ids) != 2 || ids[list[1].ID] != 1 || ids[list[0].ID] < 2 {
		t.Errorf("delivered %v", ids)
	}
}
