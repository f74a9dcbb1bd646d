package runtime

import (
	"context"
	"time"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
)

// meter measures the cards of the newest facts, by the library.
type meter[F any] struct {
	v interface {
		Sample(facts *F) ([]device.DeviceStats, error)
	}
	calls *guard.Guard
	known *record[F]
}

// sample measures the cards once; no error and nothing: none is known.
func (m *meter[F]) sample(ctx context.Context) ([]device.DeviceStats, error) {
	facts := m.known.newest()
	if facts == nil {
		return nil, nil
	}
	return guard.Run(ctx, m.calls, callSample, nil, func() ([]device.DeviceStats, error) { return m.v.Sample(facts) })
}

// Stats measures all cards.
func (m *meter[F]) Stats(ctx context.Context, every time.Duration) (<-chan device.Stats, error) {
	measured := make(chan device.Stats)
	go func() { // ends with ctx
		defer close(measured)
		tick := time.NewTicker(max(every, device.StatsEveryMin))
		defer tick.Stop()
		for {
			if m.known.measurable() {
				if sampled, err := m.sample(ctx); err == nil {
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
