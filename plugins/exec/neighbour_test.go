package exec_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
)

// steps is a task that does a little work and a little of what needs the kernel
// 500 times, and writes how long the slowest but five took, in microseconds.
const steps = `
import os, time
took = []
for i in range(500):
    begun = time.monotonic()
    sum(range(20000))
    with open("/dev/shm/step", "w") as f: f.write("x" * 1000)
    os.unlink("/dev/shm/step")
    took.append(time.monotonic() - begun)
    time.sleep(0.002)
print(int(sorted(took)[-6] * 1e6))`

// inodes is a task that makes files until it may not.
const inodes = `
import os, errno
n = 0
try:
    while True:
        os.close(os.open("/dev/shm/%d" % n, os.O_CREAT | os.O_WRONLY))
        n += 1
except OSError as e:
    print(n, errno.errorcode[e.errno], flush=True)
while True: pass`

// Attack 39: a neighbour of tasks that take all files, processes and processor
// time that they can get makes its own files, and is not much slower than alone.
func TestNeighbourOfHogs(t *testing.T) {
	d := isolated(t, private)
	if d == nil {
		return
	}
	if limits := attributes(t, d)["driver.exec.limits"]; !strings.Contains(limits, "cpu") || !strings.Contains(limits, "memory") || !strings.Contains(limits, "pids") {
		t.Logf("the node bounds %s only: not run", limits)
		return
	}
	measured := 0
	slowest := func() time.Duration {
		spec := drivertest.Spec(t, "python3", "-c", steps)
		measured++
		spec.ID += driver.TaskID("-n" + strconv.Itoa(measured))
		number, err := strconv.Atoi(strings.TrimSpace(output(t, d, spec)))
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(number) * time.Microsecond
	}
	alone := slowest()
	var hogs []driver.TaskSpec
	hog := func(name string, argv ...string) driver.TaskSpec {
		spec := drivertest.Spec(t, argv...)
		spec.ID += driver.TaskID("-" + name)
		spec.Resources.CPU, spec.Resources.Memory, spec.Resources.PIDs, spec.Resources.Shm = 0.25, 256<<20, 64, 16<<20
		drivertest.Start(t, d, spec)
		hogs = append(hogs, spec)
		return spec
	}
	files := hog("files", "python3", "-c", inodes)
	hog("forks", "sh", "-c", `bomb() { bomb & bomb & }; while :; do bomb; done 2>/dev/null`)
	hog("spins", "sh", "-c", `for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait`)
	drivertest.AwaitOutput(t, files, "ENOSPC")
	if out := drivertest.Log(t, files, tasklog.Stdout); !strings.HasPrefix(out, "65") {
		t.Errorf("the hog of files wrote %q", out)
	}
	beside := slowest()
	t.Logf("99 of 100 steps take at most %v alone and %v beside hogs", alone, beside)
	// A fifth is what the processor's share costs; the rest is what a busy machine
	// of tests adds by itself.
	if most := alone + alone/5 + 100*time.Millisecond; beside > most {
		t.Errorf("beside hogs a step takes %v, alone %v", beside, alone)
	}
	for _, spec := range hogs {
		if err := d.Stop(t.Context(), spec.ID, "SIGKILL", 0); err != nil {
			t.Error(fmt.Errorf("%s: %w", spec.ID, err))
		}
		drivertest.Wait(t, d, spec.ID)
	}
}
