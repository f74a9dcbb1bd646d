package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// host is what is known of the engine and the machine that it works on, and
// the place where mounts are staged on it. It is gathered anew when the engine
// comes back. Its methods may be called from any goroutine.
type host struct {
	config  *Config
	engine  *engine
	program string // of keepers and inits; "" when this build has none

	mu struct {
		sync.Mutex
		closed  bool
		known   bool
		now     knowledge
		looked  time.Time // at now
		mounter *mounter
	}
}

// knowledge is what an engine has said of itself, and what was seen beside it.
type knowledge struct {
	info   engineInfo
	facts  engineFacts
	limits limitFacts
}

// factsEvery is how often is looked for ways to devices that have come or
// gone while the engine runs, such as CDI specifications.
const factsEvery = 30 * time.Second

// learn asks the engine about itself unless that is known, and prepares what
// depends on the answer.
func (h *host) learn(ctx context.Context) error {
	h.mu.Lock()
	known := h.mu.known && time.Since(h.mu.looked) < factsEvery
	h.mu.Unlock()
	if known {
		return nil
	}
	info, err := h.engine.info(ctx)
	if err != nil {
		return err
	}
	pid := enginePID(h.config.Endpoint)
	facts, limits := gatherFacts(&info, pid), gatherLimits(pid)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.mounter == nil && !h.mu.closed {
		if h.mu.mounter, err = openMounter(h.config, info.RootDir); err != nil {
			return err
		}
	}
	h.mu.known, h.mu.now, h.mu.looked = true, knowledge{info, facts, limits}, time.Now()
	return nil
}

// forget lets learn ask again.
func (h *host) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.known = false
}

// newest returns what was learned last, and where mounts are staged.
func (h *host) newest() (knowledge, *mounter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.now, h.mu.mounter
}

// close takes away all staged mounts; none are staged after it.
func (h *host) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.closed = true
	if h.mu.mounter == nil {
		return nil
	}
	return h.mu.mounter.clear()
}

// probe looks at the engine once.
func (h *host) probe(ctx context.Context) driver.Fingerprint {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if h.program == "" {
		return driver.Fingerprint{Health: driver.Undetected, Reason: errNoProgram.Error()}
	}
	path := strings.TrimPrefix(h.config.Endpoint, "unix://")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		h.forget()
		return driver.Fingerprint{Health: driver.Undetected, Reason: "no engine listens at " + path}
	}
	err := h.engine.ping(ctx)
	if err == nil {
		err = h.learn(ctx)
	}
	if err != nil {
		h.forget()
		return driver.Fingerprint{Health: driver.Unhealthy, Reason: lastClause(err.Error())}
	}
	now, _ := h.newest()
	report := driver.Fingerprint{Health: driver.Healthy, Attributes: h.attributes(&now)}
	if !apiNew(now.info.APIVersion) {
		report.Health, report.Reason = driver.Unhealthy, "the engine speaks API "+now.info.APIVersion+", 1.41 (Docker 20.10) or newer is needed"
	}
	if concern := runtimeConcern(now.info.Runc); concern != "" {
		report.Attributes["driver.docker.alarm"] = concern
		if h.config.Policy.SafeRuntimeOnly {
			report.Health, report.Reason = driver.Unhealthy, concern
		}
	}
	return report
}

func (h *host) attributes(now *knowledge) map[string]string {
	attributes := map[string]string{
		"driver.docker.version":       now.info.Version,
		"driver.docker.api":           now.info.APIVersion,
		"driver.docker.runc":          now.info.Runc,
		"driver.docker.cgroup":        now.info.CgroupVersion,
		"driver.docker.cgroup_driver": now.info.CgroupDriver,
		"driver.docker.storage":       now.info.Storage,
		"driver.docker.runtimes":      strings.Join(now.info.Runtimes, ","),
		"driver.docker.live_restore":  fmt.Sprint(now.info.LiveRestore),
		"driver.docker.rlimits":       fmt.Sprint(now.limits.Raise),
		"driver.docker.host_network":  fmt.Sprint(h.config.Policy.HostNetwork),
		// Each task has its own host name and hosts file: see launch.
		"driver.docker.namespaces": "true",
		"driver.docker.limits":     "cpu,memory,shm,pids,ulimits",
		"driver.docker.devices":    strings.Join(deviceWays(now.facts), ","),
		structs.AttrMasks(Name):    structs.MasksYes,
	}
	for name, list := range map[string][]string{
		"driver.docker.cdi_dirs":  now.info.CDIDirs,
		"driver.docker.cdi_kinds": now.facts.CDIKinds,
		"driver.docker.security":  now.info.Security,
		"driver.docker.options":   h.config.Policy.Options,
	} {
		if len(list) > 0 {
			attributes[name] = strings.Join(list, ",")
		}
	}
	return attributes
}
