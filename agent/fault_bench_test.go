package agent

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// BenchmarkFaultToSignal measures from an error that the vendor's library
// reports to the signal in the process of the job on that card, through plugin,
// agent and supervisor. The card is reset and comes back.
func BenchmarkFaultToSignal(b *testing.B) {
	c := newMaker(b).start(b, 32) // one is away for a while after its reset
	const command = `bash -c 'end() { echo $EPOCHREALTIME; kill $!; exit 0; }; trap end TERM; sleep 1000 & echo up; while :; do wait; done'`
	var took []time.Duration
	for i := 0; b.Loop(); i++ { // a job of its own each time: one that loses its card often waits longer
		job := runJob(b, c.client, onCards("bench-"+strconv.Itoa(i), 1, command), structs.JobRunning)
		alloc := allocOf(b, c.client, job.Job.ID)
		eventually.Within(b, time.Minute, "the job runs", func() bool {
			return logsOf(b, c.client, alloc.ID, api.LogOptions{}) == "up\n"
		})
		begun := time.Now()
		c.Happen(alloc.Devices[0] + " xid=95")
		var text string
		eventually.Within(b, time.Minute, "the job is signalled", func() bool {
			text = logsOf(b, c.client, alloc.ID, api.LogOptions{})
			return strings.Count(text, "\n") == 2
		})
		seconds, err := strconv.ParseFloat(strings.Fields(text)[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.UnixMicro(int64(seconds*1e6)).Sub(begun))
		if _, err := c.client.StopJob(b.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
