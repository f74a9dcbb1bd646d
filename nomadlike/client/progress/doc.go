// Package progress watches the log of a running task: Meter holds a figure that the
// training writes with every iteration against a threshold (the performance
// watch), Pulse learns how long the task is used to be silent and reports when it
// has been for too long (the hang watch).
//
// Flow: package client reads the log, passes each line to both, measures devices
// now and then, and hands on what they tell to the servers, where the verdict on
// the whole gang falls (structs.JudgePace).
//
// Limits: pure, no clock: times are durations since any fixed moment of the
// node, which pauses do not count. A value belongs to one goroutine.
package progress
