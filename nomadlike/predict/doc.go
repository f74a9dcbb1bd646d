// Package predict learns run times from runs that ended, and corrects
// forecasts of waits by how earlier ones came out.
//
// Run times. Model.Learn takes each ended attempt. People submit in bursts: a
// sweep of two hundred jobs in ten minutes, of which all run about as long,
// while the next burst may run a hundred times longer. So the unit of learning
// is the burst, the jobs of one project, user and size in one pool that were
// submitted within gapMax of each other. An estimate for a job is a mixture
// over bursts like its own:
//
//	runs that ended ──► burst tallies ──► candidates: same program, user, size, pool
//	                                           │ weighed by level (learned online), recency, and by
//	                                           │ how well they explain what the burst shows already
//	running jobs ─────► censored at elapsed ───┤
//	                                           ▼
//	            survival curve of the burst = its own runs + the candidate's as prior
//
// Tallies are counts of ends and of runs at risk in bins of equal width in the
// logarithm of time, so runs that still go on count as what they are: longer
// than so far. time_limit joins as a candidate too, through what is
// known of the ratio between it and the truth; it also bounds. expected_runtime is
// what a user says of this very job: nearly all of the weight is its own
// (statedShare), through what is known of the ratio between what the user said of
// jobs that came to their end, and the truth.
//
// Model.Outlook fixes the view at one instant, with the running jobs. From it
// come an Estimate for one job, and a Draw: one possible future in which all
// jobs of a burst share their candidate, because a sweep that surprises does
// so as a whole. Sums over many jobs are far too certain otherwise.
//
// Everything here is pure and deterministic: no clock, no chance but a seed,
// and the same calls in the same order give the same answers. Memory is
// bounded by burstsMax tallies of about four kilobytes, whatever is learned.
//
// Limits: a Model, and the outlooks made of it, belong to one goroutine at a
// time. Only identity, size and history count; what a program does is not
// looked at.
package predict
