package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"nomadlike/plugins/driver"
)

// probePatience bounds one question to the engine.
const probePatience = 10 * time.Second

// Fingerprint reports the engine, and every change of it: one that stops
// answers and one that comes back are seen within a few seconds.
func (d *Driver) Fingerprint(ctx context.Context) (<-chan driver.Fingerprint, error) {
	reports := make(chan driver.Fingerprint)
	started := d.spawnWork(func() {
		defer close(reports)
		var last driver.Fingerprint
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.life.Done():
				return
			case <-timer.C:
			}
			report := d.probe(ctx)
			if report.Health != last.Health || report.Reason != last.Reason || !maps.Equal(report.Attributes, last.Attributes) {
				select {
				case reports <- report:
					last = report
				case <-ctx.Done():
					return
				case <-d.life.Done():
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

// probe looks at the engine once.
func (d *Driver) probe(ctx context.Context) driver.Fingerprint {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if d.program == "" {
		return driver.Fingerprint{Health: driver.Undetected, Reason: errNoProgram.Error()}
	}
	path := strings.TrimPrefix(d.config.Endpoint, "unix://")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		d.forgetEngine()
		return driver.Fingerprint{Health: driver.Undetected, Reason: "no engine listens at " + path}
	}
	err := d.engine.ping(ctx)
	if err == nil {
		err = d.learn(ctx)
	}
	if err != nil {
		d.forgetEngine()
		return driver.Fingerprint{Health: driver.Unhealthy, Reason: lastClause(err.Error())}
	}
	d.mu.Lock()
	info, facts, limits := d.mu.info, d.mu.facts, d.mu.limits
	d.mu.Unlock()
	report := driver.Fingerprint{Health: driver.Healthy, Attributes: d.attributes(&info, facts, limits)}
	if !apiNew(info.APIVersion) {
		report.Health, report.Reason = driver.Unhealthy, "the engine speaks API "+info.APIVersion+", 1.41 (Docker 20.10) or newer is needed"
	}
	if concern := runtimeConcern(info.Runc); concern != "" {
		report.Attributes["driver.docker.alarm"] = concern
		if d.config.Policy.SafeRuntimeOnly {
			report.Health, report.Reason = driver.Unhealthy, concern
		}
	}
	return report
}

// apiNew reports whether the engine is one of those that this driver knows.
func apiNew(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || major == 1 && minor >= 41
}

func (d *Driver) attributes(info *engineInfo, facts engineFacts, limits limitFacts) map[string]string {
	attributes := map[string]string{
		"driver.docker.version":       info.Version,
		"driver.docker.api":           info.APIVersion,
		"driver.docker.runc":          info.Runc,
		"driver.docker.cgroup":        info.CgroupVersion,
		"driver.docker.cgroup_driver": info.CgroupDriver,
		"driver.docker.storage":       info.Storage,
		"driver.docker.runtimes":      strings.Join(info.Runtimes, ","),
		"driver.docker.live_restore":  fmt.Sprint(info.LiveRestore),
		"driver.docker.rlimits":       fmt.Sprint(limits.Raise),
		"driver.docker.host_network":  fmt.Sprint(d.config.Policy.HostNetwork),
		// Each task has its own host name and hosts file: see launch.
		"driver.docker.namespaces": "true",
		"driver.docker.limits":     "cpu,memory,shm,pids,ulimits",
		"driver.docker.devices":    strings.Join(deviceWays(facts), ","),
	}
	for name, list := range map[string][]string{
		"driver.docker.cdi_dirs":  info.CDIDirs,
		"driver.docker.cdi_kinds": facts.CDIKinds,
		"driver.docker.security":  info.Security,
		"driver.docker.options":   d.config.Policy.Options,
	} {
		if len(list) > 0 {
			attributes[name] = strings.Join(list, ",")
		}
	}
	return attributes
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
