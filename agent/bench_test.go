package agent

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// BenchmarkJobs runs trivial jobs through a development agent, many at once,
// from the HTTP request to their end.
func BenchmarkJobs(b *testing.B) {
	_, client := devAgent(b)
	job := structs.Job{
		Nodes: 1, Distributed: structs.Distributed{Mode: structs.ModeSingle},
		Resources: []structs.Resources{{CPU: 0.01, Memory: structs.MiB}},
		Task:      structs.Task{Driver: "exec", Command: "true"},
	}
	b.ResetTimer()
	var submitting sync.WaitGroup
	ids := make(chan string, b.N)
	numbers := make(chan int)
	for range 16 {
		submitting.Go(func() {
			for i := range numbers {
				one := job
				one.Name = fmt.Sprintf("job-%d", i)
				submitted, err := client.SubmitJob(b.Context(), api.JobRequest{Job: &one}, "")
				if err != nil {
					b.Error(err)
					return
				}
				ids <- submitted.JobID
			}
		})
	}
	for i := range b.N {
		numbers <- i
	}
	close(numbers)
	submitting.Wait()
	close(ids)
	accepted := b.Elapsed()
	for id := range ids {
		for index := uint64(0); ; {
			found, meta, err := client.Job(b.Context(), id, &api.Query{Index: index, Wait: time.Minute, Stale: true})
			if err != nil {
				b.Fatal(err)
			}
			if found.State.Terminal() {
				break
			}
			index = meta.Index
		}
	}
	b.ReportMetric(float64(b.N)/accepted.Seconds(), "accepted/s")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "done/s")
}
