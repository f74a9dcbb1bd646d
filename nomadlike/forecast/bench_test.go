package forecast

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// cpu is the processor time that this process has used: on a busy machine the
// clock says more about the others.
func cpu() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func count[T any](seq func(func(T) bool)) int {
	n := 0
	for range seq {
		n++
	}
	return n
}

// BenchmarkQueue forecasts a whole queue.
func BenchmarkQueue(b *testing.B) {
	for _, size := range []struct{ nodes, jobs int }{{410, 1000}} {
		b.Run(fmt.Sprintf("nodes=%d/running=%d/queued=%d", size.nodes, size.jobs, size.jobs), func(b *testing.B) {
			in := crowd(size.nodes, size.jobs, size.jobs)
			if running, queued := count(in.Board.Running()), count(in.Board.Queued()); running != size.jobs || queued != size.jobs {
				b.Fatal(running, queued)
			}
			b.ReportAllocs()
			best := time.Hour
			for b.Loop() {
				before := cpu()
				if starts := Queue(in, start, 1); len(starts) != size.jobs {
					b.Fatal(len(starts))
				}
				best = min(best, cpu()-before)
			}
			b.ReportMetric(float64(best.Microseconds())/1000, "best-cpu-ms/op")
		})
	}
}

// BenchmarkJob forecasts one job more, with what would help it, from futures
// that are there.
func BenchmarkJob(b *testing.B) {
	for _, shape := range []struct{ nodes, devices int }{{1, 1}, {1, 8}, {4, 8}} {
		b.Run(fmt.Sprintf("nodes=%d/devices=%d", shape.nodes, shape.devices), func(b *testing.B) {
			f := Look(crowd(410, 1000, 1000), start, 1)
			job := testJob("", shape.nodes, shape.devices, 10*time.Hour)
			job.User, job.Project, job.Name = "u03", "p3", "train-1"
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				before := cpu()
				if answer := f.Job(job); answer.Verdict != VerdictLater {
					b.Fatal(answer.Verdict)
				}
				took = append(took, cpu()-before)
			}
			slices.Sort(took)
			b.ReportMetric(float64(rank(took, 0.5).Microseconds())/1000, "p50-cpu-ms")
			b.ReportMetric(float64(took[0].Microseconds())/1000, "best-cpu-ms")
		})
	}
}
