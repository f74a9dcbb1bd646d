package nvmltest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
)

// mpsScript stands in for nvidia-cuda-mps-control: with -d it becomes a daemon
// that keeps its number with its pipes, without it answers commands.
const mpsScript = `#!/bin/sh
pipes=$CUDA_MPS_PIPE_DIRECTORY
case "$1" in
--serve)
	echo $$ >"$pipes/nvidia-cuda-mps-control.pid"
	trap 'exit 0' TERM
	while :; do sleep 1 & wait $!; done ;;
-d)
	test -e "$0.refuses" && exit 1
	setsid "$0" --serve </dev/null >/dev/null 2>&1 &
	until test -s "$pipes/nvidia-cuda-mps-control.pid" && kill -0 "$(cat "$pipes/nvidia-cuda-mps-control.pid")"; do sleep 0.02; done 2>/dev/null ;;
'')
	read -r command server
	echo "$command" >>"$0.asked"
	case "$command" in
	get_server_list) test -s "$0.clients" && echo 77 ;;
	get_client_list) cat "$0.clients" ;;
	quit) kill "$(cat "$pipes/nvidia-cuda-mps-control.pid")"; rm "$pipes/nvidia-cuda-mps-control.pid" ;;
	*) exit 2 ;;
	esac
	exit 0 ;;
esac
`

// MPS stands in for NVIDIA's multi-process service.
type MPS struct {
	Program string // nvidia-cuda-mps-control
	Pipes   string // where its daemon has its pipes
}

// NewMPS writes the program; what it has started is ended with the test.
func NewMPS(t testing.TB) *MPS {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "mps")
	if err != nil {
		t.Fatal(err)
	}
	m := &MPS{Program: filepath.Join(dir, "nvidia-cuda-mps-control"), Pipes: filepath.Join(dir, "pipes")}
	if err := os.WriteFile(m.Program, []byte(mpsScript), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid := m.Running(); pid > 0 {
			_ = syscall.Kill(-pid, syscall.SIGKILL) // its session's group; gone already is fine
		}
		os.RemoveAll(dir)
	})
	return m
}

// Running returns the number of the daemon that runs, 0: none.
func (m *MPS) Running() int {
	text, err := os.ReadFile(filepath.Join(m.Pipes, "nvidia-cuda-mps-control.pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(line), m.Program) {
		return 0
	}
	return pid
}

// Await waits until a daemon runs and returns its number.
func (m *MPS) Await(t testing.TB) int {
	t.Helper()
	eventually.Within(t, 20*time.Second, "the MPS daemon runs", func() bool { return m.Running() > 0 })
	return m.Running()
}

// Environment returns a variable that a process was started with.
func (m *MPS) Environment(t testing.TB, pid int, name string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	for each := range strings.SplitSeq(string(text), "\x00") {
		if value, found := strings.CutPrefix(each, name+"="); found {
			return value
		}
	}
	return ""
}

// Clients says which processes use the daemon now.
func (m *MPS) Clients(t testing.TB, pids ...int) {
	t.Helper()
	var text strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&text, pid)
	}
	if err := os.WriteFile(m.Program+".clients", []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Asked reports how often the daemon was asked for the processes that use it.
func (m *MPS) Asked(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(m.Program + ".asked")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "get_client_list")
}

// Refuse keeps a daemon from being started, or no more.
func (m *MPS) Refuse(t testing.TB, refuse bool) {
	t.Helper()
	path := m.Program + ".refuses"
	err := os.Remove(path)
	if refuse {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}
