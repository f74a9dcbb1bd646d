package exec_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/exec/supervisor/supervisortest"
)

// builtSupervisor is the program that releases embed.
func builtSupervisor(t testing.TB) []string {
	t.Helper()
	program, err := supervisortest.Build()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(program.Remove)
	return program.Command()
}

func TestContractWithSmallSupervisor(t *testing.T) {
	small := builtSupervisor(t)
	drivertest.Run(t, func(t *testing.T) driver.Driver {
		return open(t, func(c *exec.Config) { c.Supervisor = small })
	})
}

func TestShutdownOfTheMachine(t *testing.T) {
	d := open(t)
	spec := drivertest.Shell(t, `trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done`)
	spec.KillGrace = time.Minute
	handle := drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	// The init system ends every process with SIGTERM, supervisors included.
	if err := syscall.Kill(stateOf(t, handle).Supervisor.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if result := drivertest.Wait(t, d, spec.ID); result.Code != 7 || result.Err != nil {
		t.Errorf("result is %+v, want 7", result)
	}
	if out := drivertest.Log(t, spec, tasklog.Stdout); out != "ready\nsaved\n" {
		t.Errorf("log is %q", out)
	}
}

// TestUnkillable freezes a process outside of the task's own cgroup, where no
// signal reaches it, as a process that hangs in the kernel.
func TestUnkillable(t *testing.T) {
	const freezer = "/sys/fs/cgroup/freezer"
	if testing.Short() || !asRoot(t) {
		return
	}
	if _, err := os.Stat(freezer); err != nil {
		t.Log("needs the freezer of cgroup version 1: not run")
		return
	}
	group := filepath.Join(freezer, "nomadlike-test-unkillable-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Logf("no cgroup can be made: %v: not run", err)
		return
	}
	put := func(file, text string) {
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0); err != nil {
			t.Error(err)
		}
	}
	d := open(t)
	spec := drivertest.Shell(t, `sleep 1000 & sleep 0.2; echo ready; wait`)
	handle := drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	below, err := proctree.Descendants(stateOf(t, handle).Supervisor.PID)
	if err != nil {
		t.Fatal(err)
	}
	var frozen []int // by the node's numbers; the task knows another
	for _, p := range below {
		if p.Name == "sleep" {
			frozen = append(frozen, p.PID)
		}
	}
	if len(frozen) != 1 {
		t.Fatalf("below the supervisor are %+v", below)
	}
	put("cgroup.procs", strconv.Itoa(frozen[0]))
	put("freezer.state", "FROZEN")
	thawed := false
	thaw := func() {
		if !thawed {
			thawed = true
			put("freezer.state", "THAWED")
			gone(t, "thawed process dies", frozen...)
			if err := os.Remove(group); err != nil {
				t.Error(err)
			}
		}
	}
	defer thaw()
	if err := d.Stop(t.Context(), spec.ID, "", 0); err != nil {
		t.Fatal(err)
	}
	result := drivertest.Wait(t, d, spec.ID)
	if result.Err == nil || result.Err.ID != "driver.unkillable" || result.Err.Params["pids"] != strconv.Itoa(frozen[0]) || result.Signal != "SIGKILL" {
		t.Errorf("result is %+v, want one unkillable process", result)
	}
	// Its supervisor is not used again.
	gone(t, "supervisor ends", stateOf(t, handle).Supervisor.PID)
	thaw()
}
