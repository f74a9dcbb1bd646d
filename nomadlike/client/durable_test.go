package client

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// An error of fsync stops the agent, which says so and leaves its tasks alone;
// the next agent takes them back. A full disk stops nothing.
func TestAgentStopsWhenItsStoreIsNotDurable(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	exec := realExec(t, dir)
	var fault atomic.Value // of an error
	fault.Store(error(syscall.ENOSPC))
	var synced atomic.Int32
	n, err := New(Config{
		DataDir: dir, NodeID: "n1", RPCAddr: "n1:4646", Version: "1", Drivers: map[string]driver.Driver{"exec": exec},
		Servers: func() []string { return []string{"s1"} }, OpenSession: c.servers.Open,
		Logger: testLogger(t), Machine: testMachine(), BootID: "boot",
		Fsync: func(func() error) error {
			synced.Add(1)
			return fault.Load().(error)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Run(context.Background()) }()
	one := gang("durable", 1, "sleep 100", "n1")[0]
	c.assign(one)
	wantStatus(t, c, one.Alloc.ID, structs.AllocRunning)
	eventually.Within(t, time.Minute, "see syncs fail for want of room", func() bool { return synced.Load() >= 2 })
	select {
	case err := <-ended:
		t.Fatalf("a full disk ended the agent: %v", err)
	default:
	}
	fault.Store(error(syscall.EIO))
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the agent goes on with a store that is not durable")
	}
	var told *structs.Error
	if !errors.Is(err, ErrStorage) || !errors.As(err, &told) || told.ID != "client.store_lost" {
		t.Errorf("ended with %v", err)
	}
	if _, err := exec.Stats(t.Context(), alloc.TaskID(one.Alloc.ID)); err != nil {
		t.Errorf("the task ended with the agent: %v", err)
	}
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": exec})
	eventually.Within(t, time.Minute, "see the task in the next agent's inventory", func() bool {
		all := c.inventories()
		return len(all) > 1 && len(all[len(all)-1]) == 1
	})
	if told := c.told(one.Alloc.ID); told[len(told)-1] != structs.AllocRunning {
		t.Errorf("told %v", told)
	}
}
