package exec_test

import (
	"context"
	"errors"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/exec/supervisor"
)

func asRoot(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return true
	}
	t.Log("needs root: not run")
	return false
}

func TestHostNameAndHosts(t *testing.T) {
	if !asRoot(t) {
		return
	}
	before, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	d := open(t)
	spec := drivertest.Shell(t, `hostname; cat /etc/hostname; head -2 /etc/hosts; getent hosts digits-1-1 | tr -s ' '; getent hosts localhost >/dev/null && echo loopback; ls `+stateDir(t, d)+`/tasks`)
	spec.Hostname = "digits-1-0"
	spec.Hosts = []string{"10.1.2.2 digits-1-0", "10.1.2.3 digits-1-1"}
	drivertest.Start(t, d, spec)
	drivertest.Wait(t, d, spec.ID)
	want := "digits-1-0\ndigits-1-0\n10.1.2.2 digits-1-0\n10.1.2.3 digits-1-1\n10.1.2.3 digits-1-1\nloopback\n"
	if out := drivertest.Log(t, spec, tasklog.Stdout); out != want {
		t.Errorf("task sees %q, want %q", out, want)
	}
	if after, _ := os.Hostname(); after != before {
		t.Errorf("the node is called %q now", after)
	}
	now, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(now)) {
		// Others may mount something meanwhile.
		if !strings.Contains(string(mounts), line) && (strings.Contains(line, stateDir(t, d)) || strings.Contains(line, "/etc/")) {
			t.Errorf("the node has a new mount: %s", line)
		}
	}
}

func TestExecSeesTheTasksHostName(t *testing.T) {
	if !asRoot(t) {
		return
	}
	d := open(t)
	spec := drivertest.Spec(t)
	spec.Hold, spec.Hostname = true, "mpi-1-3"
	drivertest.Start(t, d, spec)
	var out strings.Builder
	result, err := d.Exec(context.Background(), spec.ID, driver.ExecSpec{Command: []string{"hostname"}}, driver.Streams{Stdout: &out})
	if err != nil || result.Code != 0 || out.String() != "mpi-1-3\n" {
		t.Errorf("exec gives %+v, %v, %q", result, err, out.String())
	}
}

