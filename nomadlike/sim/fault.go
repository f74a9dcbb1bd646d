package sim

import (
	"cmp"
	"slices"
	"time"
)

// flaky is chance while the cluster is broken, and never once it is healed.
func (w *Cluster) flaky(p float64) bool { return !w.config.Calm && !w.healed && w.chance(p) }

// fault breaks one thing, and comes back.
func (w *Cluster) fault() {
	if w.healed {
		return
	}
	w.outcome.Faults++
	m := w.nodes[w.rng.IntN(len(w.nodes))]
	switch w.rng.IntN(9) {
	case 0:
		w.reboot(m)
	case 1:
		w.restartAgent(m)
	case 2:
		w.cut(m, &m.cutOff)
	case 3:
		w.cut(m, &m.dark)
	case 4:
		w.pause(m)
	case 5:
		w.log.elect()
		w.leader.elected()
	case 6:
		w.log.crash()
	case 7:
		if m.link.live {
			w.note("session of %s breaks", m.name)
			m.hangUp()
			m.connectLater()
		}
	case 8: // two at once
		other := w.nodes[w.rng.IntN(len(w.nodes))]
		w.reboot(m)
		w.cut(other, &other.dark)
	}
	w.after(w.span(500*time.Millisecond, 12*time.Second), w.fault)
}

func (w *Cluster) reboot(m *machine) {
	if !m.powered {
		return
	}
	w.note("power of %s fails", m.name)
	m.powerOff()
	w.after(w.span(200*time.Millisecond, 20*time.Second), func() {
		if !m.powered {
			w.note("%s boots", m.name)
			m.boot()
		}
	})
}

func (w *Cluster) restartAgent(m *machine) {
	if !m.agent {
		return
	}
	w.note("agent of %s is killed", m.name)
	m.stopAgent()
	w.after(w.span(50*time.Millisecond, 10*time.Second), func() { m.startAgent() })
}

func (w *Cluster) cut(m *machine, how *bool) {
	if *how {
		return
	}
	w.note("network of %s is cut", m.name)
	*how = true
	w.after(w.span(100*time.Millisecond, 15*time.Second), func() { *how = false })
}

func (w *Cluster) pause(m *machine) {
	if !m.agent || m.paused {
		return
	}
	w.note("agent of %s is paused", m.name)
	m.paused = true
	w.after(w.span(100*time.Millisecond, 8*time.Second), func() { m.paused = false })
}

// heal ends all faults: from here on the cluster must come to rest.
func (w *Cluster) heal() {
	w.healed = true
	w.note("healed")
	for _, m := range w.nodes {
		m.cutOff, m.dark, m.paused = false, false, false
		switch {
		case !m.powered:
			m.boot()
		case !m.agent:
			m.startAgent()
		}
	}
	for _, r := range w.log.replicas {
		if r.down {
			w.log.restart(r)
		}
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
