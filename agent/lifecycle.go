package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// lifecycle is what runs in an agent, and how it ends. The agent's parts start
// their goroutines and say how they are closed by it; only the agent begins its
// stop. Its methods may be called from any goroutine, atStop alone from that which
// opens the agent.
type lifecycle struct {
	stopping chan struct{} // closed when the stop begins; ends streams
	failed   chan error    // the first failure that ends the agent
	tasks    sync.WaitGroup
	undo     []func(context.Context) // what the stop does, last first

	stopped struct {
		sync.Once
		err error
	}
}

func newLifecycle() *lifecycle {
	return &lifecycle{stopping: make(chan struct{}), failed: make(chan error, 1)}
}

// atStop has f called by the stop, after everything that was started later has
// stopped.
func (l *lifecycle) atStop(f func(context.Context)) { l.undo = append(l.undo, f) }

// fail ends the agent, unless it is ending already.
func (l *lifecycle) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

// run has f run until it returns; the stop waits for it.
func (l *lifecycle) run(f func()) { l.tasks.Go(f) }

// follow has f run until it returns; its context ends when the stop begins.
func (l *lifecycle) follow(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	l.run(func() {
		<-l.stopping
		cancel()
	})
	l.run(func() { f(ctx) })
}

// serve has f run until it returns; an error ends the agent.
func (l *lifecycle) serve(what string, f func() error) {
	l.run(func() {
		if err := f(); err != nil {
			l.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// stop undoes in order what was opened, and waits for all that runs. Later calls
// wait for the first.
func (l *lifecycle) stop(ctx context.Context) error {
	l.stopped.Do(func() {
		close(l.stopping)
		for i := len(l.undo) - 1; i >= 0; i-- {
			l.undo[i](ctx)
		}
		l.tasks.Wait()
	})
	return l.stopped.err
}

// stopFailed keeps what the stop of a part failed with, nil: it did not. What
// atStop was given calls it.
func (l *lifecycle) stopFailed(what string, err error) {
	if err != nil {
		l.stopped.err = errors.Join(l.stopped.err, fmt.Errorf("stop %s: %w", what, err))
	}
}
