package nvidia

import (
	"context"
	"sync"
	"time"
)

// guard keeps calls of a library that may hang from taking the plugin along.
// Of each kind of call one at a time is under way; what hangs is left behind
// with its thread, and its kind is refused until it returns.
type guard struct {
	calls sync.WaitGroup // under way
	mu    struct {
		sync.Mutex
		busy map[string]chan struct{} // closed when that call returns
	}
}

func newGuard() *guard {
	g := &guard{}
	g.mu.busy = make(map[string]chan struct{})
	return g
}

// take waits for the turn of a kind of call.
func (g *guard) take(ctx context.Context, kind string) (chan struct{}, error) {
	for {
		g.mu.Lock()
		busy := g.mu.busy[kind]
		if busy == nil {
			mine := make(chan struct{})
			g.mu.busy[kind] = mine
			g.mu.Unlock()
			return mine, nil
		}
		g.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *guard) done(kind string, mine chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.busy, kind)
	close(mine)
}

// wait waits for the calls that are under way, at most for limit.
func (g *guard) wait(limit time.Duration) {
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

// run makes one call in a goroutine of its own and waits for it or for ctx.
// hangs, when set, is told after readPatience, and again and again, that the
// call has not returned.
func run[T any](ctx context.Context, g *guard, kind string, hangs func(kind string, since time.Duration), call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	mine, err := g.take(ctx, kind)
	if err != nil {
		return none, err
	}
	answered := make(chan answer, 1)
	g.calls.Go(func() { // ends when the library returns, which may be never
		value, err := call()
		g.done(kind, mine)
		answered <- answer{value, err}
	})
	started := time.Now()
	tick := time.NewTicker(readPatience)
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
