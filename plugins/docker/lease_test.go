package docker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/clock"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
)

// leaseFile writes a lease as an agent does: beside its name first.
func leaseFile(t *testing.T, path string, ttl time.Duration) {
	t.Helper()
	text := fmt.Sprintf(`{"ttl":%d,"from":%d}`, ttl, clock.Boottime())
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Error(err)
	}
}

// A strict task is killed when its node's lease ends, though no agent does
// anything, and also when the init, the keeper, or a pause of the task keeps the one
// or the other from doing it.
func TestATaskEndsWithTheLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		least time.Duration // after the lease
		stand func(t *testing.T, d driver.Driver, spec driver.TaskSpec, init int)
	}{
		{"nobody stands still", 400 * time.Millisecond, func(*testing.T, driver.Driver, driver.TaskSpec, int) {}},
		{"the keeper stands still", 400 * time.Millisecond, func(t *testing.T, _ driver.Driver, spec driver.TaskSpec, _ int) {
			for _, pid := range keepers(t, spec) {
				freeze(t, pid)
			}
		}},
		{"the init stands still", 700 * time.Millisecond, func(t *testing.T, _ driver.Driver, _ driver.TaskSpec, init int) { freeze(t, init) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			lease := filepath.Join(t.TempDir(), "lease.json")
			leaseFile(t, lease, time.Minute)
			spec := dressed(counter(t))
			handle, err := d.StartLeased(context.Background(), spec, lease)
			if err != nil {
				t.Fatal(err)
			}
			destroyAtEnd(t, d, spec.ID)
			var record struct {
				InitPID int `json:"init_pid"`
			}
			if err := json.Unmarshal(handle.State, &record); err != nil || record.InitPID < 2 {
				t.Fatalf("the init is %d, %v", record.InitPID, err)
			}
			grows(t, spec, 20)
			const ttl = 2 * time.Second
			leaseFile(t, lease, ttl)
			began := time.Now()
			// All have read it before one of them stands still.
			for time.Since(began) < ttl/2 {
				grows(t, spec, 5)
			}
			c.stand(t, d, spec, record.InitPID)
			for lives(record.InitPID) {
				if time.Since(began) > ttl+20*time.Second {
					t.Fatal("the task outlives the lease")
				}
				syscall.Nanosleep(&syscall.Timespec{Nsec: 10e6}, nil)
			}
			if late := time.Since(began) - ttl; late < c.least {
				t.Errorf("killed %s after the lease, before its agent's turn was over", late)
			} else {
				t.Logf("killed %s after the lease", late)
			}
		})
	}
}

// freeze stops a process until the end of the test.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // gone by then, as a rule
}

// lives reports whether a task still has processes besides its init: a keeper that
// stands still lets the init wait for it.
func lives(init int) bool {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", init)) // each thread has its own
	if err != nil {
		return false
	}
	for _, list := range lists {
		if children, err := os.ReadFile(list); err == nil && len(children) > 0 {
			return true
		}
	}
	return false
}

// A lease that is renewed in time changes nothing, and a keeper that takes
// another's place goes on with it.
func TestALeaseIsKept(t *testing.T) {
	t.Parallel()
	d := open(t)
	lease := filepath.Join(t.TempDir(), "lease.json")
	const ttl = 3 * time.Second
	leaseFile(t, lease, ttl)
	spec := dressed(counter(t))
	if _, err := d.StartLeased(context.Background(), spec, lease); err != nil {
		t.Fatal(err)
	}
	destroyAtEnd(t, d, spec.ID)
	stop, renewing := make(chan struct{}), sync.WaitGroup{}
	renewing.Go(func() { // by a clock of its own: a busy machine may take seconds for a line of the log
		for tick := time.Tick(ttl / 10); ; {
			select {
			case <-tick:
				leaseFile(t, lease, ttl)
			case <-stop:
				return
			}
		}
	})
	stopRenewing := sync.OnceFunc(func() { close(stop); renewing.Wait() })
	defer stopRenewing()
	killed := false
	for began := time.Now(); time.Since(began) < 2*ttl; {
		grows(t, spec, 5)
		if !killed && time.Since(began) > ttl/2 {
			for _, pid := range keepers(t, spec) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			killed = true
		}
	}
	grows(t, spec, 20)
	stopRenewing()
	leaseFile(t, lease, time.Millisecond)
	if result := drivertest.Wait(t, d, spec.ID); result.Signal != "SIGKILL" {
		t.Errorf("ended with %+v", result)
	}
}
