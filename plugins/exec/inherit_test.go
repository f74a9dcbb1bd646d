package exec_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec"
)

// privileged returns a driver whose supervisors come with what an agent has
// that the system favours.
func privileged(t *testing.T, set string) *exec.Driver {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, func(c *exec.Config) {
		c.Supervisor = []string{"/bin/sh", "-c", set + ` "$0" task-supervisor`, program}
		c.Isolation = exec.IsolationRaw // in a user namespace the shell could not take what agents have
	})
}

// both runs a command line as a task and inside of one, and returns the words
// that it printed in each, and the supervisor.
func both(t *testing.T, d *exec.Driver, line string) (task, inside []string, supervisor int) {
	t.Helper()
	spec := drivertest.Shell(t, line+"; echo ready; exec sleep 1000")
	handle := drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	var out bytes.Buffer
	_, err := d.Exec(t.Context(), spec.ID, driver.ExecSpec{Command: []string{"/bin/sh", "-c", line}}, driver.Streams{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	task = strings.Fields(strings.TrimSuffix(drivertest.Log(t, spec, tasklog.Stdout), "ready\n"))
	return task, strings.Fields(out.String()), stateOf(t, handle).Supervisor.PID
}

func TestNiceValueIsNotInherited(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for value, want := range map[int]string{-7: "0", 0: "0", 5: "5"} {
		task, inside, supervisor := both(t, privileged(t, "exec nice -n "+strconv.Itoa(value)), "nice")
		if len(task) != 1 || len(inside) != 1 || task[0] != want || inside[0] != want {
			t.Errorf("with %d, task has %v, a command inside %v, want %s", value, task, inside, want)
		}
		if raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, supervisor); err != nil || 20-raw != value {
			t.Errorf("supervisor has %d, %v, want %d", 20-raw, err, value)
		}
	}
}

func TestProtectionFromTheEndOfMemoryIsNotInherited(t *testing.T) {
	const path = "/proc/self/oom_score_adj"
	if !asRoot(t) {
		return
	}
	for value, want := range map[int]string{-900: "0", 400: "400"} {
		set := "echo " + strconv.Itoa(value) + " >" + path
		if value < 0 && !mayLower(t, path, value) {
			t.Logf("%d needs CAP_SYS_RESOURCE: not run", value)
			continue
		}
		task, inside, supervisor := both(t, privileged(t, set+"; exec"), "cat "+path)
		if len(task) != 1 || len(inside) != 1 || task[0] != want || inside[0] != want {
			t.Errorf("with %d, task has %v, a command inside %v, want %s", value, task, inside, want)
		}
		if kept, err := os.ReadFile("/proc/" + strconv.Itoa(supervisor) + "/oom_score_adj"); err != nil || strings.TrimSpace(string(kept)) != strconv.Itoa(value) {
			t.Errorf("supervisor has %q, %v, want %d", kept, err, value)
		}
	}
}

// TestProtectedAgentStartsIsolatedTasks has the isolation of tasks from an agent that
// is protected, as the unit for systemd says: the thread that makes tasks has given its
// rights away when it drops what protects the supervisor.
func TestProtectedAgentStartsIsolatedTasks(t *testing.T) {
	const path = "/proc/self/oom_score_adj"
	if !asRoot(t) || !mayLower(t, path, -900) {
		t.Log("a protected agent needs root and CAP_SYS_RESOURCE: not run")
		return
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("-900"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(path, before, 0)
	for _, view := range []string{exec.ViewByUser, exec.ViewPrivate} {
		d := open(t, func(c *exec.Config) { c.View = view })
		task, inside, supervisor := both(t, d, "cat "+path)
		if len(task) != 1 || len(inside) != 1 || task[0] != "0" || inside[0] != "0" {
			t.Errorf("view %s: task has %v, a command inside %v, want 0", view, task, inside)
		}
		if kept, err := os.ReadFile("/proc/" + strconv.Itoa(supervisor) + "/oom_score_adj"); err != nil || strings.TrimSpace(string(kept)) != "-900" {
			t.Errorf("view %s: supervisor has %q, %v, want -900", view, kept, err)
		}
	}
}

// mayLower tries to write a value and writes the old one back.
func mayLower(t *testing.T, path string, value int) bool {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if os.WriteFile(path, []byte(strconv.Itoa(value)), 0) != nil {
		return false
	}
	if err := os.WriteFile(path, before, 0); err != nil {
		t.Fatal(err)
	}
	return true
}
