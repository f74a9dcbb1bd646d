package client

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// driverHealth listens to what the drivers say of themselves.
type driverHealth struct {
	drivers map[string]driver.Driver
	log     *slog.Logger
	first   chan struct{} // closed when every driver has spoken once

	mu struct {
		sync.Mutex
		last map[string]driver.Fingerprint
	}
}

func newDriverHealth(drivers map[string]driver.Driver, log *slog.Logger) *driverHealth {
	h := &driverHealth{drivers: drivers, log: log, first: make(chan struct{})}
	h.mu.last = make(map[string]driver.Fingerprint)
	if len(drivers) == 0 {
		close(h.first)
	}
	return h
}

// firstWord waits until every driver has spoken, or for limit.
func (h *driverHealth) firstWord(ctx context.Context, limit time.Duration) {
	awaitWord(ctx, h.first, limit)
}

// awaitWord waits until first is closed, for limit at most, and reports whether it
// is.
func awaitWord(ctx context.Context, first <-chan struct{}, limit time.Duration) bool {
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

// run listens until ctx is cancelled and calls changed after every word.
func (h *driverHealth) run(ctx context.Context, changed func()) {
	var listening sync.WaitGroup
	for name, d := range h.drivers {
		listening.Go(func() { h.listen(ctx, name, d, changed) })
	}
	listening.Wait()
}

func (h *driverHealth) listen(ctx context.Context, name string, d driver.Driver, changed func()) {
	words, err := d.Fingerprint(ctx)
	if err != nil {
		h.log.Error("driver cannot be asked", logkey.Driver, name, logkey.Error, err)
		h.note(name, driver.Fingerprint{Health: driver.Unhealthy, Reason: err.Error()})
		return
	}
	for word := range words {
		if word.Health == driver.Unhealthy {
			h.log.Warn("driver is not healthy", logkey.Driver, name, logkey.Reason, word.Reason)
		}
		h.note(name, word)
		changed()
	}
}

func (h *driverHealth) note(name string, word driver.Fingerprint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, spoke := h.mu.last[name]
	h.mu.last[name] = word
	if !spoke && len(h.mu.last) == len(h.drivers) {
		close(h.first)
	}
}

// isolatesNone reports whether processes are kept apart by nothing here: because
// the configuration says so, or because the driver has tried and cannot.
func (h *driverHealth) isolatesNone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	word := h.mu.last[structs.DriverExec]
	return word.Health == driver.Healthy && word.Attributes[structs.AttrIsolation] == structs.IsolationNone
}

// healthy names the drivers that can start tasks, and gives their attributes.
func (h *driverHealth) healthy() (names []string, attributes map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	attributes = make(map[string]string)
	for name, word := range h.mu.last {
		if word.Health == driver.Healthy {
			names = append(names, name)
			maps.Copy(attributes, word.Attributes)
		}
	}
	slices.Sort(names)
	return names, attributes
}
