package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

func TestFullDiskIsTheNodesFault(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	dir := tempDir(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c := newControl()
	cleanUp(t, dir)
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	before := gang("before", 1, "sleep 100", "n1")[0]
	c.assign(before)
	wantStatus(t, c, before.Alloc.ID, structs.AllocRunning)
	fill := filepath.Join(dir, "fill")
	chunk := make([]byte, 4<<10)
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(chunk)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	for i := 0; err == nil || i == 0; i++ { // the last bytes of the last page as well
		_, err = f.Write(chunk[:1])
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	during := gang("during", 1, "true", "n1")[0]
	c.assign(during)
	r := wantEnd(t, c, during.Alloc.ID)
	if r.Status != structs.AllocFailed || !r.Infra {
		t.Fatalf("report %+v cause %+v", r, r.Cause)
	}
	t.Logf("cause: %s", messages.Text(messages.English, r.Cause.ID, r.Cause.Params))
	if got := c.last(before.Alloc.ID).Status; got != structs.AllocRunning {
		t.Fatalf("a running task is %s", got)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	after := gang("after", 1, "true", "n1")[0]
	c.assign(after)
	wantStatus(t, c, after.Alloc.ID, structs.AllocComplete)
}

func TestKilledSupervisorIsTheNodesFault(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	d := realExec(t, dir)
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": d})
	a := gang("job", 1, "sleep 100", "n1")[0]
	c.assign(a)
	wantStatus(t, c, a.Alloc.ID, structs.AllocRunning)
	handles, err := d.List(t.Context())
	if err != nil || len(handles) != 1 {
		t.Fatalf("handles %v, %v", handles, err)
	}
	var task supervisor.State
	if err := json.Unmarshal(handles[0].State, &task); err != nil || task.Supervisor.PID <= 1 || task.Command.PID <= 1 {
		t.Fatalf("task %+v, %v", task, err)
	}
	if err := syscall.Kill(task.Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := wantStatus(t, c, a.Alloc.ID, structs.AllocFailed)
	if !r.Infra || r.Cause.ID != "driver.task_lost" {
		t.Fatalf("report %+v cause %+v", r, r.Cause)
	}
	eventually.Within(t, time.Minute, "its processes are gone", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", task.Command.PID))
		return errors.Is(err, os.ErrNotExist)
	})
}

// sleepers counts the processes of this machine that sleep for mark: what tasks
// say of their own process ids means nothing outside of them.
func sleepers(t *testing.T, mark string) int {
	t.Helper()
	out, _ := osexec.Command("pgrep", "-fc", "sleep "+mark).Output() // exit code 1 when there are none
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("pgrep said %q", out)
	}
	return n
}

// TestDeafAndForkingRankDiesWhole stops a task that ignores the signal and
// has children in other sessions.
func TestDeafAndForkingRankDiesWhole(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	mark := strconv.Itoa(os.Getpid()) + "31337"
	a := gang("deaf", 1, `sh -c 'trap "" TERM HUP; setsid sleep `+mark+` & (setsid sh -c "trap \"\" TERM; sleep `+mark+`" &) ; echo ready; while :; do sleep `+mark+`; done'`, "n1")[0]
	a.Job.StopGrace = structs.Duration(300 * time.Millisecond)
	c.assign(a)
	wantStatus(t, c, a.Alloc.ID, structs.AllocRunning)
	eventually.Within(t, time.Minute, "everything runs", func() bool { return sleepers(t, mark) >= 3 })
	c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	if r := wantStatus(t, c, a.Alloc.ID, structs.AllocKilled); r.Signal != 9 {
		t.Errorf("report %+v", r)
	}
	if n := sleepers(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestTaskOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to run tasks as other users")
	}
	dir := tempDir(t)
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	c := newControl()
	cleanUp(t, dir)
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	a := gang("other", 1, "sh -c 'id -un; echo x > mine && cat mine; cat ../logs/stdout.0 ../../../allocs.db ../../../identity.json 2>/dev/null; ls .. ; true'", "n1")[0]
	a.Job.Task.User, a.RunAs = "nobody", &structs.RunAs{Accounts: []string{"nobody"}}
	c.assign(a)
	wantStatus(t, c, a.Alloc.ID, structs.AllocComplete)
	if got := logText(t, dir, a.Alloc.ID, "stdout"); got != "nobody\nx\n" {
		t.Errorf("the task said %q", got)
	}
	// Whoever is bound to nobody's account, or to another one, has it not; and
	// nobody is root unless the pool's record says so.
	for name, try := range map[string]struct {
		user string
		as   *structs.RunAs
		want string
	}{
		"unbound":        {"nobody", nil, "client.user_none_bound"},
		"bound-to-other": {"nobody", &structs.RunAs{Accounts: []string{"daemon"}}, "client.user_unbound"},
		"root-by-name":   {"root", &structs.RunAs{Accounts: []string{"nobody"}}, "client.user_root"},
		"root-by-number": {"0", nil, "client.user_root"},
		"bound-to-root":  {"", &structs.RunAs{Accounts: []string{"root"}}, "client.user_root"},
	} {
		a := gang(name, 1, "id -u", "n1")[0]
		a.Job.Task.User, a.RunAs = try.user, try.as
		c.assign(a)
		if r := wantEnd(t, c, a.Alloc.ID); r.Cause == nil || r.Cause.ID != try.want {
			t.Errorf("%s: report %+v", name, r)
		}
	}
}

// strictCluster is a node that runs a strict task, in a bubble.
type strictCluster struct {
	c     *control
	w     *fakeRuntime
	start func() (stop func()) // of the agent
	stop  func()
	id    string // of the allocation
}

func newStrictCluster(t *testing.T) *strictCluster {
	t.Helper()
	x, dir, boot := &strictCluster{c: newControl(), w: newFakeRuntime()}, tempDir(t), time.Now()
	x.start = func() func() {
		_, stop := x.c.node(t, dir, "n1", x.w.driver(), func(config *Config) {
			config.Boottime = func() time.Duration { return time.Since(boot) + time.Hour }
		})
		return stop
	}
	x.stop = x.start()
	settle()
	a := gang("strict", 1, "sleep", "n1")[0]
	a.Job.Fencing = alloc.FencingStrict
	x.id = a.Alloc.ID
	x.c.assign(a)
	pass(2 * time.Second)
	return x
}

func TestExpiredLeaseAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newStrictCluster(t)
		x.c.silence(true)
		x.c.servers.Down("s1", true)
		x.c.servers.Down("s2", true)
		x.stop()
		pass(10 * time.Second) // the agent is away, and no server can be reached
		stop := x.start()
		pass(time.Second)
		if got := x.w.running(); len(got) != 0 {
			t.Fatalf("strict task lives on after its lease: %v", got)
		}
		stop()
	})
}

