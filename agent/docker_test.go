package agent

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/client/rankshell"
	"nomadlike/nomadlike/structs"
)

// The test program is the agent's, which MPI's launcher calls in containers.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "mpi-rsh" {
		os.Exit(rankshell.RunShell(os.Args[2:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}
}

// engine is a Docker engine of this test's own.
type engine struct {
	dir, endpoint, program string
}

// startEngine starts an engine that holds one image, hostImage.
func startEngine(t *testing.T) *engine {
	t.Helper()
	switch _, err := exec.LookPath("dockerd"); {
	case err != nil:
		t.Skip("no Docker engine is installed here: apt-get install docker.io")
	case os.Geteuid() != 0:
		t.Skip("a Docker engine is started by root only")
	}
	dir, err := os.MkdirTemp("/tmp", "nle") // short: sockets lie below
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{dir: filepath.Join(dir, "e"), program: filepath.Join(dir, "task-init")}
	t.Cleanup(func() {
		e.script(t, "remove")
		os.RemoveAll(dir)
	})
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", e.program, "../plugins/docker/taskinit/cmd/task-init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build task-init: %v\n%s", err, out)
	}
	e.endpoint = e.script(t, "start", "--live-restore")
	e.importImage(t, hostImage)
	return e
}

func (e *engine) script(t *testing.T, act string, options ...string) string {
	t.Helper()
	command := exec.Command("../scripts/docker-engine.sh", append([]string{act, e.dir}, options...)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s engine: %v: %s", act, err, problems.String())
	}
	return strings.TrimSpace(string(out))
}

// hostImage holds links and one user: jobs mount the node's own programs.
const hostImage = "nomadlike-test/host:1"

// importImage makes an image of such links, with changes as in a Dockerfile.
func (e *engine) importImage(t *testing.T, ref string, changes ...string) {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range []string{"bin", "lib", "lib64", "sbin"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "usr/" + name, Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	passwd := "root:x:0:0:root:/root:/bin/sh\n"
	if err := w.WriteHeader(&tar.Header{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(passwd))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, passwd); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(e.endpoint, "unix://"))
	}}
	defer transport.CloseIdleConnections()
	name, tag, _ := strings.Cut(ref, ":")
	query := url.Values{"fromSrc": {"-"}, "repo": {name}, "tag": {tag}, "changes": changes}
	response, err := (&http.Client{Transport: transport}).Post(
		"http://engine/images/create?"+query.Encode(), "application/x-tar", &archive)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("import image: %s %s", response.Status, answer)
	}
}

// settings are those of a node whose containers run on the engine. Jobs may
// mount the node's programs and what lies in the given directories.
func (e *engine) settings(roots ...string) *config.ClientBlock {
	yes := true
	return &config.ClientBlock{Enabled: &yes, Docker: &config.DockerBlock{Endpoint: &e.endpoint, MountRoots: append(roots, "/usr")}}
}

// agentOn starts a development agent whose containers run on the engine.
func (e *engine) agentOn(t *testing.T, shared string) (*Agent, *api.Client) {
	t.Helper()
	yes := true
	options := testOptions(t)
	agent := startChanged(t, config.Settings{Dev: &yes, Client: e.settings(shared)}, options, e.change)
	return agent, loggedIn(t, options)
}

func (e *engine) change(c *config.Config) { c.Client.Docker.Program = e.program }

