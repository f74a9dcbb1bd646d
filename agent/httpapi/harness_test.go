package httpapi

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/history/store"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// harness is the HTTP API over a fake replica, in this process and without sockets.
type harness struct {
	t       *testing.T
	replica *FakeReplica
	members *FakeMembership
	admin   *api.Client
	door    http.Handler
	nodes   int              // registered
	socket  *httptest.Server // nil: the door is called as it is
}

// overSockets has answers come as they are written, for streams.
func (h *harness) overSockets() {
	h.socket = httptest.NewServer(h.door)
	h.t.Cleanup(h.socket.Close)
}

// signer is an authority that nobody asks anything.
type signer struct{ Authority }

// keyless holds no keys.
type keyless struct{ Keys }

func newHarness(t *testing.T, providers ...Provider) *harness {
	t.Helper()
	began := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	past, err := store.Open(store.Config{Dir: t.TempDir(), Keep: 100_000 * time.Hour, SizeMax: 1 << 30, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	replica, err := newFakeReplica(server.NewKeepingMachine(state.New(), past), began, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(replica.Close)
	h := &harness{t: t, replica: replica, members: &FakeMembership{ID: strings.Repeat("f", 32)}}
	h.door = New(Config{
		Door: front.Config{
			Log: slog.New(slog.DiscardHandler), Now: time.Now, Rest: front.NoPages(),
			Limits: front.Limits{Streams: 128, RequestsPerSec: 1e6, SubmitsPerSec: 1e6, TokenFailures: 100},
		},
		Replica: replica, Store: replica.Store(), Now: replica.Now, Rand: rand.Reader,
		PasswordCost: auth.Cost{Time: 1, Memory: 64, Threads: 1}, Providers: providers,
		Members: h.members, Servers: h.members, Authority: signer{}, Keys: keyless{}, Vault: &fakeVault{h: h}, History: past, Tell: &fakeTell{},
		Leads: func() bool { return true }, Leader: func() string { return "" }, Full: func() bool { return false }, Hears: func(string) bool { return false },
		Self:         func() api.AgentSelf { return api.AgentSelf{ID: h.members.ID} },
		Health:       func() api.Health { return api.Health{Healthy: true} },
		KeepSessions: func(*front.Sessions) {},
	})
	secret, token, err := NewToken(rand.Reader, replica.Now(), auth.TokenManagement, api.TokenRequest{Role: string(auth.RoleAdmin), User: "ada"}, "test")
	if err != nil {
		t.Fatal(err)
	}
	h.submit(structs.CommandTokenPut, structs.TokenPut{Token: token})
	if h.admin, err = api.New(api.Config{Address: "https://127.0.0.1", Token: secret, RetryFor: -1, HTTPClient: &http.Client{Transport: h}}); err != nil {
		t.Fatal(err)
	}
	return h
}

// RoundTrip implements http.RoundTripper: the door answers at once.
func (h *harness) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.socket != nil {
		plain := r.Clone(r.Context())
		plain.URL.Scheme, plain.URL.Host = "http", h.socket.Listener.Addr().String()
		return h.socket.Client().Transport.RoundTrip(plain)
	}
	body := r.Body
	if body == nil {
		body = http.NoBody
	}
	request := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), body)
	request.Header, request.ContentLength, request.RemoteAddr = r.Header, r.ContentLength, "192.0.2.7:1234"
	answer := httptest.NewRecorder()
	h.door.ServeHTTP(answer, request)
	return answer.Result(), nil
}

// submit puts a command into the log.
func (h *harness) submit(kind structs.CommandKind, body any) {
	h.t.Helper()
	if _, _, err := h.replica.Submit(h.t.Context(), kind, "test", body); err != nil {
		h.t.Fatal(err)
	}
}

// as makes a token of a role and returns a client that uses it.
func (h *harness) as(role, project, user string) *api.Client {
	h.t.Helper()
	made, err := h.admin.CreateToken(h.t.Context(), api.TokenRequest{Role: role, Project: project, User: user})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.admin.WithToken(made.Secret)
}

// node registers a node with so many cores and 16 GiB, and returns its id.
func (h *harness) node(name string, cores float64) string {
	h.t.Helper()
	h.nodes++
	id := fmt.Sprintf("%032x", 0xa00+h.nodes)
	h.submit(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{
		ID: id, Name: name, Pool: structs.PoolDefault, Status: structs.NodeReady, Incarnation: 1, Drivers: []string{"exec"}, Attributes: map[string]string{"kernel.version": "6.1"},
		Capacity: structs.Capacity{CPU: cores, Memory: 16 << 30, PortMin: 20000, PortMax: 20100},
	}})
	return id
}

// start submits a job and has it run.
func (h *harness) start(client *api.Client, hcl string) string {
	h.t.Helper()
	id := h.wait(client, hcl)
	for _, status := range []structs.AllocStatus{structs.AllocPrepared, structs.AllocRunning} {
		h.report(id, status)
	}
	if view, ok := h.replica.Store().Snapshot().Job(id); !ok || view.Status.State != structs.JobRunning {
		h.t.Fatalf("the job is %s", view.Status.State)
	}
	return id
}

// wait submits a job and has the scheduler look at it.
func (h *harness) wait(client *api.Client, hcl string) string {
	h.t.Helper()
	made, err := client.SubmitJob(h.t.Context(), api.JobRequest{HCL: hcl}, "")
	if err != nil {
		h.t.Fatal(err)
	}
	h.schedule()
	return made.JobID
}

func (h *harness) schedule() {
	h.t.Helper()
	if err := h.replica.Schedule(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// report has the nodes of a job's allocations that live say how these are.
func (h *harness) report(jobID string, status structs.AllocStatus) {
	h.t.Helper()
	now := structs.At(h.replica.Now())
	for alloc := range h.replica.Store().Snapshot().AllocsOfJob(jobID) {
		if alloc.Status.Terminal() {
			continue
		}
		report := structs.AllocReport{AllocID: alloc.ID, Attempt: alloc.Attempt, Status: status, StartedAt: now}
		if status.Terminal() {
			report.FinishedAt = now
		}
		h.submit(structs.CommandAllocReports, &structs.AllocReports{NodeID: alloc.NodeID, Reports: []structs.AllocReport{report}})
	}
}

// hello is a small job file.
func hello(command string) string { return named("hello", fmt.Sprintf("command = %q", command), "") }

// named is a job file that asks for little.
func named(name, task, more string) string {
	return fmt.Sprintf(`
job %q {
  %s
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver = "exec"
    %s
  }
}
`, name, more, task)
}

// sleeper is the job file of a job in a project.
func sleeper(name, project, access string) string {
	return named(name, "command = \"sleep 600\"\nenv = { SECRET = \"canary-env\" }", fmt.Sprintf("project = %q\naccess = %q", project, access))
}
