//go:build cgo

package nvml

import (
	"slices"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// handle is how the library names a card, with what it said about itself.
type handle struct {
	device    nvml.Device
	uuid      string
	instances []instanceHandle
}

type instanceHandle struct {
	device nvml.Device
	uuid   string
}

// roster is the cards of the newest Read, for those that measure them and wait
// for their events.
type roster struct {
	mu struct {
		sync.Mutex
		cards   []handle
		changed bool // since the last taken
	}
}

// replace makes the cards of a Read the newest.
func (r *roster) replace(handles []handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := len(handles) == len(r.mu.cards)
	for i := range handles {
		same = same && handles[i].device == r.mu.cards[i].device && handles[i].uuid == r.mu.cards[i].uuid
	}
	r.mu.changed = r.mu.changed || !same
	r.mu.cards = handles
}

// clear forgets all cards: the library that named them is closed.
func (r *roster) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.cards = nil
}

func (r *roster) newest() []handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.cards)
}

// taken returns the newest cards, and whether they are others than those that
// were taken before.
func (r *roster) taken() (cards []handle, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = r.mu.changed
	r.mu.changed = false
	return slices.Clone(r.mu.cards), changed
}

// again makes the cards count as changed.
func (r *roster) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.changed = true
}

// uuid returns the id of a card of the newest Read, "" of another.
func (r *roster) uuid(dev nvml.Device) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.mu.cards {
		if h.device == dev {
			id = h.uuid
		}
	}
	return id
}
