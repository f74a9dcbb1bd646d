package rdma

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// Times of Watch.
const (
	// flapWindow is in which link losses are counted, flapMany how many of
	// them make a link that is up again count as lost.
	flapWindow = time.Hour
	flapMany   = 5
	// calmMin is how long a link must be up to count as well after its first loss
	// within flapWindow, as when a switch starts again; ten times as long for each
	// one more, up to calmMax.
	calmMin = time.Second
	calmMax = 30 * time.Second
	// lossesMax bounds what is remembered of one link.
	lossesMax = 32
)

// Watch remembers which links have worked, so that a loss can be told from a
// port that nobody ever connected. The zero value has seen nothing. It is not
// for use from several goroutines.
type Watch struct {
	links map[string]*link
}

// link is one port or interface over time.
type link struct {
	worked bool // it has been up since the agent started
	up     bool
	since  time.Time // of up
	rate   float64   // the best that was seen
	downed uint64    // the card's own count of losses
	losses []time.Time
}

// Fault is what is wrong with a link.
type Fault struct {
	Link   string          `json:"link"` // "mlx5_0:1" or "eth0"
	Since  time.Time       `json:"since"`
	RDMA   bool            `json:"rdma"`
	Reason *structs.Reason `json:"reason"`
}

// Step takes what is seen now and returns what is wrong, by link. Links that
// were down at the first look are not reported: nobody may have meant to use
// them.
func (w *Watch) Step(seen Inventory, now time.Time) []Fault {
	if w.links == nil {
		w.links = make(map[string]*link)
	}
	var faults []Fault
	present := make(map[string]bool)
	look := func(name string, rdma, up bool, rate float64, downed uint64) {
		present[name] = true
		l := w.links[name]
		if l == nil {
			l = &link{up: up, since: now, downed: downed}
			w.links[name] = l
		}
		l.observe(up, rate, downed, now)
		if fault := l.fault(name, rdma, rate, now); fault != nil {
			faults = append(faults, *fault)
		}
	}
	for _, card := range seen.Cards {
		for _, port := range card.Ports {
			look(fmt.Sprintf("%s:%d", card.Name, port.Number), true, port.Active(), port.Rate, port.Counters["link_downed"])
		}
	}
	for _, net := range seen.Nets {
		if net.Card == "" { // those of RDMA cards follow their ports
			look(net.Name, false, net.Up, net.Speed, 0)
		}
	}
	for name, l := range w.links {
		if !present[name] && l.worked {
			l.observe(false, 0, l.downed, now)
			faults = append(faults, Fault{Link: name, Since: l.since, RDMA: strings.Contains(name, ":"), Reason: structs.NewReason("device.link_gone", "link", name)})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Link, b.Link) })
	return faults
}

// observe takes one look at a link.
func (l *link) observe(up bool, rate float64, downed uint64, now time.Time) {
	lost := l.up && !up
	if downed > l.downed && l.worked {
		lost = true // it was down and up again between two looks
	}
	l.downed = downed
	if up != l.up {
		l.up, l.since = up, now
	}
	if lost {
		l.losses = append(l.losses, now)
		if over := len(l.losses) - lossesMax; over > 0 {
			l.losses = l.losses[over:]
		}
	}
	l.losses = slices.DeleteFunc(l.losses, func(at time.Time) bool { return now.Sub(at) > flapWindow })
	if up {
		l.worked, l.rate = true, max(l.rate, rate)
	}
}

// calm is how long the link must be up to count as well, by how often it was
// lost.
func (l *link) calm() time.Duration {
	switch len(l.losses) {
	case 1:
		return calmMin
	case 2:
		return 10 * calmMin
	}
	return calmMax
}

// fault says what is wrong now; nil: nothing.
func (l *link) fault(name string, rdma bool, rate float64, now time.Time) *Fault {
	switch {
	case !l.worked:
		return nil
	case !l.up:
		return &Fault{Link: name, Since: l.since, RDMA: rdma, Reason: structs.NewReason("device.link_lost", "link", name)}
	case len(l.losses) >= flapMany:
		return &Fault{Link: name, Since: l.losses[0], RDMA: rdma, Reason: structs.NewReason("device.link_flaps", "link", name, "count", len(l.losses))}
	case len(l.losses) > 0 && now.Sub(l.since) < l.calm() && now.Sub(l.losses[len(l.losses)-1]) < l.calm():
		return &Fault{Link: name, Since: l.losses[len(l.losses)-1], RDMA: rdma, Reason: structs.NewReason("device.link_settling", "link", name)}
	case rate > 0 && rate < l.rate:
		return &Fault{
			Link: name, Since: l.since, RDMA: rdma,
			Reason: structs.NewReason("device.link_slow", "link", name, "rate", gigabits(rate), "best", gigabits(l.rate)),
		}
	}
	return nil
}

func gigabits(rate float64) string { return fmt.Sprintf("%g Gb/s", rate/1e9) }
