package agent

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/exec/supervisor/supervisortest"
)

// TestMain lets the test program stand in for the main program, as an agent in a
// process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == trainArgument {
		os.Exit(trainOneRank(os.Args[2], os.Args[3]))
	}
	if settings := os.Getenv(processEnv); settings != "" {
		os.Exit(runProcess(settings))
	}
	var err error
	if supervisors, err = supervisortest.Build(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		supervisors.Remove()
		os.Exit(code)
	}))
}

// supervisors is the program that supervises the tasks of the tests' agents, which is the
// one that users have.
var supervisors supervisortest.Program

// testOptions log to the test, and find the configuration directory in a
// temporary one.
func testOptions(t testing.TB) Options {
	dir := t.TempDir()
	return Options{
		Log:        slog.New(slog.NewTextHandler(&testWriter{t: t}, &slog.HandlerOptions{Level: slog.LevelInfo})),
		Getenv:     func(name string) string { return map[string]string{"NOMADLIKE_CONFIG_DIR": dir}[name] },
		Supervisor: supervisors.Command(),
		foundLook:  time.Millisecond, // the tests of founding take longer
	}
}

// testWriter writes to the test's log until the test ends.
type testWriter struct {
	t    testing.TB
	once sync.Once
	mu   struct {
		sync.Mutex
		over bool
	}
}

func (w *testWriter) Write(p []byte) (int, error) {
	w.once.Do(func() {
		w.t.Cleanup(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.mu.over = true
		})
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.over {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// stopPatience is longer than what the program allows itself: the exec driver waits for
// supervisors that have just been started, which are this test program here, and with the
// race detector on a busy machine it takes many seconds to come up.
const stopPatience = time.Minute

// startAgent starts an agent that stops with the test.
func startAgent(t testing.TB, settings config.Settings, options Options) *Agent {
	t.Helper()
	return startChanged(t, settings, options, func(*config.Config) {})
}

// startChanged starts an agent with a configuration that no file can give.
func startChanged(t testing.TB, settings config.Settings, options Options, change func(*config.Config)) *Agent {
	t.Helper()
	zero, loopback := 0, "127.0.0.1"
	base := config.Settings{Bind: &loopback, Ports: &config.PortsBlock{HTTP: &zero, Gossip: &zero}}
	config, err := config.Load(nil, base.Over(settings), messages.English)
	if err != nil {
		t.Fatal(err)
	}
	change(&config)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	agent, err := Start(ctx, config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stopAgent(t, agent)
		endTasks(config)
	})
	return agent
}

// endTasks ends the tasks of an agent that has stopped, at the end of a test.
func endTasks(config config.Config) {
	if config.DataDir != "" { // else they have ended with it
		supervisors.EndBelow(config.DataDir)
	}
}

func stopAgent(t testing.TB, agent *Agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := agent.Stop(ctx); err != nil {
		t.Errorf("stop agent: %v", err)
	}
}

// devAgent starts a development agent and a client that is logged in.
func devAgent(t testing.TB) (*Agent, *api.Client) {
	t.Helper()
	yes := true
	options := testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes}, options)
	return agent, savedClient(t, options)
}

// savedClient is logged in at the development agent that was started with
// options.
func savedClient(t testing.TB, options Options) *api.Client {
	t.Helper()
	dir, err := api.ContextDir(options.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := api.LoadContext(dir)
	if err != nil {
		t.Fatal(err)
	}
	return clientFor(t, saved.Address, saved.CA, saved.Token)
}

func clientFor(t testing.TB, address, ca, token string) *api.Client {
	t.Helper()
	client, err := api.New(api.Config{Address: address, CAPEM: []byte(ca), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// letRoot lets the default pool's tasks run as root, for tests that are about
// something else and have scripts and gates in directories that are theirs alone.
func letRoot(t testing.TB, client *api.Client) {
	t.Helper()
	if _, err := client.PutPool(t.Context(), &structs.Pool{Name: structs.PoolDefault, Exec: &structs.PoolExec{Root: true}}); err != nil {
		t.Fatal(err)
	}
}

// hello is a small job file.
func hello(command string) string {
	return `
job "hello" {
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "` + strings.ReplaceAll(command, `"`, `\"`) + `"
  }
}
`
}

// jobOf is the request for a job file.
func jobOf(hcl string) api.JobRequest { return api.JobRequest{HCL: hcl} }

// runJob submits a job file and waits until the job is in state.
func runJob(t testing.TB, client *api.Client, hcl string, state structs.JobState) *api.JobDetail {
	t.Helper()
	submitted, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: hcl}, "")
	if err != nil {
		t.Fatalf("submit: %v %+v", err, err)
	}
	return awaitJob(t, client, submitted.JobID, state)
}

func awaitJob(t testing.TB, client *api.Client, id string, state structs.JobState) *api.JobDetail {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	index := uint64(0)
	for {
		job, meta, err := client.Job(ctx, id, &api.Query{Index: index, Wait: 5 * time.Second})
		if err != nil {
			t.Fatalf("wait for job %s to be %s: %v", id, state, err)
		}
		if job.State == state {
			return job
		}
		if job.State.Terminal() {
			t.Fatalf("job %s is %s: %+v", id, job.State, job.Reason)
		}
		index = meta.Index
	}
}

func logsOf(t testing.TB, client *api.Client, allocID string, options api.LogOptions) string {
	t.Helper()
	reader, err := client.Logs(t.Context(), allocID, options)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func allocOf(t testing.TB, client *api.Client, jobID string) structs.Allocation {
	t.Helper()
	list, _, err := client.Allocations(t.Context(), jobID, api.AllocationFilter{}, nil)
	if err != nil || len(list.Allocations) == 0 {
		t.Fatalf("allocations: %+v %v", list, err)
	}
	return list.Allocations[len(list.Allocations)-1]
}

// eventuallyHas waits until text appears in a buffer.
func eventuallyHas(t testing.TB, buffer *lockedBuffer, text string) {
	t.Helper()
	eventually.Within(t, time.Minute, "read "+text, func() bool { return strings.Contains(buffer.String(), text) })
}

type lockedBuffer struct {
	mu struct {
		sync.Mutex
		bytes.Buffer
	}
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.Buffer.String()
}

func contextWithTimeout(t testing.TB, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), limit)
}

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	eventually.Within(t, time.Minute, what, done)
}
