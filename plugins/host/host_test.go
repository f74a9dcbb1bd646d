package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"go.uber.org/goleak"

	"nomadlike/internal/eventually"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/driverplugin"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/exec/supervisor"
	"nomadlike/plugins/host"
)

// TestMain lets the test program stand in for plugins, by the name it is
// started under, and for the supervisors of their tasks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Argument {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	for _, all := range []map[string]func(){roles(), deviceRoles()} {
		if play, ok := all[os.Args[0]]; ok {
			play()
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// roles are the programs that the test program can be.
func roles() map[string]func() {
	return map[string]func(){
		"exec-ext": func() { driverplugin.Serve("exec-ext", openExec(os.Args[1])) },
		"impostor": func() { driverplugin.Serve("somebody-else", openExec(os.Args[1])) },
		"silent":   func() { select {} },
		"garbage":  func() { fmt.Println(strings.Repeat("x", 1000)) },
		"quitter":  func() { os.Exit(3) },
		"stopper": func() { // answers until it is told the task's name, then never again
			driverplugin.Serve("stopper", &hostile{Driver: openExec(os.Args[1]), act: func() {
				syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				select {}
			}})
		},
		"crasher": func() {
			driverplugin.Serve("crasher", &hostile{Driver: openExec(os.Args[1]), act: func() { os.Exit(9) }})
		},
		"masker": func() {
			driverplugin.Serve("masker", &masker{hostile: hostile{Driver: openExec(os.Args[1]), act: func() { os.Exit(9) }}})
		},
		"flooder": func() {
			driverplugin.Serve("flooder", &hostile{Driver: openExec(os.Args[1]), list: 500})
		},
		"outdated": func() {
			handshake := driverplugin.Handshake()
			handshake.ProtocolVersion = 99
			plugin.Serve(&plugin.ServeConfig{
				HandshakeConfig: handshake, GRPCServer: plugin.DefaultGRPCServer,
				Plugins: plugin.PluginSet{driverplugin.Name: &driverplugin.Adapter{Impl: openExec(os.Args[1])}},
			})
		},
	}
}

func openExec(stateDir string) *exec.Driver {
	d, err := exec.New(exec.Config{StateDir: stateDir, Supervisor: []string{"/proc/self/exe", supervisor.Argument}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return d
}

// hostile is a driver that goes wrong when it is asked to signal a task, or
// to list its many.
type hostile struct {
	*exec.Driver
	act  func()
	list int
}

func (h *hostile) Signal(context.Context, driver.TaskID, string) error {
	h.act()
	return nil
}

func (h *hostile) List(context.Context) ([]driver.Handle, error) {
	handles := make([]driver.Handle, h.list)
	for i := range handles {
		handles[i] = driver.Handle{TaskID: driver.TaskID(fmt.Sprint("task-", i)), State: make([]byte, 16<<10)}
	}
	return handles, nil
}

// install puts the test program into a plugin directory under names.
func install(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if os.Link(self, path) == nil {
			continue
		}
		from, err := os.Open(self)
		if err != nil {
			t.Fatal(err)
		}
		to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, from); err != nil {
			t.Fatal(err)
		}
		from.Close()
		to.Close()
	}
	return dir
}

// start opens a host with one plugin, whose tasks are kept in stateDir.
func start(t *testing.T, name, stateDir string) *host.Host {
	t.Helper()
	return startPlugin(t, name, stateDir, host.Patient)
}

// startHasty is start for a plugin that will not answer.
func startHasty(t *testing.T, name, stateDir string) *host.Host {
	t.Helper()
	return startPlugin(t, name, stateDir, host.Hasty)
}

func startPlugin(t *testing.T, name, stateDir string, timed func(host.Config) host.Config) *host.Host {
	t.Helper()
	h, err := host.New(timed(host.Config{
		PluginDir: install(t, name),
		RunDir:    shortDir(t),
		Plugins:   []host.PluginConfig{{Name: name, Args: []string{stateDir}, Env: []string{"PATH=/usr/bin:/bin"}}},
		Logger:    slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// shortDir is a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func open(t *testing.T, h *host.Host, name string) driver.Driver {
	t.Helper()
	d, err := h.Driver(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestContractOverPlugin(t *testing.T) {
	h := start(t, "exec-ext", t.TempDir())
	drivertest.Run(t, func(t *testing.T) driver.Driver { return open(t, h, "exec-ext") })
}

// pluginPID finds the plugin's program among this process's children.
func pluginPID(t *testing.T, name string) int {
	t.Helper()
	pid := 0
	eventually.Within(t, time.Minute, "plugin runs", func() bool {
		entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			line, err := os.ReadFile(entry)
			stat, statErr := os.ReadFile(filepath.Join(filepath.Dir(entry), "stat"))
			if err != nil || statErr != nil || !strings.HasPrefix(string(line), name+"\x00") {
				continue
			}
			var parent int
			_, rest, _ := strings.Cut(string(stat), ") ")
			if fmt.Sscanf(rest[2:], "%d", &parent); parent == os.Getpid() {
				fmt.Sscanf(filepath.Base(filepath.Dir(entry)), "%d", &pid)
				return true
			}
		}
		return false
	})
	return pid
}

func TestTasksOutliveTheirPlugin(t *testing.T) {
	h := start(t, "exec-ext", t.TempDir())
	d := open(t, h, "exec-ext")
	spec := drivertest.Shell(t, `echo ready; trap 'echo bye; exit 5' TERM; while :; do sleep 0.05; done`)
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	waited := make(chan driver.ExitResult, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		result, err := d.Wait(ctx, spec.ID)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		waited <- result
	}()
	first := pluginPID(t, "exec-ext")
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "new plugin takes the task over", func() bool {
		return d.Stop(context.Background(), spec.ID, "", time.Minute) == nil
	})
	if result := <-waited; result.Code != 5 {
		t.Errorf("result is %+v, want the trap's 5", result)
	}
	if second := pluginPID(t, "exec-ext"); second == first {
		t.Error("it is the same program")
	}
}

func TestHungPluginBlocksNobody(t *testing.T) {
	h := start(t, "stopper", t.TempDir())
	d := open(t, h, "stopper")
	spec := drivertest.Shell(t, "echo ready; exec sleep 1000")
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	hung := make(chan error, 1)
	go func() { hung <- d.Signal(context.Background(), spec.ID, "SIGUSR1") }()
	select {
	case err := <-hung:
		if !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("call into the hung plugin gives %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("call into a hung plugin never returns")
	}
	// It is killed and started anew, with the task.
	eventually.Within(t, time.Minute, "task answers again", func() bool {
		_, err := d.Stats(context.Background(), spec.ID)
		return err == nil
	})
}

func TestCrashingPluginIsRestarted(t *testing.T) {
	h := start(t, "crasher", t.TempDir())
	d := open(t, h, "crasher")
	spec := drivertest.Shell(t, "echo ready; exec sleep 1000")
	drivertest.Start(t, d, spec)
	for range 3 {
		if err := d.Signal(context.Background(), spec.ID, "SIGUSR1"); !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("call into the crashing plugin gives %v", err)
		}
		eventually.Within(t, time.Minute, "task answers again", func() bool {
			_, err := d.Stats(context.Background(), spec.ID)
			return err == nil
		})
	}
}

func TestBadPluginsAreUnavailable(t *testing.T) {
	for name, want := range map[string]string{
		"garbage":  "Unrecognized remote plugin message",
		"quitter":  "plugin",
		"outdated": "version 1 of the driver contract",
		"impostor": "somebody-else",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, startHasty(t, name, t.TempDir()), name)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			reports, err := d.Fingerprint(ctx)
			if err != nil {
				t.Fatal(err)
			}
			report := <-reports
			if report.Health != driver.Unhealthy || !strings.Contains(report.Reason, want) {
				t.Errorf("report is %+v, want %q in it", report, want)
			}
			if err := d.Stop(ctx, "x", "", 0); !errors.Is(err, driver.ErrUnavailable) {
				t.Errorf("stop gives %v", err)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		d := open(t, startHasty(t, "silent", t.TempDir()), "silent")
		begun := time.Now()
		if _, err := d.Stats(context.Background(), "x"); !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("stats gives %v", err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("flooder", func(t *testing.T) {
		d := open(t, start(t, "flooder", t.TempDir()), "flooder")
		handles, err := d.(driver.Lister).List(context.Background())
		if !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("an answer of 8 MB gives %d handles, %v", len(handles), err)
		}
	})
}

func TestRefusedPlugins(t *testing.T) {
	sum := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		digest := sha256.Sum256(data)
		return hex.EncodeToString(digest[:])
	}
	cases := map[string]struct {
		spoil func(t *testing.T, dir string, each *host.PluginConfig)
		want  string
	}{
		"traversal":      {func(_ *testing.T, _ string, p *host.PluginConfig) { p.Name = "../quitter" }, "as a name"},
		"upper case":     {func(_ *testing.T, _ string, p *host.PluginConfig) { p.Name = "Quitter" }, "as a name"},
		"missing":        {func(_ *testing.T, _ string, p *host.PluginConfig) { p.Name = "nobody" }, "no such file"},
		"wrong pin":      {func(_ *testing.T, _ string, p *host.PluginConfig) { p.SHA256 = strings.Repeat("0", 64) }, "SHA-256"},
		"malformed pin":  {func(_ *testing.T, _ string, p *host.PluginConfig) { p.SHA256 = "abc" }, "hexadecimal"},
		"writable dir":   {func(t *testing.T, dir string, _ *host.PluginConfig) { chmod(t, dir, 0o777) }, "write"},
		"foreign owner":  {func(t *testing.T, dir string, _ *host.PluginConfig) { replace(t, dir, 0o755, "\x7fELF", 12345) }, "belongs"},
		"writable file":  {func(t *testing.T, dir string, _ *host.PluginConfig) { replace(t, dir, 0o775, "\x7fELF", -1) }, "write"},
		"not executable": {func(t *testing.T, dir string, _ *host.PluginConfig) { replace(t, dir, 0o644, "\x7fELF", -1) }, "executable"},
		"script":         {func(t *testing.T, dir string, _ *host.PluginConfig) { replace(t, dir, 0o755, "#!/bin/sh\n", -1) }, "script"},
		"link": {func(t *testing.T, dir string, _ *host.PluginConfig) {
			must(t, os.Remove(filepath.Join(dir, "quitter")))
			must(t, os.Symlink("/bin/true", filepath.Join(dir, "quitter")))
		}, "plain file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if name == "foreign owner" && os.Geteuid() != 0 {
				t.Log("only root can give files away: the owner of /proc/1 stands in")
				return
			}
			dir := install(t, "quitter")
			each := host.PluginConfig{Name: "quitter"}
			c.spoil(t, dir, &each)
			h, err := host.New(host.Config{PluginDir: dir, RunDir: shortDir(t), Plugins: []host.PluginConfig{each}})
			if err == nil {
				h.Close()
				t.Fatal("it is accepted")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want %q in it", err, c.want)
			}
		})
	}
	t.Run("right pin", func(t *testing.T) {
		dir := install(t, "quitter")
		h, err := host.New(host.Config{
			PluginDir: dir, RunDir: shortDir(t),
			Plugins: []host.PluginConfig{{Name: "quitter", SHA256: sum(filepath.Join(dir, "quitter"))}},
		})
		must(t, err)
		h.Close()
	})
}

func TestRegister(t *testing.T) {
	h, err := host.New(host.Config{})
	must(t, err)
	d, err := exec.New(exec.Config{StateDir: t.TempDir(), Spares: -1})
	must(t, err)
	defer d.Close()
	must(t, h.Register(exec.Name, d))
	if err := h.Register(exec.Name, d); err == nil {
		t.Error("a name can be taken twice")
	}
	if got, err := h.Driver(exec.Name); err != nil || got != driver.Driver(d) {
		t.Errorf("driver is %v, %v", got, err)
	}
	if _, err := h.Driver("nobody"); !errors.Is(err, host.ErrNoDriver) {
		t.Errorf("unknown driver gives %v", err)
	}
	if names := h.Names(); len(names) != 1 || names[0] != exec.Name {
		t.Errorf("names are %v", names)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must(t, os.Chmod(path, mode))
}

// replace writes another file in the plugin's place.
func replace(t *testing.T, dir string, mode os.FileMode, text string, owner int) {
	t.Helper()
	path := filepath.Join(dir, "quitter")
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, []byte(text), mode))
	chmod(t, path, mode)
	if owner >= 0 {
		must(t, os.Chown(path, owner, owner))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
