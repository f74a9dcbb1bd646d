package server

import (
	"sync/atomic"
	"time"
)

// contactLasts is how long a server renews leases after it last knew a leader.
// Who restarts a strict job elsewhere waits for as much longer than a lease.
const contactLasts = 2500 * time.Millisecond

// contact is when this server was last known to be part of the cluster: it led,
// or the leader answered it. A server that is cut off with some nodes goes on
// hearing them, but must not renew their leases: the leader counts those nodes
// as silent, and may give their work to others.
type contact struct {
	began time.Time
	last  atomic.Int64 // nanoseconds after began
}

func newContact() *contact { return &contact{began: time.Now()} }

// made notes contact with the leader, as of when it was asked.
func (c *contact) made(asked time.Time) {
	at := int64(asked.Sub(c.began))
	for {
		last := c.last.Load()
		if at <= last || c.last.CompareAndSwap(last, at) {
			return
		}
	}
}

// recent reports whether contact is recent. A server that just began counts as in
// contact: no node is registered through it without the leader.
func (c *contact) recent() bool {
	return time.Since(c.began)-time.Duration(c.last.Load()) <= contactLasts
}
