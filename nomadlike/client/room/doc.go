// Package room bounds what an allocation takes of the node's disk.
//
// Flow: a quota is set where the file system keeps quotas; everywhere the directory of
// a running task, its logs and the layer of its container are measured, and a task that
// takes too much is ended by an event.
//
// Limits: between two measurements a task without a quota may write more.
package room
