package exec_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec"
)

// TestSupervisorsAreUsedAgain runs many tasks one after the other and looks
// for what they leave behind in the processes that ran them.
func TestSupervisorsAreUsedAgain(t *testing.T) {
	const tasks = 40
	d := open(t, func(c *exec.Config) { c.Spares = 1 })
	dir := drivertest.Shell(t, "true")
	used := make(map[int]int)
	var files, threads int
	for i := range tasks {
		spec := dir
		spec.ID = driver.TaskID(fmt.Sprintf("task-%d", i))
		spec.LogDir = fmt.Sprintf("%s-%d", dir.LogDir, i)
		spec.Command = []string{"/bin/sh", "-c", "hostname; head -1 /etc/hosts; grep -c ' /etc/hosts ' /proc/self/mountinfo; exit $CODE"}
		spec.Env = []string{fmt.Sprint("CODE=", i)}
		if i%2 == 0 {
			spec.Hostname, spec.Hosts = fmt.Sprintf("rank-%d", i), []string{fmt.Sprint("127.0.0.1 peer-", i)}
		}
		handle, err := d.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if result := drivertest.Wait(t, d, spec.ID); result.Code != i {
			t.Errorf("task %d gives %+v", i, result)
		}
		if err := d.Destroy(t.Context(), spec.ID); err != nil {
			t.Fatal(err)
		}
		out := drivertest.Log(t, spec, tasklog.Stdout)
		if want := fmt.Sprintf("rank-%d\n127.0.0.1 peer-%d\n1\n", i, i); os.Geteuid() == 0 && (out == want) != (i%2 == 0) {
			t.Errorf("task %d sees %q", i, out)
		}
		pid := stateOf(t, handle).Supervisor.PID
		used[pid]++
		if used[pid] == 10 {
			files, threads = openFiles(t, pid), threadsOf(t, pid)
		}
	}
	busiest := 0
	for pid, times := range used {
		if times > used[busiest] {
			busiest = pid
		}
	}
	if len(used) > tasks/4 || used[busiest] < 10 {
		t.Fatalf("%d tasks took %d supervisors: %v", tasks, len(used), used)
	}
	eventually.Within(t, time.Minute, "nothing is left of the tasks", func() bool {
		return openFiles(t, busiest) <= files && threadsOf(t, busiest) <= threads+2
	})
}

func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func threadsOf(t *testing.T, pid int) int {
	t.Helper()
	p, err := proctree.Read(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p.Threads
}
