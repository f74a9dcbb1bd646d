package notify

import (
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// What is told of waiting and of time limits where a person says nothing of it.
const (
	WaitLonger = structs.Duration(time.Hour)
	ExpireIn   = structs.Duration(30 * time.Minute)
)

// KindOf is the kind of happening that an event is, "" for one that nobody is told of.
// before is how the attempt before the event's ended, asked where it matters.
func KindOf(event *structs.Event, before func() structs.Outcome) string {
	switch id := event.ID; id {
	case "event.job.running":
		if outcome := before(); outcome == structs.OutcomeFailed || outcome == structs.OutcomeLost {
			return structs.NotifyResumed
		}
		return structs.NotifyStarted
	case "event.job.failed", "event.job.failed_unrun":
		return structs.NotifyFailed
	case "event.job.succeeded":
		return structs.NotifySucceeded
	case "event.job.expired", "event.job.withdrawn":
		return structs.NotifyExpired
	case "event.attempt.preempted":
		return structs.NotifyPreempted
	case "event.alloc.held":
		return structs.NotifyHeld
	case "event.alloc.slow", "event.alloc.evicted": // event.alloc.slow_stays comes with event.alloc.slow
		return structs.NotifySlow
	case "event.node.lost":
		return structs.NotifyNodes
	case "event.node.device_unwell", "event.node.device_suspect", "event.node.device_gone":
		return structs.NotifyDevices
	case "event.cluster.server_full", "event.cluster.backup_failed":
		return structs.NotifyServers
	default:
		if strings.HasPrefix(id, "event.attempt.hangs") {
			return structs.NotifySlow
		}
	}
	return ""
}

// Spans are how long a job waits when that is told, and how long before its time limit
// that is, as a person chose.
func Spans(settings *structs.NotifySettings) (wait, expire structs.Duration) {
	wait, expire = WaitLonger, ExpireIn
	if settings != nil && settings.WaitLonger > 0 {
		wait = settings.WaitLonger
	}
	if settings != nil && settings.ExpireIn > 0 {
		expire = settings.ExpireIn
	}
	return wait, expire
}
