package machine

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Drivers listens to what the drivers say of themselves.
type Drivers struct {
	drivers map[string]driver.Driver
	log     *slog.Logger
	first   chan struct{} // closed when every driver has spoken once

	mu struct {
		sync.Mutex
		last map[string]driver.Fingerprint
	}
}

// NewDrivers makes a watch over drivers that has heard of none.
func NewDrivers(drivers map[string]driver.Driver, log *slog.Logger) *Drivers {
	h := &Drivers{drivers: drivers, log: log, first: make(chan struct{})}
	h.mu.last = make(map[string]driver.Fingerprint)
	if len(drivers) == 0 {
		close(h.first)
	}
	return h
}

// FirstWord waits until every driver has spoken, or for limit.
func (h *Drivers) FirstWord(ctx context.Context, limit time.Duration) {
	retry.Await(ctx, h.first, limit)
}

// Run listens until ctx is cancelled and calls changed after every word.
func (h *Drivers) Run(ctx context.Context, changed func()) {
	var listening sync.WaitGroup
	for name, d := range h.drivers {
		listening.Go(func() { h.listen(ctx, name, d, changed) })
	}
	listening.Wait()
}

func (h *Drivers) listen(ctx context.Context, name string, d driver.Driver, changed func()) {
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

func (h *Drivers) note(name string, word driver.Fingerprint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, spoke := h.mu.last[name]
	h.mu.last[name] = word
	if !spoke && len(h.mu.last) == len(h.drivers) {
		close(h.first)
	}
}

// IsolatesNone reports whether processes are kept apart by nothing here: because
// the configuration says so, or because the driver has tried and cannot.
func (h *Drivers) IsolatesNone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	word := h.mu.last[structs.DriverExec]
	return word.Health == driver.Healthy && word.Attributes[structs.AttrIsolation] == structs.IsolationNone
}

// Healthy names the drivers that can start tasks, and returns their attributes.
func (h *Drivers) Healthy() (names []string, attributes map[string]string) {
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