// loggedIn is a client of the development agent that was started with options.
func loggedIn(t testing.TB, options Options) *api.Client {
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

// awaitDriver waits until so many nodes have a healthy driver of that name.
func awaitDriver(t *testing.T, client *api.Client, name string, nodes int) {
	t.Helper()
	eventually.Within(t, time.Minute, "nodes have the driver "+name, func() bool {
		list, _, err := client.Nodes(t.Context(), nil)
		have := 0
		if err == nil {
			for _, node := range list.Nodes {
				if slices.Contains(node.Drivers, name) {
					have++
				}
			}
		}
		return have == nodes
	})
}

// contained is a job file that runs a command in the host image.
func contained(name, command, more string) string {
	return fmt.Sprintf(`
job %q {
  resources {
    cpu           = 0.5
    memory        = "64MiB"
    shared_memory = "16MiB"
  }
  mount "/usr" {
    source    = "/usr"
    read_only = true
  }
  %s
  stop_grace = "10s"
  task {
    driver  = "docker"
    image   = %q
    pull    = "never"
    command = %q
  }
}
`, name, more, hostImage, command)
}

// TestContainers runs jobs in containers of a real engine.
func TestContainers(t *testing.T) {
	e := startEngine(t)
	t.Run("jobs", e.jobs)
	t.Run("gangs", e.gangs)
}

// held: a container that failed is entered again as its command left it, and
// nothing of it stays when the hold is over.
func (e *engine) held(t *testing.T, client *api.Client) {
	job := runJob(t, client, contained("fails", `sh -c 'echo of the container >/left; echo of the task >own; exit 3'`, "debug {\n    hold = \"1h\"\n  }"), structs.JobFailed)
	alloc := allocOf(t, client, job.Job.ID)
	eventually.Within(t, time.Minute, "the failed container is entered", func() bool {
		conn, err := client.Exec(t.Context(), alloc.ID, structs.ExecStart{Command: []string{"true"}})
		if err != nil {
			return false
		}
		defer conn.Close()
		for {
			down, err := conn.Recv(t.Context())
			if err != nil {
				return false
			}
			if down.Exit != nil {
				return down.Exit.Code == 0
			}
		}
	})
	if out, code := execIn(t, client, alloc, "cat /left own; echo more >/by-hand"); strings.ReplaceAll(out, "\r", "") != "of the container\nof the task\n" || code != 0 {
		t.Errorf("in the hold: %q, exit code %d", out, code)
	}
	if !e.has(t, "image", "nomadlike-held:") {
		t.Error("no image is kept")
	}
	if made, err := client.CommitAllocation(t.Context(), alloc.ID, api.CommitRequest{Name: "autopsy:1"}); err != nil || made.ID == "" {
		t.Errorf("commit of the hold: %+v, %v", made, err)
	}
	if _, err := client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{Release: structs.ReleaseHold}); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "nothing is kept", func() bool {
		return !e.has(t, "image", "nomadlike-held:") && !e.has(t, "container", "nomadlike-"+alloc.ID)
	})
}

// has reports whether the engine has an image or a container whose name begins so.
func (e *engine) has(t *testing.T, kind, prefix string) bool {
	t.Helper()
	what := map[string]string{"image": "images/json?all=1", "container": "containers/json?all=1"}[kind]
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(e.endpoint, "unix://"))
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("http://engine/" + what)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("list %ss: %s, %v", kind, response.Status, err)
	}
	return strings.Contains(string(text), `"`+prefix) || strings.Contains(string(text), `"/`+prefix)
}