func TestUser(t *testing.T) {
	if !asRoot(t) {
		return
	}
	d := open(t)
	t.Run("by name", func(t *testing.T) {
		spec := drivertest.Shell(t, "id -u; id -g; id -G")
		spec.User, spec.Dir = "nobody", "/"
		drivertest.Start(t, d, spec)
		drivertest.Wait(t, d, spec.ID)
		if out := drivertest.Log(t, spec, tasklog.Stdout); out != "65534\n65534\n65534\n" {
			t.Errorf("ids are %q", out)
		}
	})
	t.Run("may not enter its directory", func(t *testing.T) {
		spec := drivertest.Shell(t, "true")
		spec.User = "nobody" // and the directory is root's, mode 0700 above it
		_, err := d.Start(context.Background(), spec)
		var start *driver.StartError
		if !errors.As(err, &start) || start.ExitCode != 126 || start.Err.ID != "driver.command_denied" {
			t.Errorf("start gives %v", err)
		}
	})
	t.Run("by number, in a terminal", func(t *testing.T) {
		spec := drivertest.Spec(t)
		spec.Hold, spec.User, spec.Dir = true, "65534", "/"
		drivertest.Start(t, d, spec)
		var out strings.Builder
		command := driver.ExecSpec{Command: []string{"/bin/sh", "-c", "id -u; : >$(tty) && echo may open it"}, TTY: true}
		if _, err := d.Exec(context.Background(), spec.ID, command, driver.Streams{Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		if out.String() != "65534\r\nmay open it\r\n" {
			t.Errorf("terminal shows %q", out.String())
		}
	})
	t.Run("two numbers that the node knows no user of", func(t *testing.T) {
		d := isolated(t, func(c *exec.Config) { c.View, c.Hidden = exec.ViewByUser, []string{"/opt"} })
		if d == nil {
			return
		}
		spec := drivertest.Shell(t, "id; pwd; touch mine && echo mine; touch /etc/x 2>/dev/null || echo read-only; ls /root; df -k /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f2")
		spec.User, spec.Env, spec.Resources.Memory = "1879048193:1879048193", append(spec.Env, "USER=li"), 96<<20
		if err := os.Chown(spec.TaskDir, 1879048193, 1879048193); err != nil {
			t.Fatal(err)
		}
		if out := output(t, d, spec); out != "uid=1879048193(li) gid=1879048193 groups=1879048193\n"+spec.TaskDir+"\nmine\nread-only\n98304\n" {
			t.Errorf("the task says %q", out)
		}
	})
	t.Run("its log directory is out of its reach", func(t *testing.T) {
		spec := drivertest.Shell(t, "touch $LOGS/stdout.7; ls $LOGS; ln -s /etc/shadow $LOGS/stdout.1; true")
		spec.User, spec.Dir = "nobody", "/"
		spec.Env = []string{"LOGS=" + spec.LogDir}
		drivertest.Start(t, d, spec)
		drivertest.Wait(t, d, spec.ID)
		if out := drivertest.Log(t, spec, tasklog.Stderr); strings.Count(out, "Permission denied") != 3 {
			t.Errorf("task was told %q", out)
		}
	})
}

// TestLogLinkAttack plays a task that runs as the agent's own user and so
// could change its log directory: reading must follow no link out of it.
func TestLogLinkAttack(t *testing.T) {
	d := open(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := drivertest.Shell(t, `rm $LOGS/stdout.0; ln -s $SECRET $LOGS/stdout.0; mkfifo $LOGS/stderr.0
		head -c 10000 /dev/zero | tr '\0' x; head -c 10000 /dev/zero >&2`)
	spec.Env = []string{"LOGS=" + spec.LogDir, "SECRET=" + secret}
	spec.LogRotation = driver.LogRotation{MaxFiles: 2, MaxBytes: driver.LogFileBytesMin}
	if err := os.Mkdir(spec.LogDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(spec.LogDir, "stdout.0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	drivertest.Start(t, d, spec)
	if result := drivertest.Wait(t, d, spec.ID); result.Code != 0 {
		t.Fatalf("result is %+v", result)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("the link's target is %q, %v", text, err)
	}
	for _, stream := range []string{tasklog.Stdout, tasklog.Stderr} {
		err := tasklog.Read(context.Background(), tasklog.Request{Dir: spec.LogDir, Stream: stream}, func(c tasklog.Chunk) error {
			if strings.Contains(string(c.Data), "secret") {
				t.Errorf("%s gives the secret away", stream)
			}
			return nil
		})
		if err != nil {
			t.Logf("%s: %v", stream, err)
		}
	}
}

func TestControlSocketIsPrivate(t *testing.T) {
	d := open(t)
	spec := drivertest.Shell(t, "exec sleep 1000")
	drivertest.Start(t, d, spec)
	path := filepath.Join(stateDir(t, d), "tasks", string(spec.ID)+supervisor.SocketSuffix)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("socket is %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory is %v, %v", info, err)
	}
	if !asRoot(t) {
		return
	}
	// Even somebody who got to the socket is refused by his user id.
	short, err := os.MkdirTemp("", "sock")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	reachable := filepath.Join(short, "s")
	for _, step := range []error{os.Chmod(short, 0o755), os.Link(path, reachable), os.Chmod(reachable, 0o666)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	ask := func(credential *syscall.Credential) string {
		command := osexec.Command("/usr/bin/python3", "-c", `
import json, socket, struct, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1])
body = b'{"op":"stats"}'
try:
    s.sendall(struct.pack(">I", len(body)) + body)
    print(len(s.recv(4)))
except OSError:
    print(0)
`, reachable)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := ask(&syscall.Credential{Uid: 65534, Gid: 65534}); got != "0" {
		t.Errorf("a stranger gets %s bytes", got)
	}
	if got := ask(nil); got != "4" {
		t.Errorf("the owner gets %s bytes", got)
	}
}

func TestControlSocketTakesNonsense(t *testing.T) {
	d := open(t)
	spec := drivertest.Shell(t, "exec sleep 1000")
	drivertest.Start(t, d, spec)
	t.Chdir(filepath.Join(stateDir(t, d), "tasks"))
	for name, message := range map[string]string{
		"huge":         "\xff\xff\xff\xff",
		"no json":      "\x00\x00\x00\x03abc",
		"unknown op":   "\x00\x00\x00\x0c{\"op\":\"rob\"}",
		"second start": "\x00\x00\x00\x0e{\"op\":\"start\"}",
		"bare exec":    "\x00\x00\x00\x2b{\"op\":\"exec\",\"exec\":{\"command\":[\"/bin/id\"]}}",
		"bad signal":   "\x00\x00\x00\x1b{\"op\":\"signal\",\"signal\":999}",
		"cut":          "\x00\x00\x00\xff{",
	} {
		connection, err := net.Dial("unix", string(spec.ID)+supervisor.SocketSuffix)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := connection.Write([]byte(message)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		connection.Close()
	}
	if usage, err := d.Stats(context.Background(), spec.ID); err != nil || usage.Processes != 1 {
		t.Errorf("afterwards stats are %+v, %v", usage, err)
	}
}

func TestLogRotation(t *testing.T) {
	d := open(t)
	spec := drivertest.Shell(t, `i=0; while [ $i -lt 5000 ]; do echo "line $i"; i=$((i+1)); done`)
	spec.LogRotation = driver.LogRotation{MaxFiles: 3, MaxBytes: 4096}
	drivertest.Start(t, d, spec)
	drivertest.Wait(t, d, spec.ID)
	files, err := filepath.Glob(filepath.Join(spec.LogDir, "stdout.[0-9]*"))
	if err != nil || len(files) != 3 {
		t.Errorf("files are %v, %v", files, err)
	}
	var lost int64
	var text strings.Builder
	err = tasklog.Read(context.Background(), tasklog.Request{Dir: spec.LogDir, Stream: tasklog.Stdout}, func(c tasklog.Chunk) error {
		lost += c.Lost
		text.Write(c.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for i := range 5000 {
		total += len("line \n") + len(itoa(i))
	}
	if lost+int64(text.Len()) != int64(total) || !strings.HasSuffix(text.String(), "line 4998\nline 4999\n") {
		t.Errorf("%d lost, %d kept, of %d", lost, text.Len(), total)
	}
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return itoa(i/10) + itoa(i%10)
}

func TestNotAsRoot(t *testing.T) {
	if !asRoot(t) {
		return
	}
	if testing.Short() {
		t.Skip("the contract once more, as another user: half of the time of all tests")
	}
	// The same tests, as an ordinary user: everything works but names,
	// other users and cgroups.
	dir, err := os.MkdirTemp("", "user")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "test")
	data, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := osexec.Command(program, "-test.run", "TestContract$|TestKilledAgent|TestDeniedUser|TestPlainHostName", "-test.short")
	run.Dir = dir
	run.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDeniedUser(t *testing.T) {
	if os.Geteuid() == 0 {
		return // run by TestNotAsRoot
	}
	d := open(t)
	spec := drivertest.Shell(t, "true")
	spec.User = "root"
	_, err := d.Start(context.Background(), spec)
	if err == nil || !strings.Contains(err.Error(), "driver.user_denied") {
		t.Errorf("start gives %v", err)
	}
}

func TestPlainHostName(t *testing.T) {
	if os.Geteuid() == 0 {
		return // run by TestNotAsRoot
	}
	d := open(t, func(c *exec.Config) { c.Isolation = exec.IsolationRaw })
	spec := drivertest.Shell(t, "echo runs")
	spec.Hostname = "digits-1-0"
	handle := drivertest.Start(t, d, spec)
	drivertest.Wait(t, d, spec.ID)
	if out := drivertest.Log(t, spec, tasklog.Stdout); out != "runs\n" {
		t.Errorf("log is %q", out)
	}
	if notes := stateOf(t, handle).Notes; len(notes) != 1 || !strings.Contains(notes[0], "no namespaces") {
		t.Errorf("notes are %q", notes)
	}
}
