package httpapi

import (
	"sync"

	"nomadlike/agent/httpapi/front"
)

// turns bounds how many large bodies are taken into memory at once: of all callers, and
// of each.
type turns struct {
	all  chan struct{}
	each int

	mu struct {
		sync.Mutex
		callers map[string]*turnsOf // by token
	}
}

// turnsOf is who has bodies taken now, or waits for it.
type turnsOf struct {
	slots   chan struct{}
	waiting int
}

func newTurns(all, each int) *turns {
	t := &turns{all: make(chan struct{}, all), each: each}
	t.mu.callers = make(map[string]*turnsOf)
	return t
}

// turn waits until the body of a caller may be taken into memory; the function that
// it returns makes room for the next one.
func (t *turns) turn(r *front.Request) (func(), error) {
	key := r.Caller.Token.ID
	t.mu.Lock()
	caller := t.mu.callers[key]
	if caller == nil {
		caller = &turnsOf{slots: make(chan struct{}, t.each)}
		t.mu.callers[key] = caller
	}
	caller.waiting++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if caller.waiting--; caller.waiting == 0 {
			delete(t.mu.callers, key)
		}
	}
	select {
	case caller.slots <- struct{}{}:
	case <-r.Context().Done():
		leave()
		return nil, r.Context().Err()
	}
	select {
	case t.all <- struct{}{}:
	case <-r.Context().Done():
		<-caller.slots
		leave()
		return nil, r.Context().Err()
	}
	return func() {
		<-t.all
		<-caller.slots
		leave()
	}, nil
}
