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
	"slices"
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
		busy map[string]*turn // kinds of which a call is under way, or kept from happening
	}
}

// turn is who waits for a kind of call, in the order of arrival: one that calls
// again and again would else never let another one in.
type turn struct{ waiting []chan struct{} }

// New makes a guard.
func New() *Guard {
	g := &Guard{}
	g.mu.busy = make(map[string]*turn)
	return g
}

// Take waits for the turn of a kind of call, for a caller that wants to keep
// that kind from happening. Done passes the turn to the next one.
func (g *Guard) Take(ctx context.Context, kind string) (done func(), err error) {
	done = func() { g.pass(kind) }
	g.mu.Lock()
	t := g.mu.busy[kind]
	if t == nil {
		g.mu.busy[kind] = &turn{}
		g.mu.Unlock()
		return done, nil
	}
	mine := make(chan struct{})
	t.waiting = append(t.waiting, mine)
	g.mu.Unlock()
	select {
	case <-mine:
		return done, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	at := slices.Index(t.waiting, mine)
	if at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
	}
	g.mu.Unlock()
	if at < 0 { // the turn came in the same moment
		done()
	}
	return nil, ctx.Err()
}

// pass passes the turn of a kind to whoever has waited longest.
func (g *Guard) pass(kind string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.mu.busy[kind]
	if len(t.waiting) == 0 {
		delete(g.mu.busy, kind)
		return
	}
	close(t.waiting[0])
	t.waiting = t.waiting[1:]
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
