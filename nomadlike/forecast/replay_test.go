package forecast

import "nomadlike/nomadlike/structs"

// replay is the slow and obvious way to forecast a job that is not submitted:
// it runs the scheduler through every future with the job in the queue.
func (f *Futures) replay(job *structs.Job) []sample {
	job, subjob := f.admitted(job)
	in := f.in
	in.Board = f.start.Clone()
	in.Board.Submit(job, subjob)
	again := prepare(in, f.now, f.seed)
	again.only = int(again.found[keyOf(subjob.JobID, subjob.Index)])
	again.follow()
	samples := make([]sample, len(again.futures))
	for i := range samples {
		samples[i] = again.futures[i].sampleOf(again.only)
	}
	return samples
}
