package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Network joins the servers of one process in tests, and takes them apart
// again. All its waiting is on timers, so it runs in testing/synctest bubbles.
type Network struct {
	timeout time.Duration
	mu      struct {
		sync.Mutex
		ends map[string]*raft.InmemTransport
		down map[[2]string]bool // cut directions: from, to
	}
}

// NewNetwork makes a network without servers. A call that gets no answer fails
// after timeout.
func NewNetwork(timeout time.Duration) *Network {
	n := &Network{timeout: timeout}
	n.mu.ends = make(map[string]*raft.InmemTransport)
	n.mu.down = make(map[[2]string]bool)
	return n
}

// Transport returns a new end at addr, for Config.Transport. One that was there
// before, of a server since stopped, is replaced.
func (n *Network) Transport(addr string) raft.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, end := raft.NewInmemTransportWithTimeout(raft.ServerAddress(addr), n.timeout)
	n.mu.ends[addr] = end
	n.wireLocked()
	return end
}

// CutOneWay drops the calls that from makes to to, and so their answers.
func (n *Network) CutOneWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.down[[2]string{from, to}] = true
	n.wireLocked()
}

// Isolate cuts addr from all others.
func (n *Network) Isolate(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other := range n.mu.ends {
		n.mu.down[[2]string{addr, other}] = true
		n.mu.down[[2]string{other, addr}] = true
	}
	n.wireLocked()
}

// Heal mends every cut.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.mu.down)
	n.wireLocked()
}

// wireLocked makes the ends know each other as the cuts say.
func (n *Network) wireLocked() {
	for from, end := range n.mu.ends {
		for to, other := range n.mu.ends {
			if n.mu.down[[2]string{from, to}] {
				end.Disconnect(raft.ServerAddress(to))
			} else {
				end.Connect(raft.ServerAddress(to), other)
			}
		}
	}
}
