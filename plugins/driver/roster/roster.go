// Package roster keeps the tasks of a driver and the goroutines that it has for
// them, as every driver inside of the agent must.
//
// Flow: a driver adds a task before it starts or recovers it, which takes its id;
// finds it for each request; and forgets it when it is destroyed. What works on
// after a call has returned is run by Go. Close refuses both from then on, ends
// the life that those goroutines look at, and waits for them.
//
// Limits: it knows nothing of what a task is, and touches none.
package roster

import (
	"context"
	"fmt"
	"sync"

	"nomadlike/plugins/driver"
)

// Roster is the tasks of one driver, by id. See New. Its methods may be called
// from any goroutine; none but Close blocks.
type Roster[T any] struct {
	life   context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu struct {
		sync.Mutex
		closed bool
		tasks  map[driver.TaskID]T
	}
}

// New makes an empty roster. The caller closes it.
func New[T any]() *Roster[T] {
	r := &Roster[T]{}
	r.mu.tasks = make(map[driver.TaskID]T)
	r.life, r.cancel = context.WithCancel(context.Background())
	return r
}

// Life is cancelled by Close: what Go has started ends with it.
func (r *Roster[T]) Life() context.Context { return r.life }

// Close ends the life of the roster and waits for what Go has started. It reports
// whether it did: an earlier call may have.
func (r *Roster[T]) Close() bool {
	r.mu.Lock()
	closed := r.mu.closed
	r.mu.closed = true
	r.mu.Unlock()
	if closed {
		return false
	}
	r.cancel()
	r.work.Wait()
	return true
}

// Go runs f in a goroutine that Close waits for; it reports whether it could,
// which it cannot after Close.
func (r *Roster[T]) Go(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return false
	}
	r.work.Go(f)
	return true
}

// Find returns a task, or driver.ErrUnknownTask.
func (r *Roster[T]) Find(id driver.TaskID) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.mu.tasks[id]
	if !ok {
		return t, fmt.Errorf("task %s: %w", id, driver.ErrUnknownTask)
	}
	return t, nil
}

// Add makes a task known, unless its id is taken (driver.ErrTaskExists) or the
// roster is closed (driver.ErrUnavailable).
func (r *Roster[T]) Add(id driver.TaskID, t T) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return fmt.Errorf("task %s: %w", id, driver.ErrUnavailable)
	}
	if _, taken := r.mu.tasks[id]; taken {
		return fmt.Errorf("task %s: %w", id, driver.ErrTaskExists)
	}
	r.mu.tasks[id] = t
	return nil
}

// Forget makes a task unknown.
func (r *Roster[T]) Forget(id driver.TaskID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.tasks, id)
}
