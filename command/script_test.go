package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"nomadlike/agent"
	"nomadlike/agent/config"
	_ "nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/internal/orphans"
	"nomadlike/nomadlike/api"
	"nomadlike/plugins/exec/supervisor"
	"nomadlike/plugins/exec/supervisor/supervisortest"
)

// TestMain lets the test program stand in for the binary: as the command
// `nomadlike` of scripts, and as the supervisor of tasks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Argument {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "task-procs" { // of a task, which runs the agent's own program
		os.Exit(Main(os.Args[1:]))
	}
	testscript.Main(tidy{m}, map[string]func(){
		"nomadlike": func() { os.Exit(Main(os.Args[1:])) },
	})
}

// tidy runs the tests and ends what they left running.
type tidy struct{ *testing.M }

func (m tidy) Run() int {
	built, err := supervisortest.Build()
	if err != nil {
		panic(err)
	}
	defer built.Remove()
	supervise = built.Command()
	code := m.M.Run()
	if program, err := exec.LookPath("nomadlike"); err == nil { // a link to this program, for the scripts
		orphans.End(supervisor.Argument, program)
	}
	return code
}

// supervise starts a supervisor, which is the program that users have.
var supervise []string

// scriptPatience bounds what a script waits for.
const scriptPatience = 20 * time.Second

// TestScripts runs testdata/script/*.txtar: what a person types, and what
// they see. Besides the commands of testscript there are:
//
//	cluster [DIR]             start a development agent of the script's own, with a storage in the directory;
//	                          tasks, which are not the agent's user, may read and write below $SHARED, and keep what is there;
//	                          the command line is logged in to the one that was started last
//	cutting BYTES             set CUT to an address of the agent whose connections break after so many bytes of answer
//	node NAME FILE            start another node, with this configuration
//	gitserver DIR             serve the bare repositories of a directory over HTTP, at $GIT; without DIR the server goes away
//	alone NAME                build the command line alone, as it is for laptops, and put it on the path under the name
//	exits CODE PROGRAM ARG... run a program that must exit with the code
//	until RE PROGRAM ARG...   run a program again and again until its standard output matches
//	isjson [FILE]             the file, or the last standard output, is one JSON value or one a line
//	lines N [FILE]            it has so many lines
//	events RE ARG...          follow events until a line matches, then interrupt the command
//	remember NAME             set a variable to the last standard output, without its line end
//	prints FILE               what was printed last is what the file shows, with … for what varies
func TestScripts(t *testing.T) {
	testscript.Run(t, scriptParams(t, filepath.Join("testdata", "script")))
}

// scriptParams are those of the scripts in a directory.
func scriptParams(t *testing.T, dir string) testscript.Params {
	t.Helper()
	examples, err := filepath.Abs("../website/examples")
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("NOMADLIKE_CONFIG_DIR", filepath.Join(env.WorkDir, "config"))
			env.Setenv("LANG", "C")
			env.Setenv("LC_ALL", "")
			env.Setenv("EXAMPLES", examples)
			env.Setenv("TZ", "UTC")
			env.Setenv("ESC", "\x1b")
			return os.Chmod(filepath.Dir(env.WorkDir), 0o711) // tasks of other users pass through it
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cluster": startCluster, "node": joinNode, "exits": exits, "until": until, "isjson": isJSON, "lines": countLines, "remember": remember,
			"events": followEvents, "cutting": cutting, "alone": buildAlone, "prints": prints, "gitserver": serveGit,
		},
		UpdateScripts: flag.Lookup("rewrite").Value.String() == "true", // of package golden
	}
}

