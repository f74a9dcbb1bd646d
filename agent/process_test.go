package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// processEnv names the settings, as JSON, of an agent that the test program
// becomes; see TestMain.
const processEnv = "NOMADLIKE_TEST_AGENT"

// superviseEnv names what starts supervisors of such an agent, see supervise.
const superviseEnv = "NOMADLIKE_TEST_SUPERVISOR"

// processSettings are what an agent in a process of its own is told.
type processSettings struct {
	Dir          string
	HTTP, Gossip int
	// A client of another's cluster, rather than server and client in one.
	Name, Join string
	Servers    []string
	Docker     *config.DockerBlock
	Program    string // of containers
	Data       *config.DataBlock
	Storages   []config.StorageBlock
}

func (given *processSettings) config() (config.Config, error) {
	yes, loopback, name := true, "127.0.0.1", "host"
	settings := config.Settings{
		Name: &name, DataDir: &given.Dir, Bind: &loopback, Ports: &config.PortsBlock{HTTP: &given.HTTP, Gossip: &given.Gossip},
		Server: &config.ServerBlock{Enabled: &yes}, Client: &config.ClientBlock{Enabled: &yes, Data: given.Data, Storages: given.Storages},
	}
	if given.Name != "" {
		settings.Name, settings.Server, settings.Client = &given.Name, nil, &config.ClientBlock{Enabled: &yes, Servers: given.Servers, Docker: given.Docker}
		if given.Join != "" {
			settings.JoinToken = &given.Join
		}
	}
	config, err := config.Load(nil, settings, "en")
	config.Client.Docker.Program = given.Program
	return config, err
}

// runProcess is an agent in a process of its own.
func runProcess(settings string) int {
	var given processSettings
	if err := json.Unmarshal([]byte(settings), &given); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	config, err := given.config()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = Run(ctx, config, Options{Out: os.Stdout, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), Supervisor: strings.Split(os.Getenv(superviseEnv), " ")})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a running agent process.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
}

func startProcess(t *testing.T, told processSettings) *process {
	t.Helper()
	settings, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), processEnv+"="+string(settings), superviseEnv+"="+strings.Join(supervisors.Command(), " "))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		supervisors.EndBelow(told.Dir)
	})
	return p
}

// end signals the process and waits for it.
func (p *process) end(signal syscall.Signal) {
	p.t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Error(err)
	}
	_ = p.cmd.Wait() // it was killed: its state says so
}

func (p *process) signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// freePort finds a port that nobody uses right now.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// setUp makes the first token of an agent in a process of its own.
func setUp(t *testing.T, dir string, http int) *api.Client {
	t.Helper()
	eventually.Within(t, time.Minute, "find the setup secret", func() bool {
		_, err := os.Stat(filepath.Join(dir, setupFile))
		return err == nil
	})
	read := func(parts ...string) string {
		data, err := os.ReadFile(filepath.Join(append([]string{dir}, parts...)...))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	client := clientFor(t, fmt.Sprintf("https://127.0.0.1:%d", http), read(identityDir, caFile), "")
	made, err := client.BootstrapToken(t.Context(), read(setupFile))
	if err != nil {
		t.Fatal(err)
	}
	client = client.WithToken(made.Secret)
	letRoot(t, client)
	return client
}

// An agent that is killed with no warning comes back with its log, its
// tokens and its running task, whose output and exit code are whole.
func TestKilledAgentComesBackWithItsTask(t *testing.T) {
	dir, http, gossip := t.TempDir(), freePort(t), freePort(t)
	p := startProcess(t, processSettings{Dir: dir, HTTP: http, Gossip: gossip})
	client := setUp(t, dir, http)
	flag := filepath.Join(t.TempDir(), "go")
	job := runJob(t, client, hello(`sh -c 'echo before; while ! test -e `+flag+`; do sleep 0.02; done; echo after; exit 7'`), structs.JobRunning)
	alloc := allocOf(t, client, job.Job.ID)
	eventually.Within(t, time.Minute, "see the first line", func() bool {
		return logsOf(t, client, alloc.ID, api.LogOptions{}) == "before\n"
	})

	p.end(syscall.SIGKILL)
	begin := time.Now()
	p = startProcess(t, processSettings{Dir: dir, HTTP: http, Gossip: gossip})
	eventually.Within(t, time.Minute, "see the node back", func() bool {
		health, err := client.Health(t.Context())
		return err == nil && health.Healthy
	})
	t.Logf("back after %s", time.Since(begin))
	found, _, err := client.Job(t.Context(), job.Job.ID, nil)
	if err != nil || found.State != structs.JobRunning || found.Attempt != 1 {
		t.Fatalf("job after the kill: %s, attempt %d, because of %v, %v", found.State, found.Attempt, found.Reason, err)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := awaitJob(t, client, job.Job.ID, structs.JobFailed)
	if ended.ExitCode != 7 {
		t.Errorf("exit code %d", ended.ExitCode)
	}
	if got := logsOf(t, client, alloc.ID, api.LogOptions{}); got != "before\nafter\n" {
		t.Errorf("log %q", got)
	}

	// And once more, ended in order this time: the task goes on without it.
	if err := os.Remove(flag); err != nil {
		t.Fatal(err)
	}
	job = runJob(t, client, strings.Replace(hello(`sh -c 'while ! test -e `+flag+`; do sleep 0.02; done'`), `"hello"`, `"second"`, 1), structs.JobRunning)
	p.end(syscall.SIGTERM)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the agent ended with code %d", code)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	startProcess(t, processSettings{Dir: dir, HTTP: http, Gossip: gossip})
	awaitJob(t, client, job.Job.ID, structs.JobSucceeded)
}
