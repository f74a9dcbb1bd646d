package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A restore is given up when it fails although the leader stays, whether servers
// refuse it or hang. While leaders come and go it has longer, but not for ever.
func TestRestoreIsTriedWhileLeadersComeAndGo(t *testing.T) {
	refused := errors.New("refused")
	hosts := []*host{{name: "s1"}, {name: "s2"}, {name: "s3"}}
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, test := range []struct {
		name  string
		moves time.Duration // a term lasts so long; 0: for ever, less: no server tells
		ask   func(ctx context.Context, at time.Duration, via string) error
		want  string // of the finding, "" for none
		until time.Duration
	}{
		{"comes at once", 0, func(context.Context, time.Duration, string) error { return nil }, "", 0},
		{"one server hangs", 0, func(ctx context.Context, _ time.Duration, via string) error {
			if via == "s1" {
				return hang(ctx)
			}
			return nil
		}, "", 10 * time.Second},
		{
			"all hang", 0, func(ctx context.Context, _ time.Duration, _ string) error { return hang(ctx) },
			"3 attempts failed in 30 s, of which the leader stayed for 30 s: 1 × s1: context deadline exceeded (10.0 s at most); 1 × s2", 30 * time.Second,
		},
		{"all refuse", 0, func(context.Context, time.Duration, string) error { return refused }, "× s3: refused", 30 * time.Second},
		{"leaders go, and one stays in the end", 3 * time.Second, func(ctx context.Context, at time.Duration, _ string) error {
			if at < time.Minute {
				return hang(ctx)
			}
			return nil
		}, "", time.Minute},
		{
			"leaders go for ever", 3 * time.Second, func(ctx context.Context, _ time.Duration, _ string) error { return hang(ctx) },
			" attempts failed in 90 s, of which the leader stayed for 0 s: ", 90 * time.Second,
		},
		{
			"no server says anything", -1, func(ctx context.Context, _ time.Duration, _ string) error { return hang(ctx) },
			" attempts failed in 90 s, of which the leader stayed for 0 s: ", 90 * time.Second,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				term := func(context.Context) uint64 {
					switch {
					case test.moves < 0:
						return 0
					case test.moves == 0:
						return 7
					}
					return 7 + uint64(time.Since(began)/test.moves)
				}
				err := insist(t.Context(), 30*time.Second, 10*time.Second, hosts, term, func(ctx context.Context, via *host) error {
					return test.ask(ctx, time.Since(began), via.name)
				})
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if took := time.Since(began).Round(time.Second); took != test.until {
					t.Errorf("it took %s, want %s", took, test.until)
				}
			})
		})
	}
}
