package staging

import (
	"context"
	"sync"
	"time"
)

// bucketFor is how much may be moved at once after a while without anything.
const bucketFor = 250 * time.Millisecond

// bucket bounds bytes per second. Any goroutine may use it.
type bucket struct {
	rate int64
	mu   struct {
		sync.Mutex
		until time.Time // when all that was taken will have had its time
	}
}

func newBucket(rate int64) *bucket { return &bucket{rate: max(rate, 1)} }

// take takes bytes, and returns how long they have to wait; with most, what would wait
// longer takes nothing.
func (b *bucket) take(now time.Time, bytes int64, most time.Duration) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if earliest := now.Add(-bucketFor); b.mu.until.Before(earliest) {
		b.mu.until = earliest
	}
	if wait = b.mu.until.Sub(now); most > 0 && wait > most {
		return wait, false
	}
	b.mu.until = b.mu.until.Add(time.Duration(float64(bytes) / float64(b.rate) * float64(time.Second)))
	return max(wait, 0), true
}

// wait takes bytes, and returns when they may be moved.
func (b *bucket) wait(ctx context.Context, now func() time.Time, bytes int64) error {
	wait, _ := b.take(now(), bytes, 0)
	if wait == 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