// What people do with a job in a container, from a file to its logs.
func (e *engine) jobs(t *testing.T) {
	shared := t.TempDir()
	_, client := e.agentOn(t, shared)
	awaitDriver(t, client, "docker", 1)

	t.Run("output, exit code, names and mounts", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(shared, "data"), []byte("of the storage\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		id := submit(t, client, contained("talks", `sh -c 'cat /data/data; echo $(hostname); getent hosts $(hostname) localhost | wc -l; df -m --output=size /dev/shm | tail -n 1 | tr -d " "; touch result; echo err >&2; exit 7'`,
			`mount "/data" {
    source    = "`+shared+`"
    read_only = true
  }`))
		job := awaitJob(t, client, id, structs.JobFailed)
		alloc := allocOf(t, client, id)
		if job.ExitCode != 7 || alloc.Infra {
			t.Errorf("exit code %d, %+v", job.ExitCode, alloc)
		}
		if got := logsOf(t, client, alloc.ID, api.LogOptions{}); got != "of the storage\n"+alloc.Name+"\n2\n16\n" {
			t.Errorf("stdout %q", got)
		}
	})

	t.Run("the agent's program", func(t *testing.T) {
		job := runJob(t, client, contained("calls", `sh -c 'test -x "$(command -v nomadlike)" && command -v nomadlike | grep -o ".nomadlike/.*"; nomadlike mpi-rsh; echo $?'`, ""), structs.JobSucceeded)
		if got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); got != ".nomadlike/bin/nomadlike\n255\n" {
			t.Errorf("stdout %q", got)
		}
	})

	t.Run("stop with grace", func(t *testing.T) {
		job := runJob(t, client, contained("stops", `sh -c 'trap "echo saved; exit 0" TERM; echo up; while :; do sleep 0.05; done'`, ""), structs.JobRunning)
		alloc := allocOf(t, client, job.Job.ID)
		eventually.Within(t, time.Minute, "the task is up", func() bool {
			return logsOf(t, client, alloc.ID, api.LogOptions{}) == "up\n"
		})
		if _, err := client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
			t.Fatal(err)
		}
		awaitJob(t, client, job.Job.ID, structs.JobStopped)
		if got := logsOf(t, client, alloc.ID, api.LogOptions{}); got != "up\nsaved\n" {
			t.Errorf("log %q", got)
		}
	})

	t.Run("out of memory", func(t *testing.T) {
		job := submit(t, client, contained("greedy", `python3 -c 'x = bytearray(256 << 20)'`, ""))
		awaitJob(t, client, job, structs.JobFailed)
		alloc := allocOf(t, client, job)
		if !alloc.OOMKilled || alloc.Cause == nil || alloc.Cause.ID != "client.task_oom" {
			t.Errorf("ended by %+v, OOM %v", alloc.Cause, alloc.OOMKilled)
		}
	})

	t.Run("what the node does not allow", func(t *testing.T) {
		for name, more := range map[string]string{
			"other-path": `mount "/etc2" { source = "/etc" }`,
			"own-link": `mount "/x" {
    source = "` + link(t, shared, "/etc") + `"
  }`,
		} {
			id := submit(t, client, contained(name, "true", more))
			awaitJob(t, client, id, structs.JobFailed)
			if alloc := allocOf(t, client, id); alloc.Infra || alloc.Cause == nil || alloc.Cause.ID != "docker.mount_refused" {
				t.Errorf("%s: %+v", name, alloc.Cause)
			}
		}
		absent := strings.Replace(contained("absent", "true", ""), hostImage, "nomadlike-test/absent:1", 1)
		id := submit(t, client, absent)
		awaitJob(t, client, id, structs.JobFailed)
		if alloc := allocOf(t, client, id); alloc.Infra || alloc.Cause == nil || alloc.Cause.ID != "docker.image_absent" {
			t.Errorf("absent image: %+v", alloc.Cause)
		}
	})

	t.Run("commit", func(t *testing.T) {
		job := runJob(t, client, contained("keeps", `sh -c 'echo kept > /kept; echo up; exec sleep 1000'`, ""), structs.JobRunning)
		alloc := allocOf(t, client, job.Job.ID)
		eventually.Within(t, time.Minute, "the task is up", func() bool {
			return logsOf(t, client, alloc.ID, api.LogOptions{}) == "up\n"
		})
		for _, name := range []string{"", "a/b", "registry.lab:5000/x", "x@sha256:0", "UPPER"} {
			if _, err := client.CommitAllocation(t.Context(), alloc.ID, api.CommitRequest{Name: name}); structs.CodeOf(err) != structs.CodeInvalid {
				t.Errorf("the name %q gives %v", name, err)
			}
		}
		made, err := client.CommitAllocation(t.Context(), alloc.ID, api.CommitRequest{Name: "trained:1", Comment: "with data"})
		if err != nil || !strings.HasSuffix(made.Image, "nomadlike/"+job.Job.Project+"/trained:1") || made.ID == "" || made.Bytes == 0 {
			t.Fatalf("committed %+v %v", made, err)
		}
		again := runJob(t, client, strings.Replace(contained("again", "cat /kept", ""), hostImage, made.Image, 1), structs.JobSucceeded)
		if got := logsOf(t, client, allocOf(t, client, again.Job.ID).ID, api.LogOptions{}); got != "kept\n" {
			t.Errorf("log %q", got)
		}
		if _, err := client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
			t.Fatal(err)
		}
		awaitJob(t, client, job.Job.ID, structs.JobStopped)
		if _, err := client.CommitAllocation(t.Context(), alloc.ID, api.CommitRequest{Name: "late"}); structs.CodeOf(err) != structs.CodeConflict {
			t.Errorf("commit of an ended task gives %v", err)
		}
	})

	t.Run("debug hold", func(t *testing.T) { e.held(t, client) })

	t.Run("user and own directory", func(t *testing.T) {
		record := &structs.Pool{Name: structs.PoolDefault, Exec: &structs.PoolExec{Accounts: structs.Accounts{Users: map[string]string{"dev": "12345:54321"}}}}
		if _, err := client.PutPool(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		file := strings.Replace(contained("user", `sh -c 'id -u; id -g; echo x > mine; cat mine'`, ""), "pull ", "user = \"12345:54321\"\n    pull ", 1)
		job := runJob(t, client, file, structs.JobSucceeded)
		if got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); got != "12345\n54321\nx\n" {
			t.Errorf("log %q", got)
		}
	})
}

// link makes a link in a directory that leads elsewhere.
func link(t *testing.T, dir, target string) string {
	t.Helper()
	path := filepath.Join(dir, "link")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func submit(t testing.TB, client *api.Client, hcl string) string {
	t.Helper()
	submitted, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: hcl}, "")
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return submitted.JobID
}

