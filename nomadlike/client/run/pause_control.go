package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

const (
	// ControlPatience is how long a driver that cannot be asked may keep a gang
	// from standing still: the other ranks wait for this one, standing still.
	ControlPatience = 10 * time.Second
	// letGoPatience bounds the last Continue of an agent that stops.
	letGoPatience = 2 * time.Second
)

// pauseControl has one command do what people want of it. The loop gives orders;
// one goroutine executes them, the newest last.
type pauseControl struct {
	orders chan structs.Control // holds at most the newest; the loop is the only sender
	cancel context.CancelFunc
	over   chan struct{} // closed when the goroutine has ended
}

// control hands an order to the goroutine of a runner, which the first one
// starts.
func (x *Runs) control(work context.Context, r *runner, order structs.Control) {
	if r.control == nil {
		ctx, cancel := context.WithCancel(work)
		s := &pauseControl{orders: make(chan structs.Control, 1), cancel: cancel, over: make(chan struct{})}
		r.control = s
		d := x.Drivers[r.Driver]
		x.Work.Go(func() {
			defer close(s.over)
			defer cancel()
			if d != nil {
				(&pauseController{events: x.Inbox, log: x.Log, id: r.ID, driver: d, orders: s.orders}).run(ctx)
			}
		})
	}
	select {
	case <-r.control.orders: // overtaken
	default:
	}
	r.control.orders <- order
}

// letGo ends the pause control of a runner, and returns the channel that is closed
// when nothing holds its command any more but a pause, which the driver's Stop
// undoes.
func (r *runner) letGo() <-chan struct{} {
	if r.control == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	r.control.cancel()
	return r.control.over
}

// pauseController is the goroutine's own.
type pauseController struct {
	events loop.Events
	log    *slog.Logger
	id     string
	driver driver.Driver
	orders chan structs.Control

	order structs.Control // the newest
	held  bool            // by the throttle that this goroutine drives
}

// Run executes orders until ctx is cancelled.
func (s *pauseController) run(ctx context.Context) {
	turn := time.NewTimer(time.Hour) // of the throttle
	turn.Stop()
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			s.leave(ctx)
			return
		case s.order = <-s.orders:
			turn.Stop()
			if s.obey(ctx) && s.cycles() {
				turn.Reset(s.order.Busy.Std())
			}
		case <-turn.C:
			turn.Reset(s.turn(ctx))
		}
	}
}

// cycles reports whether this goroutine has to let the command run and stand
// still in turns, because its driver cannot.
func (s *pauseController) cycles() bool {
	_, able := s.driver.(driver.Throttler)
	return !able && s.order.Throttled() && !s.order.Paused
}

// turn begins the other part of the cycle and returns how long it takes. A turn
// that fails is tried again: the command runs longer than asked meanwhile.
func (s *pauseController) turn(ctx context.Context) time.Duration {
	if s.held {
		if s.driver.Continue(ctx, alloc.TaskID(s.id)) == nil {
			s.held = false
		}
		return s.order.Busy.Std()
	}
	if s.driver.Pause(ctx, alloc.TaskID(s.id)) != nil {
		return s.order.Busy.Std()
	}
	s.held = true
	return s.order.Idle.Std()
}

// leave lets a command run that only the throttle of this goroutine holds. An
// agent that comes back throttles it again.
func (s *pauseController) leave(ctx context.Context) {
	if !s.held {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), letGoPatience)
	defer cancel()
	if err := s.driver.Continue(last, alloc.TaskID(s.id)); err != nil && !gone(err) {
		s.log.Warn("throttled task stands still", logkey.AllocID, s.id, logkey.Error, err)
	}
}

// obey executes the newest order and answers it. It reports whether it did.
func (s *pauseController) obey(ctx context.Context) bool {
	answer := structs.ControlAnswer{Seq: s.order.Seq}
	err := s.insist(ctx)
	switch {
	case err != nil && (ctx.Err() != nil || gone(err) || len(s.orders) > 0):
		return false // its end will be told, or a newer order answered
	case err != nil:
		s.log.Warn("task does not do what was asked", logkey.AllocID, s.id, logkey.Error, err)
		answer.Failed = structs.NewReason("client.control_failed", "cause", err)
	}
	s.events.Event(s.id, alloc.Controlled{Answer: answer})
	return err == nil
}

// gone reports whether a task has nothing left to control.
func gone(err error) bool {
	return errors.Is(err, driver.ErrTaskEnded) || errors.Is(err, driver.ErrUnknownTask)
}

// insist tries an order again while the driver cannot be asked: to let a
// command run as long as it takes, to hold it only for a while.
func (s *pauseController) insist(ctx context.Context) error {
	begun := time.Now()
	pause := retry.First
	for {
		err := s.execute(ctx)
		lasting := err == nil || gone(err) || len(s.orders) > 0
		holds := s.order.Paused || s.order.Throttled()
		if lasting || holds && (!errors.Is(err, driver.ErrUnavailable) || time.Since(begun) > ControlPatience) {
			return err
		}
		if !retry.Sleep(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, retry.Most)
	}
}

// execute asks the driver once.
func (s *pauseController) execute(ctx context.Context) error {
	task := alloc.TaskID(s.id)
	if throttler, able := s.driver.(driver.Throttler); able {
		if err := throttler.Throttle(ctx, task, s.order.Busy.Std(), s.order.Idle.Std()); err != nil {
			return err
		}
	}
	if s.order.Paused {
		if err := s.driver.Pause(ctx, task); err != nil {
			return err
		}
		s.held = false // it is held by the pause now
		return nil
	}
	if err := s.driver.Continue(ctx, task); err != nil {
		return err
	}
	s.held = false
	return nil
}
