// Package hold keeps failed allocations enterable: a task without a command takes the
// place of the one that failed, with its files, environment, mounts and devices.
//
// Flow: Record stores what that takes when an allocation is prepared, SaveState saves what
// the command left in its container; the servers' word begins and ends a hold, each
// executed by a goroutine of its own.
//
// Limits: a restarted agent begins the task anew, and what ran in the old one is killed.
package hold
