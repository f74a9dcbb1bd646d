package docker

import (
	"context"
	"fmt"
	"maps"
	"time"

	"nomadlike/plugins/driver"
)

// probePatience bounds one question to the engine.
const probePatience = 10 * time.Second

// Fingerprint reports the engine, and every change of it: one that stops
// answers and one that comes back are seen within a few seconds.
func (d *Driver) Fingerprint(ctx context.Context) (<-chan driver.Fingerprint, error) {
	reports := make(chan driver.Fingerprint)
	started := d.known.Go(func() {
		defer close(reports)
		var last driver.Fingerprint
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.known.Life().Done():
				return
			case <-timer.C:
			}
			report := d.host.probe(ctx)
			if report.Health != last.Health || report.Reason != last.Reason || !maps.Equal(report.Attributes, last.Attributes) {
				select {
				case reports <- report:
					last = report
				case <-ctx.Done():
					return
				case <-d.known.Life().Done():
					return
				}
			}
			timer.Reset(d.config.ProbeEvery)
		}
	})
	if !started {
		return nil, fmt.Errorf("fingerprint docker: %w", driver.ErrUnavailable)
	}
	return reports, nil
}

// apiNew reports whether the engine is one of those that this driver knows.
func apiNew(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || major == 1 && minor >= 41
}

// deviceWays lists the ways to devices that this engine has, in order.
func deviceWays(facts engineFacts) []string {
	var ways []string
	if len(facts.CDIKinds) > 0 {
		ways = append(ways, wayCDI)
	}
	if len(facts.Drivers) > 0 {
		ways = append(ways, wayRequest)
	}
	for _, name := range facts.Runtimes {
		if name == "nvidia" || name == "ascend" {
			ways = append(ways, wayRuntime+":"+name)
		}
	}
	return append(ways, wayRaw)
}
