package taskinit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/plugins/driver/taskproc"
)

// pair returns two connected ends.
func pair(t *testing.T) (*Conn, *Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*Conn
	for i, fd := range fds {
		if ends[i], err = NewConn(fd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ends[i].Close)
	}
	return ends[0], ends[1]
}

func TestMessagesWithDescriptors(t *testing.T) {
	a, b := pair(t)
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer taskproc.CloseAll(pipe[:])
	env := []string{strings.Repeat("x", 1<<20)}
	go func() {
		_ = a.Send(Report{Started: &Started{Protocol: Protocol}}, pipe[:]...) // seen by what is received
		_ = a.Send(order{Spec: &Spec{Env: env}})
	}()
	var report Report
	descriptors, err := b.Receive(&report)
	if err != nil || len(descriptors) != 2 || report.Started == nil {
		t.Fatalf("received %+v with %v, %v", report, descriptors, err)
	}
	if _, err := syscall.Write(descriptors[1], []byte("through")); err != nil {
		t.Fatal(err)
	}
	var text [7]byte
	if _, err := syscall.Read(pipe[0], text[:]); err != nil || string(text[:]) != "through" {
		t.Errorf("the pipe gives %q, %v", text, err)
	}
	taskproc.CloseAll(descriptors)
	var o order
	if descriptors, err := b.Receive(&o); err != nil || len(descriptors) != 0 || o.Spec == nil || len(o.Spec.Env[0]) != 1<<20 {
		t.Errorf("received with %v, %v", descriptors, err)
	}
	a.Close()
	if _, err := b.Receive(&o); err == nil {
		t.Error("a closed connection gives a message")
	}
	long, _ := pair(t)
	if err := long.Send(Spec{Env: []string{strings.Repeat("x", MessageBytesMax)}}); err == nil {
		t.Error("a message that is too long is sent")
	}
}

func TestKillsIn(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"memory/docker/x/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
		"system.slice/y/memory.events":       "low 0\noom 2\noom_kill 2\noom_group_kill 0\n",
		"unified/z/memory.events":            "oom_kill 1\n",
	} {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for membership, want := range map[string]int64{
		"9:pids:/docker/x\n4:memory:/docker/x\n0::/docker/x\n": 3, "0::/system.slice/y\n": 2, "0::/z\n": 1, "0::/none\n": 0, "": 0, "a:b\n": 0,
	} {
		if got := killsIn(root, membership); got != want {
			t.Errorf("%q has %d kills, want %d", membership, got, want)
		}
	}
}

func TestExitRecords(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadExit(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	want := &Exit{Code: 137, Signal: 9, OOMKills: 2, Unkillable: []int{3}}
	if err := WriteExit(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadExit(dir)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if err := os.WriteFile(dir+"/"+ExitFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadExit(dir); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a damaged record gives %v", err)
	}
}

func TestStartTicks(t *testing.T) {
	if ticks := startTicks(os.Getpid()); ticks <= 0 || !Alive(os.Getpid(), ticks) || Alive(os.Getpid(), ticks+1) || Alive(0, 0) {
		t.Errorf("this process started at %d", ticks)
	}
}

// TestStartedByHand makes sure that nobody runs an init on the node, where it
// would kill everything.
// An init that is killed closes its connection long before it is gone where its namespace
// takes time to die, and nobody tells of its end but the keeper. One that comes back goes on.
func TestInitThatDiesSlowly(t *testing.T) {
	process := exec.Command("sleep", "600")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() }) // it may be dead
	k := &keeper{done: make(chan *Exit, 1), first: make(chan struct{})}
	k.mu.watchers = make(map[*Conn]bool)
	k.mu.initPID, k.mu.ticks = process.Process.Pid, startTicks(process.Process.Pid)
	inits := make(chan *Conn)
	go k.attendInits(inits)
	for range 2 {
		link, init := pair(t)
		inits <- link // taken after the end of the one before, too
		init.Close()
	}
	select {
	case exit := <-k.done:
		t.Fatalf("the init lives, and is said to have ended with %+v", exit)
	case <-time.After(4 * againPause):
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	select {
	case exit := <-k.done:
		if !exit.Vanished || exit.Code != 137 {
			t.Errorf("the end is %+v", exit)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody tells of the end of the init")
	}
}

func TestStartedByHand(t *testing.T) {
	if code := Main(nil); code != codeBroken {
		t.Errorf("an init outside of a container ends with %d", code)
	}
	if code := Main([]string{"x", "y"}); code != 2 {
		t.Errorf("unknown arguments end with %d", code)
	}
}
