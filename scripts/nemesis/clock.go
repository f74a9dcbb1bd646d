package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The wall clock of one process is moved where the process reads it: in package
// time of the nemesis' binary, which adds seconds that a file of the host names.
// The monotonic clock goes on as it did, as it does when a person or a time
// server sets a machine's clock.

// clockVariable names, to an agent, the file with the seconds.
const clockVariable = "NEMESIS_CLOCK"

// clockLook is how often an agent reads the file.
const clockLook = 50 * time.Millisecond

func clockEdits() []edit {
	const now = "sec, nsec, mono := runtimeNow()"
	return []edit{
		{goRoot + "src/time/time.go", now, now + "\n\tsec += NemesisSeconds.Load()"},
		{goRoot + "src/time/nemesis.go", "", "package time\n\nimport \"sync/atomic\"\n\nvar NemesisSeconds atomic.Int64\n"},
		{"nemesis_clock.go", "", fmt.Sprintf(`package main

import (
	"os"
	"strconv"
	"time"
)

func init() {
	path := os.Getenv(%q)
	if path == "" {
		return
	}
	look := func() {
		if data, err := os.ReadFile(path); err == nil {
			if seconds, err := strconv.ParseInt(string(data), 10, 64); err == nil {
				time.NemesisSeconds.Store(seconds)
			}
		}
	}
	look()
	go func() {
		for {
			time.Sleep(%d)
			look()
		}
	}()
}
`, clockVariable, clockLook)},
	}
}

// clockFile holds the seconds by which a host's clock is wrong.
func (h *host) clockFile() string { return filepath.Join(h.dir, "clock") }

// setClock moves the clock of a host's agent, also of those that are started
// later.
func (h *host) setClock(by time.Duration) error {
	next := h.clockFile() + ".next"
	err := os.WriteFile(next, []byte(strconv.FormatInt(int64(by/time.Second), 10)), 0o600)
	if err = errors.Join(err, os.Rename(next, h.clockFile())); err != nil {
		return fmt.Errorf("set the clock of %s: %w", h.name, err)
	}
	return nil
}

// clock moves a clock by less or more than certificates are tolerant of, forth
// or back.
func clock(who chooser) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		s.hit = who(ctx, s)
		h := s.hit[0]
		jumps := []time.Duration{-certificateSkew / 2, certificateSkew / 2, -time.Hour, time.Hour, -366 * 24 * time.Hour, 366 * 24 * time.Hour}
		by := jumps[s.chance.IntN(len(jumps))]
		say("the clock of %s jumps by %s", h.name, by)
		s.undone(func(ctx context.Context) error {
			err := h.setClock(0)
			pass(ctx, 4*clockLook)
			return err
		})
		return h.setClock(by)
	}
}
