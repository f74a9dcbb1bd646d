package exec_test

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"nomadlike/internal/mounts/oldkernel"
	"nomadlike/internal/orphans"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/exec/supervisor"
)

// TestMain lets the test program stand in for the main program, which runs
// itself as the supervisor of its tasks.
func TestMain(m *testing.M) {
	oldkernel.Play()
	if len(os.Args) > 1 && os.Args[1] == supervisor.Argument {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		playAgent(os.Args[2], os.Args[3], os.Args[4])
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		orphans.End(supervisor.Argument)
		removeCgroups()
		os.Exit(code)
	}))
}

// cgroupParent is where the tests make cgroups.
func cgroupParent() string { return "nomadlike-test-" + strconv.Itoa(os.Getpid()) }

// removeCgroups removes what the drivers of the tests have made.
func removeCgroups() {
	for _, pattern := range []string{"/sys/fs/cgroup/*/", "/sys/fs/cgroup/"} {
		dirs, err := filepath.Glob(pattern + cgroupParent())
		for _, dir := range dirs {
			_ = os.Remove(dir) // stays when a test has left something, which its own check tells
		}
		if err != nil {
			panic(err) // the pattern is malformed
		}
	}
}

// stateDirs remembers where drivers live.
var stateDirs sync.Map

// stateDir is where a driver lives.
func stateDir(t testing.TB, d *exec.Driver) string {
	t.Helper()
	dir, ok := stateDirs.Load(d)
	if !ok {
		t.Fatal("not a driver of open")
	}
	return dir.(string)
}

// open returns a driver with a state directory of its own.
func open(t testing.TB, change ...func(*exec.Config)) *exec.Driver {
	t.Helper()
	config := exec.Config{StateDir: t.TempDir(), Supervisor: []string{"/proc/self/exe", supervisor.Argument}, CgroupParent: cgroupParent(), Isolation: exec.IsolationAuto}
	for _, f := range change {
		f(&config)
	}
	d, err := exec.New(config)
	if err != nil {
		t.Fatal(err)
	}
	stateDirs.Store(d, config.StateDir)
	t.Cleanup(func() {
		stateDirs.Delete(d)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// onceIsEnough leaves a variant of the contract to the run without -short: with the race
// detector each takes a minute, and finds what TestContract does.
func onceIsEnough(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("another variant of the contract")
	}
}

func TestContract(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) driver.Driver { return open(t) })
}

// TestContractOfLevels runs the contract with more isolation than the default,
// and with less.
func TestContractOfLevels(t *testing.T) {
	onceIsEnough(t)
	for name, change := range map[string]func(*exec.Config){
		"raw":     func(c *exec.Config) { c.Isolation = exec.IsolationRaw },
		"private": func(c *exec.Config) { c.View = exec.ViewPrivate },
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) driver.Driver { return open(t, change) })
		})
	}
}

func TestContractWithoutCgroup(t *testing.T) {
	onceIsEnough(t)
	drivertest.Run(t, func(t *testing.T) driver.Driver {
		return open(t, func(c *exec.Config) { c.NoCgroup = true })
	})
}
