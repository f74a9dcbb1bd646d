package retry

import (
	"context"
	"time"
)

// Patience with what answers late.
const (
	First = 100 * time.Millisecond
	Most  = 5 * time.Second
)

// Sleep waits for d and reports whether ctx still lives.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Await waits until first is closed, for limit at most, and reports whether it
// is.
func Await(ctx context.Context, first <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-first:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
