// Package guard keeps calls of a vendor's library that may hang from taking a
// plugin along.
//
// Flow: a plugin makes every call of the library through Run, in a goroutine
// of its own; of each kind of call one at a time is under way. What hangs is
// left behind with its thread, callers get their context's error, and calls of
// its kind wait until it returns.
//
// Limits: a call that hangs for ever costs a thread for ever; the plugin gives
// its process up then.
package guard

import (
	"context"
	"sync"
	"time"
)

// Patience is how long a call may take before its caller is told that it
// hangs, and again and again after that.
const Patience = 5 * time.Second

// Guard serialises calls by kind. See New.
type Guard struct {
	calls sync.WaitGroup // under way
	mu    struct {
		sync.Mutex
		busy map[string]chan struct{} // closed when that call returns
	}
}

// New makes a guard.
func New() *Guard {
	g := &Guard{}
	g.mu.busy = make(map[string]chan struct{})
	return g
}

// Take waits for the turn of a kind of call, for a caller that wants to keep
// that kind from happening. Done gives the turn back.
func (g *Guard) Take(ctx context.Context, kind string) (done func(), err error) {
	for {
		g.mu.Lock()
		busy := g.mu.busy[kind]
		if busy == nil {
			mine := make(chan struct{})
			g.mu.busy[kind] = mine
			g.mu.Unlock()
			return func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				delete(g.mu.busy, kind)
				close(mine)
			}, nil
		}
		g.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Wait waits for the calls that are under way, at most for limit.
func (g *Guard) Wait(limit time.Duration) {
	all := make(chan struct{})
	go func() { // ends with the calls
		g.calls.Wait()
		close(all)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
	}
}

// Run makes one call in a goroutine of its own and waits for it or for ctx.
// hangs, when set, is told after Patience, and again and again, that the call
// has not returned.
func Run[T any](ctx context.Context, g *Guard, kind string, hangs func(kind string, since time.Duration), call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	done, err := g.Take(ctx, kind)
	if err != nil {
		return none, err
	}
	answered := make(chan answer, 1)
	g.calls.Go(func() { // ends when the library returns, which may be never
		value, err := call()
		done()
		answered <- answer{value, err}
	})
	started := time.Now()
	tick := time.NewTicker(Patience)
	defer tick.Stop()
	for {
		select {
		case a := <-answered:
			return a.value, a.err
		case <-ctx.Done():
			return none, ctx.Err()
		case <-tick.C:
			if hangs != nil {
				hangs(kind, time.Since(started))
			}
		}
	}
}
