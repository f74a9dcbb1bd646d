// Package forecast reports when jobs will start: the queue as it stands, a job
// that is not submitted yet, and both after the changes of a what-if.
//
// The production scheduler is run forward in virtual time on copies of its
// board, once for each of some sampled futures. In a future every gang has one
// run time, drawn from what is known of it:
//
//	board ──Clone──► Pass at now ──┬──► future 1: Pass, End, Pass, End … until
//	                 (explains,    ├──► future 2   everybody asked about has
//	                  names        ┊               started, or a bound is met
//	                  victims)     └──► future n
//	                                        │ start of each queued subjob
//	                                        ▼
//	        sorted samples ──Calibration──► point, P50, P90 ──► Queue, WhatIf
//	                                        │ who uses what from when to when
//	                                        ▼
//	        traces of the futures ──► Job, its Helps, Timeline
//
// Look makes the futures, the rest reads them: a server looks when its board
// changed and answers from the same Futures until it looks again. Queue, Job
// and Timeline as functions look first. A new job is asked of the board itself
// whether it starts now, under which alternative, and whom it would end; when
// it has to wait, it is put into the trace of each future, which takes a
// fraction of the time that running the scheduler again would take. See
// newcomer for where that is exact.
//
// A future knows the restarts of today but none of its own: nodes stay as they
// are, nobody submits, and what is preempted runs again. Times beyond the
// horizon, or beyond the bounds on work, are lower bounds and marked so.
//
// Everything here is a function of its arguments. One goroutine at a time may
// use a Futures, and while Look or a function of that kind runs, nobody else
// the board or the run times it was given.
package forecast