// startCluster starts a development agent inside the test program. The
// script's command line is logged in to it.
func startCluster(ts *testscript.TestScript, _ bool, args []string) {
	zero, yes, loopback := 0, true, "127.0.0.1"
	shared := ts.MkAbs("shared")
	ts.Check(os.MkdirAll(shared, 0o755))
	ts.Check(os.Chmod(shared, 0o777|os.ModeSticky))
	ts.Setenv("SHARED", shared)
	// Tasks do not see a clone that lies below /tmp, which each has of its own.
	examples := filepath.Join(shared, "examples")
	if from := ts.Getenv("EXAMPLES"); from != examples { // of the first cluster
		ts.Check(os.CopyFS(examples, os.DirFS(from)))
	}
	ts.Setenv("EXAMPLES", examples)
	settings := config.Settings{
		Dev: &yes, Bind: &loopback, Ports: &config.PortsBlock{HTTP: &zero, Gossip: &zero},
		Client: &config.ClientBlock{Exec: &config.ExecBlock{Writable: []string{shared}}},
	}
	if len(args) == 1 {
		settings.Client.Storages = []config.StorageBlock{{Name: "nas", Path: ts.MkAbs(args[0]) + "/{kind}"}}
	}
	config, err := config.Load(nil, settings, messages.English)
	ts.Check(err)
	running := startAgent(ts, config)
	ts.Setenv("ADDR", "https://"+running.Addr())
	ts.Setenv("NODE", running.ID())
	ca := filepath.Join(ts.Getenv("WORK"), "ca.pem")
	ts.Check(os.WriteFile(ca, running.CA(), 0o600))
	ts.Setenv("CA", ca)
	saved, err := api.LoadContext(ts.Getenv("NOMADLIKE_CONFIG_DIR"))
	ts.Check(err)
	ts.Setenv("ADMIN", saved.Token)
}

// buildAlone builds the program without an agent in it.
func buildAlone(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: alone NAME")
	}
	dir := ts.MkAbs("alone")
	build := exec.Command("go", "build", "-tags", "cli", "-o", filepath.Join(dir, args[0]), "nomadlike")
	if out, err := build.CombinedOutput(); err != nil {
		ts.Fatalf("build the command line: %v\n%s", err, out)
	}
	ts.Setenv("PATH", dir+string(filepath.ListSeparator)+ts.Getenv("PATH"))
}

// TestOtherSystems builds the command line for the laptops that people have.
func TestOtherSystems(t *testing.T) {
	build := exec.Command("go", "build", "-o", filepath.Join(t.TempDir(), "nomadlike"), "nomadlike")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=darwin", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("build for macOS: %v\n%s", err, out)
	}
}

// cutting stands between the command line and the agent, and breaks every
// connection once it has carried so many bytes from the agent.
func cutting(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: cutting BYTES")
	}
	most, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var carrying sync.WaitGroup
	ts.Defer(func() { l.Close(); carrying.Wait() })
	to := strings.TrimPrefix(ts.Getenv("ADDR"), "https://")
	carrying.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			carrying.Go(func() { _, _ = io.Copy(far, near); far.Close() })
			carrying.Go(func() { _, _ = io.CopyN(near, far, most); near.Close(); far.Close() })
		}
	})
	ts.Setenv("CUT", "https://"+l.Addr().String())
}

// joinNode starts a client inside the test program and waits until it takes
// work.
func joinNode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: node NAME FILE")
	}
	zero, yes, loopback := 0, true, "127.0.0.1"
	dir := filepath.Join(ts.Getenv("WORK"), "node-"+args[0])
	saved, err := api.LoadContext(ts.Getenv("NOMADLIKE_CONFIG_DIR"))
	ts.Check(err)
	admin, err := api.New(api.Config{Address: saved.Address, Token: ts.Getenv("ADMIN"), CAPEM: []byte(saved.CA)})
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	token, err := admin.CreateJoinToken(ctx, api.JoinTokenRequest{Role: "client"})
	ts.Check(err)
	settings := config.Settings{
		Name: &args[0], DataDir: &dir, JoinToken: &token.Join, Bind: &loopback, Ports: &config.PortsBlock{HTTP: &zero, Gossip: &zero},
		Client: &config.ClientBlock{Enabled: &yes},
	}
	config, err := config.Load([]string{ts.MkAbs(args[1])}, settings, messages.English)
	ts.Check(err)
	startAgent(ts, config)
	until(ts, false, []string{"^ready$", "nomadlike", "node", "status", "-t", "{{.Status}}", args[0]})
}