// TestKillWithoutLeaseIsNotTheJobsFault lets a supervisor kill a strict task while
// its agent is away, which is back before the node is lost.
func TestKillWithoutLeaseIsNotTheJobsFault(t *testing.T) {
	for name, lapsed := range map[string]bool{"without a lease": true, "with a lease": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newStrictCluster(t)
				x.stop()
				if lapsed {
					pass(4 * time.Second)
				}
				x.w.kill(x.id)
				pass(time.Second)
				stop := x.start()
				pass(2 * time.Second)
				r := x.c.last(x.id)
				fenced := r.Cause != nil && r.Cause.ID == "client.lease_ended"
				if r.Status != structs.AllocFailed || r.Infra != lapsed || fenced != lapsed {
					t.Errorf("report %+v, cause %+v", r, r.Cause)
				}
				stop()
			})
		})
	}
}

func TestDamagedIdentityIsRefusedWithACure(t *testing.T) {
	dir := tempDir(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "identity.json"), []byte("{{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Config{DataDir: dir, OpenSession: newControl().servers.Open, Logger: testLogger(t), Machine: testMachine()})
	wantError(t, err, "client.identity_damaged")
	if !messages.Has(messages.English, "client.identity_damaged.hint") {
		t.Error("no hint")
	}
	if err := os.Remove(filepath.Join(dir, "identity.json")); err != nil {
		t.Fatal(err)
	}
	n, err := New(Config{DataDir: dir, OpenSession: newControl().servers.Open, Logger: testLogger(t), Machine: testMachine()})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	// Only one agent at a time.
	_, _, err = store.Open(dir)
	wantError(t, err, "client.store_locked")
}

// TestEveryReasonHasItsText makes sure that people can read why.
func TestEveryReasonHasItsText(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range append(files, more...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), `"client.`)[1:] {
			id := "client." + part[:strings.IndexByte(part, '"')]
			seen++
			for _, language := range []messages.Language{messages.English, messages.Chinese} {
				if !messages.Has(language, id) {
					t.Errorf("%s: %s has no text in %s", file, id, language)
				}
			}
		}
	}
	if seen < 20 {
		t.Fatalf("only %d ids found", seen)
	}
}
