package docker_test

import (
	"os"
	osexec "os/exec"
	"testing"

	"nomadlike/internal/mounts/oldkernel"
)

// TestOnOldKernel runs the attacks on mounts and the driver's contract once more
// without the calls that kernels before 5.12 lack, the engine's own included.
func TestOnOldKernel(t *testing.T) {
	if oldkernel.Played() {
		return // this is that run
	}
	if os.Geteuid() != 0 {
		t.Log("needs root: not run")
		return
	}
	tests := osexec.Command("/proc/self/exe", "-test.count=1", "-test.timeout=8m", "-test.run=^(TestAttackMounts|TestAttackMountSwap|TestContract)$")
	tests.Env = append(os.Environ(), oldkernel.Env+"=now")
	if out, err := tests.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
