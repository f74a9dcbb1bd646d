package exec_test

import (
	"context"
	"os"
	osexec "os/exec"
	"strings"
	"testing"

	"nomadlike/internal/mounts"
	"nomadlike/internal/mounts/oldkernel"
	"nomadlike/plugins/exec"
)

// TestOnOldKernel runs the tests of isolation, of views and of the driver's
// contract once more without the calls that kernels before 5.12 lack.
func TestOnOldKernel(t *testing.T) {
	if oldkernel.Played() {
		return // this is that run
	}
	if os.Geteuid() != 0 {
		t.Log("needs root: not run")
		return
	}
	args := []string{"-test.count=1", "-test.v", "-test.timeout=8m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	tests := osexec.Command("/proc/self/exe", args...)
	tests.Env = append(os.Environ(), oldkernel.Env+"=now")
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d tests passed", strings.Count(string(out), "--- PASS"))
}

// Which road there is stands in the fingerprint.
func TestClassicalRoadIsTold(t *testing.T) {
	d := open(t, func(*exec.Config) {})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found, err := d.Fingerprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	isolation := (<-found).Attributes["driver.exec.isolation"]
	if old := mounts.Classical(); strings.Contains(isolation, "classical") != old || !strings.Contains(isolation, "mount") {
		t.Errorf("isolation is %q, without the new calls: %v", isolation, old)
	} else if oldkernel.Played() && !old {
		t.Error("the calls that are to be missing are there")
	}
}
