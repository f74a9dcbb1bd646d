package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// A task that takes more of the disk than one may have is ended, is told why, and
// pays for it; its neighbour goes on.
func TestTaskThatFillsTheDisk(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)}, func(config *Config) {
		config.Room, config.RoomEvery = room.Bounds{Bytes: 8 << 20, Files: 300}, 20*time.Millisecond
	})
	neighbour := gang("neighbour", 1, "sleep 1000", "n1")[0]
	c.assign(neighbour)
	wantStatus(t, c, neighbour.Alloc.ID, structs.AllocRunning)
	for name, command := range map[string]string{
		"client.room_bytes": "sh -c 'head -c 20000000 /dev/zero >large; sleep 1000'",
		"client.room_files": "sh -c 'mkdir -p a/b; i=0; while [ $i -lt 400 ]; do : >a/b/$i; i=$((i+1)); done; sleep 1000'",
	} {
		a := gang(name[len("client.room_"):], 1, command, "n1")[0]
		c.assign(a)
		r := wantEnd(t, c, a.Alloc.ID)
		if r.Status != structs.AllocFailed || r.Infra || r.Cause == nil || r.Cause.ID != name {
			t.Errorf("%s: it ended as %+v with cause %+v", name, r, r.Cause)
		}
	}
	if got := c.last(neighbour.Alloc.ID).Status; got != structs.AllocRunning {
		t.Errorf("the neighbour is %s", got)
	}
	c.change(neighbour.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	wantEnd(t, c, neighbour.Alloc.ID)
}

// fakeQuotas remembers what is bounded.
type fakeQuotas struct {
	mu    sync.Mutex
	bound map[string][2]int64 // by directory: bytes, files
	err   error
}

func (q *fakeQuotas) Bound(dir string, bytes, files int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.bound[dir] = [2]int64{bytes, files}
	}
	return q.err
}

func (q *fakeQuotas) Free(dir string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("it is gone before its quota: %w", err)
	}
	delete(q.bound, dir)
	return nil
}

func (q *fakeQuotas) of(dir string) [2]int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bound[dir]
}

// Where the file system keeps quotas a task has one, a little above what it is ended
// for, until its directory is removed.
func TestRoomIsBoundByQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, dir := newControl(), newFakeRuntime(), tempDir(t)
		quotas := &fakeQuotas{bound: make(map[string][2]int64)}
		n, stop := c.node(t, dir, "n1", w.driver(), func(config *Config) {
			config.Room, config.Keep.Allocs = room.Bounds{Bytes: 1 << 30, Files: 64000}, 1
			config.Quotas = func(at string) (room.Quotas, error) {
				if at != dir {
					t.Errorf("quotas of %s", at)
				}
				return quotas, nil
			}
		})
		settle()
		if got := n.Node().Attributes["disk.bound"]; got != "quota" {
			t.Errorf("the node says %q", got)
		}
		var tasks []string
		for i, asked := range []int64{0, 32 << 20, 64 << 30} {
			a := gang(fmt.Sprint("job", i), 1, "true", "n1")[0]
			a.Alloc.Spec.Disk = asked
			tasks = append(tasks, n.files.Task(a.Alloc.ID))
			c.assign(a)
			settle()
			most := [][2]int64{{1<<30 + 1<<24, 65000}, {33 << 20, 65000}, {1<<30 + 1<<24, 65000}}[i]
			if got := quotas.of(tasks[i]); got != most {
				t.Errorf("job%d may write %v, want %v", i, got, most)
			}
			if i < 2 {
				w.exit(a.Alloc.ID, 0)
			}
			settle()
		}
		pass(3 * loop.SeldomEvery)
		if got := quotas.of(tasks[0]); got != [2]int64{} {
			t.Errorf("what was removed still may write %v", got)
		}
		if got := quotas.of(tasks[1]); got == [2]int64{} {
			t.Error("what is kept has no quota any more")
		}
		quotas.mu.Lock()
		quotas.err = errors.New("broken")
		quotas.mu.Unlock()
		a := gang("job3", 1, "true", "n1")[0]
		c.assign(a)
		settle()
		if got := c.last(a.Alloc.ID).Status; got != structs.AllocRunning {
			t.Errorf("without a quota the task is %s", got)
		}
		stop()
		_, stop = c.node(t, tempDir(t), "n2", newFakeRuntime().driver(), func(config *Config) {
			config.Quotas = func(string) (room.Quotas, error) { return nil, errors.New("none here") }
		})
		stop()
	})
}

// A job's own bound ends its task where the node would let it go on, and counts what
// a container writes into its layer.
func TestJobBoundsItsDisk(t *testing.T) {
	dir, layer := tempDir(t), t.TempDir()
	c := newControl()
	cleanUp(t, dir)
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": &layered{realExec(t, dir), layer}}, func(config *Config) {
		config.Room, config.RoomEvery = room.Bounds{Bytes: 1 << 40}, 20*time.Millisecond
	})
	for name, command := range map[string]string{"own": "sh -c 'head -c 20000000 /dev/zero >large; sleep 1000'", "layer": "sleep 1000"} {
		a := gang(name, 1, command, "n1")[0]
		a.Alloc.Spec.Disk = 8 << 20
		if name == "layer" {
			if err := os.WriteFile(filepath.Join(layer, "large"), make([]byte, 9<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.assign(a)
		r := wantEnd(t, c, a.Alloc.ID)
		if r.Status != structs.AllocFailed || r.Infra || r.Cause == nil || r.Cause.ID != "client.room_bytes" || r.Cause.Params["most"] != "8MiB" && r.Cause.Params["most"] != "8192KiB" {
			t.Errorf("%s: it ended as %+v with cause %+v", name, r, r.Cause)
		}
	}
}

// layered is a driver whose tasks have a layer.
type layered struct {
	driver.Driver
	dir string
}

func (l *layered) Layer(context.Context, driver.TaskID) (string, error) { return l.dir, nil }
