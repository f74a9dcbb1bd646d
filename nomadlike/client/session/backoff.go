package session

import "time"

// Waiting times between attempts to reach a server.
const (
	// RetryMax is the longest wait after every known server was tried, each
	// once; the wait is random below it.
	RetryMax = 250 * time.Millisecond
	// MassLossAfter is how long no server must have answered until the node
	// takes it for an outage of all of them, with every other node waiting
	// as well.
	MassLossAfter = 5 * time.Second
	// MassLossRetryMax replaces RetryMax then, so that the nodes do not all
	// come back in the same moment.
	MassLossRetryMax = 2 * time.Second
)

// Backoff is the wait before the next attempt. tried counts the servers
// tried since the last success, of which there are known many; outage is how
// long no server has answered; chance is a random number in [0, 1).
func Backoff(tried, known int, outage time.Duration, chance float64) time.Duration {
	switch {
	case known > 0 && tried%known != 0:
		return 0 // another server may be there
	case outage >= MassLossAfter:
		return time.Duration(chance * float64(MassLossRetryMax))
	default:
		return time.Duration((0.2 + 0.8*chance) * float64(RetryMax))
	}
}
