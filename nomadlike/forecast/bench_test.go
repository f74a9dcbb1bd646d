package forecast

import (
	"fmt"
	"testing"
)

// BenchmarkQueue forecasts a whole queue.
func BenchmarkQueue(b *testing.B) {
	for _, size := range []struct{ nodes, jobs int }{{350, 1000}} {
		b.Run(fmt.Sprintf("nodes=%d/running=%d/queued=%d", size.nodes, size.jobs, size.jobs), func(b *testing.B) {
			in := crowd(size.nodes, size.jobs, size.jobs)
			running, queued := 0, 0
			for range in.Board.Running() {
				running++
			}
			for range in.Board.Queued() {
				queued++
			}
			b.Logf("running %d, queued %d", running, queued)
			b.ReportAllocs()
			for b.Loop() {
				if starts := Queue(in, start, 1); len(starts) != queued {
					b.Fatal(len(starts))
				}
			}
		})
	}
}