// A gang in containers: the ranks know each other by name, their commands are
// entered with a terminal, MPI starts its processes through the agents, and
// the agent of a rank may be replaced while the rank runs.
func (e *engine) gangs(t *testing.T) {
	c := startCluster(t, 1, 0)
	join := readJoin(t, c.servers[0], joinClient)
	for i := range 2 {
		settings := clientSettings(t.TempDir(), fmt.Sprintf("client-%d", i), &join)
		settings.Client = e.settings()
		c.clients = append(c.clients, startChanged(t, settings, testOptions(t), e.change))
	}
	awaitDriver(t, c.api, "docker", 2)

	whole := t
	t.Run("names, terminal and a new agent", func(t *testing.T) {
		file := strings.Replace(contained("gang", `sh -c 'getent hosts gang-1-0 gang-1-1; while test ! -e end || test -e /proc/$(cat end); do sleep 0.05; done; exit 3'`, "nodes = 2"), "stop_grace", "distributed \"none\" {}\n  stop_grace", 1)
		job := runJob(t, c.api, file, structs.JobRunning)
		list, _, err := c.api.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
		if err != nil || len(list.Allocations) != 2 {
			t.Fatalf("allocations %+v %v", list, err)
		}
		for _, alloc := range list.Allocations {
			eventually.Within(t, time.Minute, "the ranks know each other", func() bool {
				return logsOf(t, c.api, alloc.ID, api.LogOptions{}) == "127.0.0.1       gang-1-0\n127.0.0.1       gang-1-1\n"
			})
		}
		first := list.Allocations[0]
		if got, code := execIn(t, c.api, first, "tty; hostname; exit 5"); code != 5 || !strings.Contains(got, "/dev/pts/") || !strings.Contains(got, first.Name) {
			t.Errorf("a terminal in the container: %q, %d", got, code)
		}
		at := slices.IndexFunc(c.clients, func(a *Agent) bool { return a.ID() == first.NodeID })
		old := c.clients[at]
		before, _, err := c.api.Node(t.Context(), first.NodeID, nil)
		if err != nil {
			t.Fatal(err)
		}
		stopAgent(t, old)
		settings := clientSettings(old.DataDir(), old.config.Name, nil)
		settings.Client = e.settings()
		settings.Client.Servers = []string{c.servers[0].Addr()}
		settings.Ports = &config.PortsBlock{HTTP: portOf(t, old.Addr()), Gossip: portOf(t, old.gossip.Addr())}
		c.clients[at] = startChanged(whole, settings, testOptions(whole), e.change)
		eventually.Within(t, time.Minute, "the node is back", func() bool {
			node, _, err := c.api.Node(t.Context(), first.NodeID, nil)
			return err == nil && node.Status == structs.NodeReady && node.Incarnation > before.Incarnation
		})
		// The task waits for the end of what ends it, which would else be
		// killed along with the container.
		if got, code := execIn(t, c.api, first, "echo $$ > end.new && exec mv end.new end"); code != 0 {
			t.Errorf("the new agent enters the task: %q, %d", got, code)
		}
		ended := awaitJob(t, c.api, job.Job.ID, structs.JobFailed)
		if alloc := allocOf(t, c.api, job.Job.ID); ended.ExitCode != 3 || ended.Attempt != 1 || alloc.Infra {
			t.Errorf("exit code %d in attempt %d, %+v", ended.ExitCode, ended.Attempt, alloc)
		}
	})

	t.Run("pause, continue and throttle", func(t *testing.T) { controlGang(t, c.api) })

	t.Run("mpi", func(t *testing.T) {
		// What a launcher does, but for its own protocol: the ranks of this
		// test have one address, and Open MPI would take them for one node.
		line := `sh -c '.nomadlike/mpi-rsh -x mpi-1-1 hostname; .nomadlike/mpi-rsh -x mpi-1-0 hostname; wc -l < .nomadlike/hostfile' # mpirun`
		id := submit(t, c.api, contained("mpi", line, "nodes = 2\n  distributed \"mpi\" {}"))
		eventually.Within(t, time.Minute, "the job ends", func() bool {
			job, _, err := c.api.Job(t.Context(), id, nil)
			return err == nil && job.State.Terminal()
		})
		list, _, err := c.api.Allocations(t.Context(), id, api.AllocationFilter{}, nil)
		if err != nil || len(list.Allocations) != 2 {
			t.Fatalf("allocations %+v %v", list, err)
		}
		if got := logsOf(t, c.api, list.Allocations[0].ID, api.LogOptions{}); got != "mpi-1-1\nmpi-1-0\n2\n" {
			t.Errorf("ranks %q: %s", got, logsOf(t, c.api, list.Allocations[0].ID, api.LogOptions{Stream: "stderr"}))
		}
	})
}

