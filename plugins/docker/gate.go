package docker

import "context"

// callsAtOnce bounds how many containers the engine is asked to start, and how
// many to remove, at one time. Each such call makes it run several programs and
// change mounts and cgroups: an engine that is asked for fifty at once finishes
// none of them for a long time, and answers nobody else meanwhile, while the
// same calls in turns take no longer in all.
const callsAtOnce = 8

// gate lets a bounded number of calls through at a time, in the order in which
// they came.
type gate chan struct{}

func newGate() gate { return make(gate, callsAtOnce) }

// enter waits for a place. When it returns nil the caller calls leave.
func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }
