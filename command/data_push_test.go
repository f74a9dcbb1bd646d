package command

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/nomadlike/tree"
)

func TestSpeedOf(t *testing.T) {
	for _, c := range []struct {
		done, rest int64
		took       time.Duration
		rate       int64
		left       string
	}{
		{0, 100, time.Second, 0, "-"},
		{100, 100, 0, 0, "-"},
		{1, 100, 10 * time.Second, 0, "-"},
		{100 << 20, 300 << 20, 10 * time.Second, 10 << 20, "31s"},
		{100, 0, time.Second, 100, "1s"},
	} {
		if rate, left := speedOf(c.done, c.rest, c.took); rate != c.rate || left != c.left {
			t.Errorf("%+v: %d, %s", c, rate, left)
		}
	}
}

// TestInParallel: everything is done once, and the first failure ends the rest.
func TestInParallel(t *testing.T) {
	var all [][]tree.Chunk
	for range 100 {
		all = append(all, []tree.Chunk{{Size: 3}, {Size: 4}})
	}
	var times atomic.Int64
	told := int64(0)
	err := inParallel(t.Context(), all, func(context.Context, []tree.Chunk) error { times.Add(1); return nil }, func(done int64) { told = done })
	if err != nil || times.Load() != 100 || told != 700 {
		t.Errorf("%d times, %d bytes, %v", times.Load(), told, err)
	}
	broken := errors.New("broken")
	times.Store(0)
	err = inParallel(t.Context(), all, func(context.Context, []tree.Chunk) error {
		if times.Add(1) == 10 {
			return broken
		}
		return nil
	}, func(int64) {})
	if !errors.Is(err, broken) || times.Load() > 10+dataSenders {
		t.Errorf("%d times, %v", times.Load(), err)
	}
}
