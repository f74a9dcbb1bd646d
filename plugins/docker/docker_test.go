package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	imagetypes "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"go.uber.org/goleak"

	"nomadlike/internal/mounts/oldkernel"
	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
)

// The engine of this test run, and the program for its containers.
var world struct {
	missing  string // why there is no engine
	dir      string
	endpoint string
	program  string
	api      *client.Client
}

// hostImage holds links only: its programs are the node's own, mounted.
const hostImage = "nomadlike-test/host:1"

// limit bounds what a test waits for; far above what any step takes.
const limit = 30 * time.Second

// testsAtOnce is how many of the tests that may run beside others do.
const testsAtOnce = 4

func TestMain(m *testing.M) {
	oldkernel.Play()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	if len(os.Args) > 2 && os.Args[1] == agentArgument {
		return playAgent(os.Args[2:])
	}
	var err error
	if world.dir, err = os.MkdirTemp("/tmp", "nld"); err != nil { // short: sockets lie below
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(world.dir)
	world.program = filepath.Join(world.dir, "task-init")
	build := osexec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", world.program, "./taskinit/cmd/task-init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build task-init: %v\n%s", err, out)
		return 1
	}
	switch _, err := osexec.LookPath("dockerd"); {
	case err != nil:
		world.missing = "no Docker engine is installed here: apt-get install docker.io"
	case slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzz=") || a == "-test.fuzzworker" }):
		world.missing = "no engine is started for parsers"
	case os.Geteuid() != 0:
		world.missing = "a Docker engine is started by root only"
	default:
		if err := startEngine("--live-restore"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer engineScript("remove")
		if world.api, err = client.NewClientWithOpts(client.WithHost(world.endpoint), client.WithAPIVersionNegotiation()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer world.api.Close()
		if err := importImage(hostImage, links("bin", "lib", "lib64", "sbin"), nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// Tests wait for the engine and for tasks more than they compute. Those that
	// stop the engine or fill the node run by themselves, before the others.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(testsAtOnce)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if world.api != nil {
		world.api.Close()
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// engineScript runs the script that starts and stops engines.
func engineScript(act string, options ...string) (string, error) {
	command := osexec.Command("../../scripts/docker-engine.sh", append([]string{act, world.dir + "/e"}, options...)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s engine: %w: %s", act, err, problems.String())
	}
	return strings.TrimSpace(string(out)), nil
}

func startEngine(options ...string) (err error) {
	world.endpoint, err = engineScript("start", options...)
	return err
}

// needEngine skips a test where there is no engine.
func needEngine(t testing.TB) {
	t.Helper()
	if world.missing != "" {
		t.Skip(world.missing)
	}
}

// long leaves a test that takes many seconds to the normal run: the one with the
// race detector is told to be short.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left to the normal run")
	}
}

// file is an entry of a test image: a link when it has a target.
type file struct {
	name, link string
	body       []byte
	mode       int64
}

func links(names ...string) (files []file) {
	for _, name := range names {
		files = append(files, file{name: name, link: "usr/" + name})
	}
	return files
}

// importImage makes an image of files, with changes as in a Dockerfile.
func importImage(ref string, files []file, changes []string) error {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.body)), Typeflag: tar.TypeReg}
		if f.mode != 0 {
			header.Mode = f.mode
		}
		if f.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
		}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.body); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	answer, err := world.api.ImageImport(context.Background(), imagetypes.ImportSource{Source: &archive, SourceName: "-"}, ref,
		imagetypes.ImportOptions{Changes: changes})
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = io.Copy(io.Discard, answer)
	return err
}

// config is a driver's for tests: jobs may mount the node's programs and
// everything temporary.
func config(t testing.TB) docker.Config {
	return docker.Config{
		StateDir: stateDir(t), Endpoint: world.endpoint, Cluster: "test", Node: t.Name(), Program: world.program,
		MountRoots: []string{"/usr", "/tmp", "/etc/alternatives"}, ProbeEvery: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

func stateDir(t testing.TB) string {
	dir, err := os.MkdirTemp(world.dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// open returns a driver of its own on the engine of this run.
func open(t testing.TB, change ...func(*docker.Config)) *docker.Driver {
	t.Helper()
	needEngine(t)
	c := config(t)
	for _, f := range change {
		f(&c)
	}
	d, err := docker.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// inHostImage runs every task in an image whose programs are the node's, as
// the conformance tests want.
type inHostImage struct{ *docker.Driver }

func (d inHostImage) Start(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
	return d.Driver.Start(ctx, dressed(spec))
}

// dressed returns a task with the image and the mounts that it needs.
func dressed(spec driver.TaskSpec) driver.TaskSpec {
	if spec.Container == nil {
		spec.Container = &driver.Container{Image: hostImage, Pull: driver.PullNever, Network: driver.NetworkNone}
	}
	spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: "/usr", TaskPath: "/usr", ReadOnly: true})
	if len(spec.Command) > 0 && strings.HasPrefix(spec.Command[0], "/tmp/") {
		dir := filepath.Dir(spec.Command[0])
		if dir == spec.TaskDir {
			return spec // it is there already
		}
		spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: dir, TaskPath: dir, ReadOnly: true})
	}
	return spec
}

func TestContract(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) driver.Driver {
		if !strings.HasSuffix(t.Name(), "/Lifecycle") { // it changes the environment of this process
			t.Parallel()
		}
		return inHostImage{open(t)}
	})
}
