// Package trace replays recorded workloads through the production scheduler
// and state in virtual time, so that what a change of the scheduler does to
// waiting can be measured, and forecasts can be scored against what happened.
//
// Flow: Read parses a trace (CSV of the columns below, or the Standard
// Workload Format), ReadPools the sizes of the pools; Replay submits each job
// at its time, lets it run for as long as it ran, and returns a Report. Generate
// makes synthetic traces for tests.
//
//	job_id,user,group,submit_s,start_s,duration_s,gpus,nodes,cpus,time_limit_s,state,name
//
// The clock is an agenda of submissions and endings. At each instant that has
// any, endings come first, then submissions in the order of the file, and then
// the scheduler decides once.
//
// Limits: only devices are replayed, not cores or memory; jobs neither fail
// nor restart: one that failed in the trace holds its devices for as long as
// it did there. Nodes never break. A job that is preempted goes on where it
// was, as if it had saved a checkpoint in that moment, at no cost.
package trace
