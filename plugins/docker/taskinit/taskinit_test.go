package taskinit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOverlay(t *testing.T) {
	got := Overlay([]string{"A=1", "B=2", "C=3"}, []string{"B=x", "D=4", "D=5"})
	if diff := cmp.Diff([]string{"A=1", "C=3", "B=x", "D=5"}, got); diff != "" {
		t.Error(diff)
	}
}

// pair gives two connected ends.
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
	defer CloseAll(pipe[:])
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
	CloseAll(descriptors)
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

func FuzzReceive(f *testing.F) {
	frame := func(body string) []byte {
		header := make([]byte, headerBytes)
		binary.BigEndian.PutUint32(header, uint32(len(body)))
		return append(header, body...)
	}
	f.Add(frame(`{"hello":true}`))
	f.Add(frame(`{"exit":{"code":-1,"unkillable":[1]}}`))
	f.Add([]byte{255, 255, 255, 255, '{'})
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var header [headerBytes]byte
		if n := copy(header[:], data); n < headerBytes {
			return
		}
		body, err := readBody(bytes.NewReader(data[headerBytes:]), header)
		if err == nil && len(body) > MessageBytesMax {
			t.Errorf("a body has %d bytes", len(body))
		}
	})
}

func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run": 0o755, "data": 0o644, "script": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/no/such/sh -x\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=/no:" + dir}
	for name, want := range map[string]string{
		"run": "", "./run": "", dir + "/run": "", "data": "command_not_executable", "none": "command_not_found", "./none": "command_missing",
		"/": "command_not_executable", "run/x": "command_missing",
	} {
		path, failure := findProgram(name, dir, env)
		got := ""
		if failure != nil {
			got = failure.Kind
		}
		if got != want || want == "" && path != filepath.Join(dir, "run") {
			t.Errorf("%s is %q, %q; want %q", name, path, got, want)
		}
	}
	if f := explain("script", dir+"/script", dir, syscall.ENOENT); f.Kind != "interpreter_missing" || f.Params["interpreter"] != "/no/such/sh" {
		t.Errorf("failure is %v", f)
	}
	if f := explain("run", dir+"/run", dir, syscall.ENOMEM); f.ExitCode != 0 {
		t.Errorf("a node without memory is the command's fault: %v", f)
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
func TestStartedByHand(t *testing.T) {
	if code := Main(nil); code != codeBroken {
		t.Errorf("an init outside of a container ends with %d", code)
	}
	if code := Main([]string{"x", "y"}); code != 2 {
		t.Errorf("unknown arguments end with %d", code)
	}
}
