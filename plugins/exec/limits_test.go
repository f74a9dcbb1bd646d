package exec_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/exec"
)

// showLimits prints the limits that the tests set, soft and hard.
const showLimits = `for l in l n c s; do ulimit -S -$l; ulimit -H -$l; done | tr '\n' ' '`

func limitsForTest() []driver.Ulimit {
	return []driver.Ulimit{
		{Name: "memlock", Soft: 64 << 10, Hard: 128 << 10},
		{Name: "nofile", Soft: 50, Hard: 60},
		{Name: "core"},
		{Name: "stack", Soft: 4 << 20, Hard: 8 << 20},
	}
}

const limitsSeen = "64 128 50 60 0 0 4096 8192 "

// kinds are drivers that isolate and that do not.
func kinds() map[string]func(*exec.Config) {
	return map[string]func(*exec.Config){
		"raw":     func(c *exec.Config) { c.Isolation = exec.IsolationRaw },
		"shared":  func(*exec.Config) {},
		"private": private,
		"small":   func(c *exec.Config) { c.Supervisor = nil },
	}
}

func TestUlimits(t *testing.T) {
	for name, change := range kinds() {
		t.Run(name, func(t *testing.T) {
			d := open(t, func(c *exec.Config) { change(c); c.Ulimits = []driver.Ulimit{{Name: "sigpending", Soft: 77, Hard: 78}} })
			for _, user := range []string{"", "nobody"} {
				if user != "" && !asRoot(t) {
					continue
				}
				spec := drivertest.Shell(t, showLimits+"; grep pending /proc/self/limits | tr -s ' '; exit 7")
				spec.ID += driver.TaskID("." + user + "x")
				spec.Dir, spec.User, spec.Ulimits = "/", user, limitsForTest()
				drivertest.Start(t, d, spec)
				if result := drivertest.Wait(t, d, spec.ID); result.Code != 7 {
					t.Errorf("result is %+v: %s", result, drivertest.Log(t, spec, "stderr"))
				}
				if out := drivertest.Log(t, spec, "stdout"); !strings.HasPrefix(out, limitsSeen+"Max pending signals 77 78 ") {
					t.Errorf("a task of %q sees %q", user, out)
				}
			}
			// Another task of the same driver has nothing of them.
			plain := drivertest.Shell(t, showLimits)
			plain.ID += ".plain"
			if out := output(t, d, plain); strings.HasPrefix(out, "64 128 50 60") {
				t.Errorf("a task without limits sees %q", out)
			}
		})
	}
}

func TestUlimitsOfCommandsInATask(t *testing.T) {
	for name, change := range kinds() {
		t.Run(name, func(t *testing.T) {
			d := open(t, change)
			spec := drivertest.Spec(t)
			spec.Hold, spec.Ulimits = true, limitsForTest()
			drivertest.Start(t, d, spec)
			var out strings.Builder
			result, err := d.Exec(context.Background(), spec.ID, driver.ExecSpec{Command: []string{"sh", "-c", showLimits}}, driver.Streams{Stdout: &out})
			if err != nil || result.Code != 0 || out.String() != limitsSeen {
				t.Errorf("a command in the task sees %q, %+v, %v", out.String(), result, err)
			}
		})
	}
}

// TestUlimitsAreBounded has a job ask for more than the administrator allows,
// than the agent has, and than the agent may give.
func TestUlimitsAreBounded(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(syscall.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	refused := func(t *testing.T, d *exec.Driver, id string, limit driver.Ulimit) {
		t.Helper()
		spec := drivertest.Shell(t, "true")
		spec.Ulimits = []driver.Ulimit{limit}
		_, err := d.Start(t.Context(), spec)
		var told *structs.Error
		if !errors.As(err, &told) || told.ID != id || told.Code != structs.CodeForbidden || told.Params["limit"] != limit.Name {
			t.Errorf("start gives %v, want %s", err, id)
		}
	}
	more := driver.Ulimit{Name: "nofile", Soft: 64, Hard: int64(own.Max) + 1}
	t.Run("ceiling", func(t *testing.T) {
		d := open(t, func(c *exec.Config) { c.UlimitsMax = map[string]int64{"nofile": 40} })
		refused(t, d, "driver.ulimit_refused", driver.Ulimit{Name: "nofile", Soft: 40, Hard: 41})
		spec := drivertest.Shell(t, "ulimit -n")
		spec.Ulimits = []driver.Ulimit{{Name: "nofile", Soft: 40, Hard: 40}}
		if out := output(t, d, spec); out != "40\n" {
			t.Errorf("task sees %q", out)
		}
	})
	t.Run("own", func(t *testing.T) {
		refused(t, open(t), "driver.ulimit_refused", more)
	})
	t.Run("raised", func(t *testing.T) {
		for name, change := range kinds() {
			d := open(t, func(c *exec.Config) {
				change(c)
				c.UlimitsMax = map[string]int64{"nofile": more.Hard, "memlock": structs.UlimitInfinite}
			})
			if !mayRaise() {
				refused(t, d, "driver.ulimit_powerless", more)
				continue
			}
			spec := drivertest.Shell(t, "ulimit -Sn; ulimit -Hn; ulimit -l")
			spec.ID += driver.TaskID("." + name)
			spec.Ulimits = []driver.Ulimit{more, {Name: "memlock", Soft: structs.UlimitInfinite, Hard: structs.UlimitInfinite}}
			if out := output(t, d, spec); out != "64\n"+itoa(int(more.Hard))+"\nunlimited\n" {
				t.Errorf("%s: task sees %q", name, out)
			}
		}
	})
}

// mayRaise reports whether this process may raise hard limits.
func mayRaise() bool {
	const capSysResource = 24
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<capSysResource) != 0
}
