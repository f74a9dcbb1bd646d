// Package watch looks after tasks that run: their checkpoints, whether they hang or
// slow down, whether their devices rest, their environment, their node and its network,
// and why they failed.
//
// Flow: Begin starts a watcher for a task, the function that it returns ends it after a
// last look; what is found goes to the servers as notes.
//
// Limits: it stops nothing: a gang that has to leave is evicted by the loop.
package watch
