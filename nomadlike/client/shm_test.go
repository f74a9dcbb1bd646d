package client

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/run"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// What a task without a view of its own leaves in shared memory ends with the last
// task of its user; what others have there stays.
func TestSharedMemoryEndsWithTheTask(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to run tasks as other users")
	}
	nobody, err := user.Lookup("games") // as whom nothing else runs
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	dir, shm := tempDir(t), t.TempDir()
	for path := shm; path != os.TempDir(); path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o711); err != nil { // tasks of other users pass through it
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	old, foreign := filepath.Join(shm, "old"), filepath.Join(shm, "foreign")
	for _, path := range []string{old, foreign} {
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(old, uid, uid); err != nil {
		t.Fatal(err)
	}
	made := time.Now()
	eventually.Within(t, time.Minute, "the kernel's stamps tell before from after", func() bool { return time.Since(made) > 3*run.ShmClock })

	d, err := exec.New(exec.Config{StateDir: filepath.Join(dir, "exec"), Supervisor: []string{os.Args[0], "task-supervisor"}, Logger: testLogger(t), Isolation: exec.IsolationRaw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	c := newControl()
	cleanUp(t, dir)
	n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": d}, func(config *Config) { config.ShmDir = shm })
	eventually.Within(t, time.Minute, "the driver speaks", func() bool { return n.Node().Attributes["driver.exec.isolation"] == structs.IsolationNone })
	job := func(name, command string) *structs.Assignment {
		a := gang(name, 1, command, "n1")[0]
		a.Job.Task.User, a.RunAs = nobody.Username, &structs.RunAs{Accounts: []string{nobody.Username}}
		c.assign(a)
		return a
	}
	there := func(name string) bool { _, err := os.Lstat(filepath.Join(shm, name)); return err == nil }

	first := job("first", fmt.Sprintf("sh -c 'mkdir %[1]s/dir; echo x >%[1]s/dir/file; echo x >%[1]s/one; sleep 1000'", shm))
	eventually.Within(t, time.Minute, "the first has files", func() bool { return there("one") })
	second := job("second", fmt.Sprintf("sh -c 'echo x >%s/two'", shm))
	wantStatus(t, c, second.Alloc.ID, structs.AllocComplete)
	if !there("one") || !there("two") {
		t.Error("files went while a task of their user runs")
	}
	c.change(first.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	wantEnd(t, c, first.Alloc.ID)
	eventually.Within(t, time.Minute, "the files of both are gone", func() bool { return !there("one") && !there("two") && !there("dir") })
	if !there("old") || !there("foreign") {
		t.Error("files of others, or of before, are gone")
	}
}
