// Package run executes what the loop of a node decides: tasks are prepared, started,
// waited for, paused, signalled, stopped, found again after a restart, and cleaned up.
//
// Flow: Execute takes one effect and begins a goroutine for whatever blocks, which answers
// with an event. Tasks of which the store knows nothing wait for the servers' word.
//
// Limits: one task for each allocation.
package run
