//go:build cgo

package nvml_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/nvidia/nvmltest"
)

// BenchmarkFault measures from an error that the library reports to the
// snapshot that says so in the agent's process.
func BenchmarkFault(b *testing.B) {
	n := startNode(b, nvmltest.New(b, nvmltest.Cards(8)...), nvmltest.Build(b), `"poll": "5s"`)
	snapshots := devicetest.Follow(b, n)
	devicetest.Await(b, snapshots, "eight cards", func(s device.Snapshot) bool { return len(s.Devices) == 8 })
	listening := false
	for !listening { // what happens before is not delivered
		n.Happen("GPU-0003 xid=31")
		select {
		case s := <-snapshots:
			listening = len(s.Events) > 0
		case <-time.After(100 * time.Millisecond):
		}
	}
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		n.Happen("GPU-0003 xid=31")
		for s := range snapshots {
			if len(s.Events) > 0 && s.Events[0].At.After(begun) {
				break
			}
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkStats measures what a plugin costs that measures eight cards once a
// second for the agent, in its own process.
func BenchmarkStats(b *testing.B) {
	n := startNode(b, nvmltest.New(b, nvmltest.Cards(8)...), nvmltest.Build(b), `"poll": "5s"`)
	devicetest.Devices(b, n)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stats, err := n.Stats(ctx, time.Second)
	must(b, err)
	<-stats
	pid := pluginPID(b)
	used, begun := cpuTime(b, pid), time.Now()
	for b.Loop() {
		<-stats
	}
	if took := time.Since(begun); took > 2*time.Second {
		b.ReportMetric(100*(cpuTime(b, pid)-used).Seconds()/took.Seconds(), "%-of-a-core")
	}
}

// cpuTime is what a process has used so far.
func cpuTime(b *testing.B, pid int) time.Duration {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/schedstat", pid)); err == nil {
		var total time.Duration
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, task := range tasks {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, task.Name()))
			if err == nil {
				ns, _ := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
				total += time.Duration(ns)
			}
		}
		return total
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// BenchmarkFingerprint128 measures from the start of the plugin's process to
// the devices of 128 cards in the agent.
func BenchmarkFingerprint128(b *testing.B) {
	path := nvmltest.Build(b)
	for b.Loop() {
		n := startNode(b, nvmltest.New(b, nvmltest.Cards(128)...), path)
		devicetest.Await(b, devicetest.Follow(b, n), "128 cards", func(s device.Snapshot) bool { return len(s.Devices) == 128 })
	}
}
