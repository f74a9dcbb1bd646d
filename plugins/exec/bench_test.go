package exec_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/exec/supervisor"
)

// variants are the ways of running a supervisor and a task.
func variants(b *testing.B) map[string]func(*exec.Config) {
	small := builtSupervisor(b)
	return map[string]func(*exec.Config){
		"small":   func(c *exec.Config) { c.Supervisor = small },
		"self":    func(c *exec.Config) { c.Supervisor = []string{"/proc/self/exe", supervisor.Argument} },
		"raw":     func(c *exec.Config) { c.Supervisor, c.Isolation = small, exec.IsolationRaw },
		"private": func(c *exec.Config) { c.Supervisor, c.View = small, exec.ViewPrivate },
	}
}

// BenchmarkStart measures Start, from the spec to a command that has been
// executed, with the task's own host name and hosts file.
func BenchmarkStart(b *testing.B) {
	for name, variant := range variants(b) {
		b.Run(name, func(b *testing.B) {
			d := open(b, variant)
			base := drivertest.Spec(b, "/bin/sleep", "1000")
			base.Hostname, base.Hosts = "rank-0", []string{"127.0.0.1 localhost", "127.0.0.1 rank-0"}
			var starts, ends []time.Duration
			for i := 0; b.Loop(); i++ {
				spec := base
				spec.ID = driver.TaskID(fmt.Sprintf("bench-%d", i))
				spec.LogDir = fmt.Sprintf("%s-%d", base.LogDir, i)
				begun := time.Now()
				if _, err := d.Start(context.Background(), spec); err != nil {
					b.Fatal(err)
				}
				starts = append(starts, time.Since(begun))
				begun = time.Now()
				if err := d.Destroy(context.Background(), spec.ID); err != nil {
					b.Fatal(err)
				}
				ends = append(ends, time.Since(begun))
			}
			report(b, "start", starts)
			report(b, "destroy", ends)
		})
	}
}

// BenchmarkTrivial measures whole lives of tasks that do nothing, several at
// a time: what bounds the rate of short jobs on one node.
func BenchmarkTrivial(b *testing.B) {
	const atOnce = 8
	for name, variant := range variants(b) {
		b.Run(name, func(b *testing.B) {
			d := open(b, variant)
			base := drivertest.Spec(b, "/bin/true")
			base.Hostname, base.Hosts = "rank-0", []string{"127.0.0.1 localhost"}
			var next atomic.Int64
			b.SetParallelism(atOnce)
			b.RunParallel(func(loop *testing.PB) {
				for loop.Next() {
					spec := base
					number := next.Add(1)
					spec.ID = driver.TaskID(fmt.Sprintf("trivial-%d", number))
					spec.LogDir = fmt.Sprintf("%s-%d", base.LogDir, number)
					_, err := d.Start(context.Background(), spec)
					if err == nil {
						_, err = d.Wait(context.Background(), spec.ID)
					}
					if err == nil {
						err = d.Destroy(context.Background(), spec.ID)
					}
					if err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

func report(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[0].Microseconds())/1000, what+"-min-ms") // as far as a busy machine lets it be seen
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, what+"-p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, what+"-p99-ms")
}

// BenchmarkMemory measures what a running task's supervisor costs: memory
// that no other process shares, and its proportional share of the rest.
func BenchmarkMemory(b *testing.B) {
	const tasks = 20
	for name, variant := range variants(b) {
		b.Run(name, func(b *testing.B) {
			d := open(b, variant)
			var supervisors []int
			for i := range tasks {
				spec := drivertest.Spec(b, "/bin/sleep", "1000")
				spec.ID = driver.TaskID(fmt.Sprintf("memory-%d", i))
				spec.Hostname, spec.Hosts = "rank-0", []string{"127.0.0.1 localhost"}
				handle := drivertest.Start(b, d, spec)
				state, err := supervisor.DecodeState(handle.State)
				if err != nil {
					b.Fatal(err)
				}
				supervisors = append(supervisors, state.Supervisor.PID)
			}
			settle := time.NewTimer(time.Second)
			<-settle.C
			var private, proportional, threads int
			for b.Loop() {
				private, proportional, threads = 0, 0, 0
				for _, pid := range supervisors {
					figures := rollup(b, pid)
					private += figures["Private_Clean:"] + figures["Private_Dirty:"]
					proportional += figures["Pss:"]
					p, err := proctree.Read(pid)
					if err != nil {
						b.Fatal(err)
					}
					threads += p.Threads
				}
			}
			b.ReportMetric(float64(private)/tasks/1024, "private-MB")
			b.ReportMetric(float64(proportional)/tasks/1024, "pss-MB")
			b.ReportMetric(float64(threads)/tasks, "threads")
		})
	}
}

// rollup returns the sums of a process's memory map, in KiB.
func rollup(b *testing.B, pid int) map[string]int {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	figures := make(map[string]int)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 3 {
			figures[words[0]], _ = strconv.Atoi(words[1])
		}
	}
	return figures
}

// BenchmarkIsolation measures what isolation adds to a start, in pairs of a raw
// and an isolated one, one right after the other: on a busy machine both meet
// the same neighbours. cpu is what driver and supervisor compute for it.
func BenchmarkIsolation(b *testing.B) {
	all := variants(b)
	names := []string{"raw", "small"}
	drivers := make([]*exec.Driver, len(names))
	for i, name := range names {
		drivers[i] = open(b, all[name])
	}
	took, computed := make([][]time.Duration, len(names)), make([][]time.Duration, len(names))
	var differences []time.Duration
	counted := make(map[string]time.Duration) // by thread: supervisors have many tasks
	base := drivertest.Spec(b, "/bin/sleep", "1000")
	base.Hostname, base.Hosts = "rank-0", []string{"127.0.0.1 localhost", "127.0.0.1 rank-0"}
	base.Resources = driver.Resources{CPU: 1, Memory: 1 << 30}
	for round := 0; b.Loop(); round++ {
		for turn := range names {
			i := (turn + round) % len(names) // neither is always the first
			spec := base
			spec.ID = driver.TaskID(fmt.Sprintf("pair-%d-%d", i, round))
			spec.LogDir = fmt.Sprintf("%s-%d-%d", base.LogDir, i, round)
			before := ownTime(b)
			begun := time.Now()
			handle, err := drivers[i].Start(context.Background(), spec)
			if err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begun))
			computed[i] = append(computed[i], ownTime(b)-before+runTime(b, stateOf(b, handle).Supervisor.PID, counted))
			if err := drivers[i].Destroy(context.Background(), spec.ID); err != nil {
				b.Fatal(err)
			}
		}
		differences = append(differences, took[1][round]-took[0][round])
	}
	for i, name := range names {
		report(b, name, took[i])
		report(b, name+"-cpu", computed[i])
	}
	report(b, "difference", differences)
}

// ownTime is the processor time of this process.
func ownTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// runTime is the processor time of the living threads of a process, as the
// scheduler counts it, since it was last asked for.
func runTime(b *testing.B, pid int, counted map[string]time.Duration) (sum time.Duration) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		if ns, err := strconv.ParseInt(first, 10, 64); err == nil {
			sum += time.Duration(ns) - counted[path]
			counted[path] = time.Duration(ns)
		}
	}
	return sum
}
