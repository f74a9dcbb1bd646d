package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nomadlike/plugins/driver"
)

// box is a container as the engine has it: what is done to it past its init.
type box struct {
	engine *engine
	id     string
}

// thaw lets a container run on whose init does not answer because somebody
// has paused it past this driver.
func (b box) thaw(life context.Context, answered <-chan struct{}) {
	timer := time.NewTimer(thawDelay)
	defer timer.Stop()
	select {
	case <-answered:
		return
	case <-life.Done():
		return
	case <-timer.C:
	}
	ctx, cancel := context.WithTimeout(life, askPatience)
	defer cancel()
	if state, err := b.engine.inspect(ctx, b.id); err == nil && state.Paused {
		_ = b.engine.unpause(ctx, b.id) // the kill after the grace does it again
	}
}

// killLater has the engine kill the container after a while, and again and again
// until the task has ended. It tells each time that it could not.
func (b box) killLater(life context.Context, ended <-chan struct{}, delay time.Duration, tell func(error)) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return
		case <-life.Done():
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(life, askPatience)
		_ = b.engine.unpause(ctx, b.id) // refused when it is not paused
		err := b.engine.kill(ctx, b.id, "SIGKILL")
		if state, lookErr := b.engine.inspect(ctx, b.id); err != nil && (lookErr != nil || state.Running) {
			tell(err)
		}
		cancel()
		timer.Reset(askPatience)
	}
}

// freeze pauses or continues the container, and returns when the engine knows
// that it is so: it learns of it later than it does it, and until then it
// would refuse the opposite. Busy processes may take several tries to stop,
// and old engines give up early.
func (b box) freeze(ctx context.Context, frozen bool) error {
	act := b.engine.unpause
	if frozen {
		act = b.engine.pause
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	done := false // the engine said so
	for pause := lookFirst; ; pause = min(pause*2, lookSlow) {
		var err error
		if !done {
			err = act(ctx, b.id)
			done = err == nil
		}
		state, lookErr := b.engine.inspect(ctx, b.id)
		switch {
		case lookErr == nil && !state.Running:
			return driver.ErrTaskEnded
		case lookErr == nil && state.Paused == frozen:
			return nil
		case err != nil && !strings.Contains(err.Error(), "unable to freeze"):
			return engineError(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return engineError(errors.Join(ctx.Err(), err))
		}
	}
}

// remove has the engine remove the container. The engine has patience
// for it; waiting for other removals is bounded by ctx only. The engine learns
// of an end later than its container's init has told of it: one that is asked
// to remove what it believes to run kills it, and old engines are known to lock
// themselves up when the end comes in between.
func (b box) remove(ctx context.Context, patience time.Duration, over bool) error {
	removals := b.engine.removals
	if err := removals.enter(ctx); err != nil {
		return fmt.Errorf("wait to remove container: %w", err)
	}
	defer removals.leave()
	settle := refusalPatience
	if over {
		settle = endPatience
	}
	settling, settled := context.WithTimeout(ctx, settle)
	_ = b.engine.awaitEnd(settling, b.id) // one that does not end is killed
	settled()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return b.engine.remove(ctx, b.id)
}

// stoppedItself tells a signal from inside the container from one by other
// hands: those go through the engine, which remembers it. An engine that is
// about to end itself does not answer any more.
func (b box) stoppedItself(ctx context.Context, started time.Time) bool {
	signalled, err := b.engine.signalled(ctx, b.id, started)
	return err == nil && !signalled
}
