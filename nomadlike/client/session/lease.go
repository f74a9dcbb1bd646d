package session

import "time"

// Lease is the time for which the servers promise not to start a node's
// strict jobs elsewhere. It counts from the moment at which the node sent
// the heartbeat that was answered, on CLOCK_BOOTTIME, never from the moment
// of the answer. The zero value is a lease that nobody has given yet.
type Lease struct {
	TTL  time.Duration // as the last Welcome said; 0: no lease is kept
	From time.Duration // CLOCK_BOOTTIME of the newest answered heartbeat
	// The newest time without a lease, on CLOCK_BOOTTIME: from the end of the one
	// before until it was given again; both 0: there was none.
	GapFrom, GapTo time.Duration
}

// Renew takes an answered heartbeat that was sent at sentAt; one that was
// answered late never shortens the lease.
func (l Lease) Renew(sentAt time.Duration) Lease {
	if end := l.From + l.TTL; l.TTL > 0 && l.From > 0 && sentAt > end {
		l.GapFrom, l.GapTo = end, sentAt
	}
	l.From = max(l.From, sentAt)
	return l
}

// Remaining is how long the lease lasts from now on, both on
// CLOCK_BOOTTIME; at most 0 when it has ended. Without a lease it is the
// greatest duration.
func (l Lease) Remaining(now time.Duration) time.Duration {
	if l.TTL <= 0 {
		return 1<<63 - 1
	}
	return l.From + l.TTL - now
}

// Lapsed reports whether there was no lease at a moment, as far as the newest gap
// says.
func (l Lease) Lapsed(at time.Duration) bool {
	return l.Remaining(at) <= 0 || at >= l.GapFrom && at < l.GapTo
}
