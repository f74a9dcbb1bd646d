package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
)

// Fingerprint reports the cards of this node.
func (p *Plugin[F]) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	timer := time.NewTimer(firstPatience)
	defer timer.Stop()
	select {
	case <-p.looked:
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.feed.Follow(ctx), nil
}

// choose finds devices of the newest snapshot.
func (p *Plugin[F]) choose(ids []string) ([]structs.Device, error) {
	all := p.feed.Newest().Devices
	chosen := make([]structs.Device, 0, len(ids))
	for _, id := range ids {
		at := slices.IndexFunc(all, func(d structs.Device) bool { return d.ID == id })
		if at < 0 {
			return nil, fmt.Errorf("device %.80q: %w", id, device.ErrUnknownDevice)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// Reserve says what a task needs to see devices.
func (p *Plugin[F]) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	chosen, err := p.choose(ids)
	if err != nil {
		return device.Reservation{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.v.Reserve(chosen), nil
}

// sample measures the cards of the newest facts.
func (p *Plugin[F]) sample(ctx context.Context) ([]device.DeviceStats, error) {
	facts := p.Facts()
	if facts == nil {
		return nil, nil
	}
	return guard.Run(ctx, p.guard, callSample, nil, func() ([]device.DeviceStats, error) { return p.v.Sample(facts) })
}

// Stats measures all cards.
func (p *Plugin[F]) Stats(ctx context.Context, every time.Duration) (<-chan device.Stats, error) {
	measured := make(chan device.Stats)
	go func() { // ends with ctx
		defer close(measured)
		tick := time.NewTicker(max(every, device.StatsEveryMin))
		defer tick.Stop()
		for {
			if p.measurable() {
				if sampled, err := p.sample(ctx); err == nil {
					select {
					case measured <- device.Stats{At: time.Now(), Devices: sampled}:
					case <-ctx.Done():
						return
					}
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return measured, nil
}

// measurable reports whether there is something to measure, and to measure it
// with.
func (p *Plugin[F]) measurable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.facts != nil && p.mu.absent == nil
}