// startAgent starts an agent that stops with the script.
func startAgent(ts *testscript.TestScript, config config.Config) *agent.Agent {
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	running, err := agent.Start(ctx, config, agent.Options{
		Log: slog.New(slog.DiscardHandler), Getenv: ts.Getenv, Version: "test",
		Supervisor: supervise,
	})
	ts.Check(err)
	ts.Defer(func() {
		ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
		defer cancel()
		if err := running.Stop(ctx); err != nil {
			ts.Logf("stop agent: %v", err)
		}
	})
	return running
}

// exits runs a program and checks its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		got = failed.ExitCode()
	} else if err != nil {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s exited with %d, not with %d", strings.Join(args[1:], " "), got, want)
	}
}

// until runs a program until what it prints matches.
func until(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until RE PROGRAM ARG...")
	}
	wanted, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	deadline := time.NewTimer(scriptPatience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := ts.Exec(args[1], args[2:]...); err == nil && wanted.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			ts.Fatalf("%s did not print %s in time", strings.Join(args[1:], " "), args[0])
		}
	}
}

// followEvents runs `nomadlike event stream` until a line matches, and leaves
// it as a person does.
func followEvents(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: events RE ARG...")
	}
	wanted, err := regexp.Compile(args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	program := exec.CommandContext(ctx, "nomadlike", append([]string{"event", "stream"}, args[1:]...)...)
	for _, name := range []string{"NOMADLIKE_CONFIG_DIR", "NOMADLIKE_LANG", "LANG", "TZ", "PATH", "HOME"} {
		program.Env = append(program.Env, name+"="+ts.Getenv(name))
	}
	var complaints strings.Builder
	program.Stderr = &complaints
	output, err := program.StdoutPipe()
	ts.Check(err)
	ts.Check(program.Start())
	lines, found := bufio.NewScanner(output), false
	for !found && lines.Scan() {
		fmt.Fprintln(ts.Stdout(), lines.Text())
		found = wanted.MatchString(lines.Text())
	}
	ts.Check(program.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, output) // until it has closed its end
	var failed *exec.ExitError
	err = program.Wait()
	switch {
	case !found:
		ts.Fatalf("no event matches %s: %s", args[0], complaints.String())
	case !errors.As(err, &failed) || failed.ExitCode() != ExitInterrupted:
		ts.Fatalf("interrupted: %v", err)
	case complaints.Len() > 0:
		ts.Fatalf("interrupted, it said: %s", complaints.String())
	}
}

func isJSON(ts *testscript.TestScript, _ bool, args []string) {
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(fileOr(args, 0))))
	values := 0
	for decoder.More() {
		var value any
		if err := decoder.Decode(&value); err != nil {
			ts.Fatalf("not JSON: %v", err)
		}
		values++
	}
	if values == 0 {
		ts.Fatalf("there is no JSON")
	}
}

func countLines(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: lines N [FILE]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := strings.Count(ts.ReadFile(fileOr(args, 1)), "\n"); got != want {
		ts.Fatalf("%d lines, not %d", got, want)
	}
}

func remember(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: remember NAME")
	}
	ts.Setenv(args[0], strings.TrimSuffix(ts.ReadFile("stdout"), "\n"))
}

func fileOr(args []string, index int) string {
	if index < len(args) {
		return args[index]
	}
	return "stdout"
}

func ExampleRun() {
	env := &Env{
		Context: context.Background(), Stdin: strings.NewReader(""), Stdout: &Screen{Writer: os.Stdout}, Stderr: &Screen{Writer: os.Stdout},
		Getenv: func(string) string { return "" }, Language: messages.English,
	}
	code := Run(env, []string{"job", "stauts"})
	fmt.Println(code)
	// Output:
	// error: there is no command "job stauts"
	//   did you mean "job status"?
	// 2
}
