package guard

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		ctx := context.Background()
		if got, err := Run(ctx, g, "a", nil, func() (int, error) { return 7, nil }); got != 7 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
		release := make(chan struct{})
		var told []time.Duration
		hanging := func() (int, error) { <-release; return 1, nil }
		limited, cancel := context.WithTimeout(ctx, 12*time.Second)
		defer cancel()
		if _, err := Run(limited, g, "a", func(_ string, since time.Duration) { told = append(told, since) }, hanging); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a hanging call gives %v", err)
		}
		if len(told) != 2 || told[0] != Patience {
			t.Errorf("told %v", told)
		}
		// Its kind waits, others do not.
		short, cancelShort := context.WithTimeout(ctx, time.Second)
		defer cancelShort()
		if _, err := Run(short, g, "a", nil, func() (int, error) { return 1, nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second call of its kind gives %v", err)
		}
		if got, err := Run(ctx, g, "b", nil, func() (int, error) { return 2, nil }); got != 2 || err != nil {
			t.Errorf("another kind gives %d, %v", got, err)
		}
		begun := time.Now()
		g.Wait(3 * time.Second)
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("Wait took %s", took)
		}
		close(release)
		synctest.Wait()
		if got, err := Run(ctx, g, "a", nil, func() (int, error) { return 3, nil }); got != 3 || err != nil {
			t.Errorf("after its return: %d, %v", got, err)
		}
		g.Wait(time.Hour)
	})
}

func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		var mu sync.Mutex
		inside, most := 0, 0
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, _ = Run(context.Background(), g, "a", nil, func() (int, error) {
					mu.Lock()
					inside++
					most = max(most, inside)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					inside--
					mu.Unlock()
					return 0, nil
				})
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%d at a time", most)
		}
	})
}

// A caller that calls again and again lets others in, in their order.
func TestTurnsAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				done, err := g.Take(ctx, "wait")
				if err != nil {
					return
				}
				time.Sleep(time.Second)
				done()
			}
		}()
		synctest.Wait()
		begin := time.Now()
		for range 5 {
			done, err := g.Take(t.Context(), "wait")
			if err != nil {
				t.Fatal(err)
			}
			done()
		}
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("five turns took %s", took)
		}
		// One that gives up leaves the turn to the next.
		over, giveUp := context.WithTimeout(t.Context(), time.Millisecond)
		defer giveUp()
		if _, err := g.Take(over, "wait"); err == nil {
			t.Error("it did not give up")
		}
		cancel()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		done, err := g.Take(t.Context(), "wait")
		if err != nil {
			t.Fatal(err)
		}
		done()
	})
}
