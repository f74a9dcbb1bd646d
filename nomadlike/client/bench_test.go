package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

func listenSomewhere(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// BenchmarkAssignToReport measures one trivial job after the other on a node,
// from the assignment to the reports, without any server's log: with the real
// driver, and with one that only notes what it is told.
func BenchmarkAssignToReport(b *testing.B) {
	b.Run("exec", func(b *testing.B) {
		dir := tempDir(b)
		d, err := exec.New(exec.Config{StateDir: filepath.Join(dir, "exec"), Supervisor: []string{os.Args[0], "task-supervisor"}})
		if err != nil {
			b.Fatal(err)
		}
		defer d.Close()
		benchmarkJobs(b, dir, map[string]driver.Driver{"exec": d}, nil)
	})
	b.Run("fake", func(b *testing.B) {
		w := newFakeRuntime()
		benchmarkJobs(b, tempDir(b), w.driver(), w)
	})
}

func benchmarkJobs(b *testing.B, dir string, drivers map[string]driver.Driver, w *fakeRuntime) {
	c := newControl()
	heard := make(chan structs.AllocReport, 64)
	c.onReport = func(r structs.AllocReport) { heard <- r }
	n, err := New(Config{
		DataDir: dir, NodeID: "n1", Drivers: drivers,
		Servers: func() []string { return []string{"s"} }, OpenSession: c.servers.Open,
		Logger: slog.New(slog.DiscardHandler), Machine: testMachine(),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	for !n.Connected() {
		<-time.After(time.Millisecond)
	}
	var toRunning, toEnd []time.Duration
	i := 0
	for b.Loop() {
		i++
		a := gang(fmt.Sprint("job", i), 1, "true", "n1")[0]
		begun := time.Now()
		c.assign(a)
		for {
			r := <-heard
			if len(toRunning) < i {
				toRunning = append(toRunning, time.Since(begun))
			}
			if r.Status.Terminal() {
				toEnd = append(toEnd, time.Since(begun))
				break
			}
			if w != nil {
				w.exit(a.Alloc.ID, 0)
			}
		}
	}
	b.ReportMetric(median(toRunning), "ms-to-running")
	b.ReportMetric(median(toEnd), "ms-to-end")
	cancel()
	running.Wait()
}

func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2]) / float64(time.Millisecond)
}