// controlGang pauses a gang in containers, lets it go on, throttles it and lifts
// that: every rank stands still and goes on.
func controlGang(t *testing.T, client *api.Client) {
	// Every line says for how many milliseconds the rank stood still before it.
	script := `python3 -uc 'import time; then = time.monotonic()
while True:
    time.sleep(0.01); now = time.monotonic(); print(int(1000 * (now - then))); then = now'`
	file := strings.Replace(contained("control", script, "nodes = 2"), "stop_grace", "distributed \"none\" {}\n  stop_grace", 1)
	job := runJob(t, client, file, structs.JobRunning)
	list, _, err := client.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
	if err != nil || len(list.Allocations) != 2 {
		t.Fatalf("allocations %+v %v", list, err)
	}
	lines := func(alloc structs.Allocation) []string {
		return strings.Split(strings.TrimSuffix(logsOf(t, client, alloc.ID, api.LogOptions{}), "\n"), "\n")
	}
	// gaps counts how often a rank stood still as long since a line.
	gaps := func(alloc structs.Allocation, since int, long time.Duration) (count int) {
		for _, line := range lines(alloc)[since:] {
			if stood, err := strconv.Atoi(line); err == nil && time.Duration(stood)*time.Millisecond >= long {
				count++
			}
		}
		return count
	}
	each := func(what string, holds func(alloc structs.Allocation, since int) bool) {
		t.Helper()
		for _, alloc := range list.Allocations {
			since := len(lines(alloc))
			eventually.Within(t, time.Minute, what, func() bool { return holds(alloc, since) })
		}
	}
	runs := func(alloc structs.Allocation, since int) bool { return len(lines(alloc)) > since+20 }
	awaitState := func(state structs.JobState) {
		t.Helper()
		eventually.Within(t, time.Minute, "the job is "+string(state), func() bool {
			job, _, err := client.Job(t.Context(), job.Job.ID, nil)
			return err == nil && job.State == state
		})
	}
	each("every rank runs", runs)
	if _, err := client.PauseJob(t.Context(), job.Job.ID, api.JobControlRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitState(structs.JobPaused)
	// What was on its way when they were paused may still be logged.
	for _, alloc := range list.Allocations {
		before := -1
		eventually.Within(t, time.Minute, "the rank stands still", func() bool {
			window := time.NewTimer(300 * time.Millisecond)
			<-window.C
			now := len(lines(alloc))
			still := now == before
			before = now
			return still
		})
	}
	if _, err := client.ContinueJob(t.Context(), job.Job.ID, api.JobControlRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitState(structs.JobRunning)
	each("every rank goes on", runs)
	const idle = 800 * time.Millisecond
	if _, err := client.ThrottleJob(t.Context(), job.Job.ID, api.ThrottleRequest{Busy: structs.Duration(200 * time.Millisecond), Idle: structs.Duration(idle)}); err != nil {
		t.Fatal(err)
	}
	each("every rank stands still in turns", func(alloc structs.Allocation, since int) bool { return gaps(alloc, since, idle*3/4) >= 3 })
	if _, err := client.ThrottleJob(t.Context(), job.Job.ID, api.ThrottleRequest{}); err != nil {
		t.Fatal(err)
	}
	each("no rank stands still any more", func(alloc structs.Allocation, since int) bool {
		all := lines(alloc)
		const second = 60 // lines: more than a turn has
		return len(all) > since+second && gaps(alloc, len(all)-second, idle*3/4) == 0
	})
	if _, err := client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, job.Job.ID, structs.JobStopped)
}

// execIn runs a shell's line in a task, with a terminal.
func execIn(t *testing.T, client *api.Client, alloc structs.Allocation, line string) (output string, code int) {
	t.Helper()
	ctx, cancel := contextWithTimeout(t, time.Minute)
	defer cancel()
	conn, err := client.Exec(ctx, alloc.ID, structs.ExecStart{
		AllocID: alloc.ID, Attempt: alloc.Attempt, Command: []string{"sh", "-c", line}, TTY: true, Size: &structs.TTYSize{Rows: 24, Cols: 80},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for {
		down, err := conn.Recv(ctx)
		if err != nil {
			t.Fatalf("exec: %v after %q", err, output)
		}
		if down.Exit != nil {
			return output, down.Exit.Code
		}
		output += string(down.Stdout)
	}
}
