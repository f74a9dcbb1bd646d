package exec_test

import (
	"context"
	"os"
	osexec "os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"nomadlike/plugins/exec"
)

// oldKernelEnv has the test program run as on a kernel of 2018.
const oldKernelEnv = "NOMADLIKE_TEST_OLD_KERNEL"

// playOldKernel keeps the calls that Linux 4.18 does not have from this program
// and all that it starts: they answer as there, that there is no such call.
func playOldKernel() {
	if os.Getenv(oldKernelEnv) != "now" {
		return
	}
	const (
		load, atLeast, ret = 0x20, 0x35, 0x06 // classic BPF
		first, beyond      = 424, 500         // pidfd_send_signal, the first after 4.18 with one number everywhere
		allow              = 0x7fff0000
		noCall             = 0x00050000 | uint32(syscall.ENOSYS)
	)
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	filter := []instruction{
		{load, 0, 0, 0},
		{atLeast, 0, 2, first},
		{atLeast, 1, 0, beyond},
		{ret, 0, 0, noCall},
		{ret, 0, 0, allow},
	}
	program := struct {
		length uint16
		filter *instruction
	}{uint16(len(filter)), &filter[0]}
	runtime.LockOSThread()
	const prSetSeccomp, modeFilter = 22, 2
	if _, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, prSetSeccomp, modeFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0); errno != 0 {
		panic(errno)
	}
	if err := os.Setenv(oldKernelEnv, "done"); err != nil {
		panic(err)
	}
	panic(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// TestOnOldKernel runs the tests of isolation, of views and of the driver's
// contract once more without the calls that kernels before 5.12 lack.
func TestOnOldKernel(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv(oldKernelEnv) != "" {
		t.Skip("needs root, once")
	}
	tests := osexec.Command("/proc/self/exe", "-test.count=1", "-test.v", "-test.timeout=8m")
	tests.Env = append(os.Environ(), oldKernelEnv+"=now")
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
	if old := os.Getenv(oldKernelEnv) != ""; strings.Contains(isolation, "classical") != old || !strings.Contains(isolation, "mount") {
		t.Errorf("isolation is %q, without the new calls: %v", isolation, old)
	}
}
