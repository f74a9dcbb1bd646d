package agent

import (
	"log/slog"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
)

// removalHeard is how long the other servers must say without exception that
// this one was removed before it believes it: one of them may lag behind an
// administrator who has just let it back in.
const removalHeard = 3 * time.Second

// dismissal is what this server hears of its own removal. A removed server gets
// no more of the log, so it has to ask.
type dismissal struct {
	id   string // of this server
	node bool   // its agent is a node as well
	log  *slog.Logger
	fail func(error) // ends the agent

	mu    sync.Mutex
	since time.Time // when the first said so; zero: nobody, or somebody said otherwise
	told  bool
}

// hear notes one server's answer, and tells once when it is to be believed.
func (r *dismissal) hear(removed bool, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !removed:
		r.since, r.told = time.Time{}, false
		return false
	case r.since.IsZero():
		r.since = now
		return false
	case r.told || now.Sub(r.since) < removalHeard:
		return false
	}
	r.told = true
	return true
}

func (r *dismissal) believed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// take takes another server's word on whether this one was removed. A
// server stops then, and says why. One whose agent is a node as well stays for
// the node's sake, and is a server no more: it gets no log and has no vote.
func (r *dismissal) take(removed bool) {
	if !r.hear(removed, time.Now()) {
		return
	}
	err := structs.NewError(structs.CodeConflict, "agent.refuse.removed", "id", r.id)
	if r.node {
		r.log.Error("this server was removed; its node goes on", logkey.Error, err)
		return
	}
	r.fail(err)
}
