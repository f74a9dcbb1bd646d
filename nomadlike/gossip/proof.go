package gossip

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"nomadlike/internal/logkey"
)

// How claims about servers are proven.
const (
	proofTimeout   = 2 * time.Second
	proofsAtOnce   = 4
	proofsMax      = 64               // claims that wait; beyond, one of them is dropped by chance
	proofAgain     = time.Second      // between looks at servers that were proven
	proofFresh     = 4 * time.Second  // how long one proof counts
	proofRetry     = 5 * time.Second  // before a claim that failed is looked at again
	refusedMax     = 1024             // claims that failed and are remembered
	reviveFirst    = time.Second      // between attempts to bring a proven server back into gossip
	reviveFirstMax = 30 * time.Second // the same, of one that does not come back
)

// Prove asks the agent at rpcAddr whether it is the server with this id, by
// its certificate, and whether that is the address it wants to be called at.
// It returns nil when both hold, and the wire.ProtocolVersion that it speaks.
type Prove func(ctx context.Context, id, rpcAddr string) (protocol int, err error)

// Proven is a server that proved to be at an address.
type Proven struct {
	ID      string
	Addr    string // host:port of its gossip, which is on the host of RPCAddr
	RPCAddr string

	Protocol int // wire.ProtocolVersion that it speaks

	Fresh bool      // it proved it within the last seconds
	Since time.Time // when Fresh began, or ended
}

// proofs are what this agent knows of servers by their certificates. Whoever
// holds the cluster's gossip key, as every node does, can claim anything about
// anybody; here a claim about a server is but a hint where to ask it.
type proofs struct {
	self  string
	prove Prove
	wake  chan struct{}

	mu struct {
		sync.Mutex
		proven  map[string]*proven
		waiting map[claim]struct{}
		busy    map[claim]struct{}
		refused map[claim]time.Time
	}
}

// claim is what gossip says of a server.
type claim struct {
	id, addr, rpcAddr string
}

type proven struct {
	claim
	protocol int

	at     time.Time // of the newest proof
	fresh  bool
	since  time.Time // of fresh
	revive time.Time // when to bring it back into gossip, at the earliest
	wait   time.Duration
}

func newProofs(self string, prove Prove) *proofs {
	p := &proofs{self: self, prove: prove, wake: make(chan struct{}, 1)}
	p.mu.proven = make(map[string]*proven)
	p.mu.waiting = make(map[claim]struct{})
	p.mu.busy = make(map[claim]struct{})
	p.mu.refused = make(map[claim]time.Time)
	return p
}

// admit reports whether a claim may be heard. A claim about a server that is not
// proven is looked into, and not heard.
func (p *proofs) admit(node *memberlist.Node, meta Meta) error {
	if node.Name == p.self {
		return nil
	}
	c := claim{id: node.Name, addr: net.JoinHostPort(node.Addr.String(), strconv.Itoa(int(node.Port))), rpcAddr: meta.RPCAddr}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.mu.proven[c.id]
	switch {
	case meta.Role != roleServer && known == nil:
		return nil
	case meta.Role != roleServer, !sameHost(c.addr, c.rpcAddr):
		return errUnproven
	case known != nil && known.claim == c:
		return nil
	}
	if at, failed := p.mu.refused[c]; failed && time.Since(at) < proofRetry {
		return errUnproven
	}
	if _, busy := p.mu.busy[c]; busy {
		return errUnproven
	}
	if _, waits := p.mu.waiting[c]; !waits && len(p.mu.waiting) >= proofsMax {
		for other := range p.mu.waiting { // maps begin anywhere: nobody can keep others out for ever
			delete(p.mu.waiting, other)
			break
		}
	}
	p.mu.waiting[c] = struct{}{}
	p.poke()
	return errUnproven
}

func sameHost(a, b string) bool {
	hostA, _, errA := net.SplitHostPort(a)
	hostB, _, errB := net.SplitHostPort(b)
	ipA, ipB := net.ParseIP(hostA), net.ParseIP(hostB)
	return errA == nil && errB == nil && ipA != nil && ipB != nil && ipA.Equal(ipB)
}

func (p *proofs) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// take returns a claim to look into.
func (p *proofs) take() (claim, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.mu.waiting {
		delete(p.mu.waiting, c)
		p.mu.busy[c] = struct{}{}
		if len(p.mu.waiting) > 0 {
			p.poke()
		}
		return c, true
	}
	return claim{}, false
}

// settle notes what became of a claim, and reports whether it is news.
func (p *proofs) settle(c claim, protocol int, err error, now time.Time) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.busy, c)
	known := p.mu.proven[c.id]
	if err != nil {
		if known != nil && known.claim == c {
			known.stale(now)
			return false
		}
		if len(p.mu.refused) >= refusedMax {
			clear(p.mu.refused)
		}
		p.mu.refused[c] = now
		return false
	}
	delete(p.mu.refused, c)
	if known == nil || known.claim != c {
		known = &proven{claim: c, since: now, wait: reviveFirst}
		p.mu.proven[c.id] = known
		news = true
	}
	if !known.fresh {
		known.fresh, known.since = true, now
	}
	known.at, known.protocol = now, protocol
	return news
}

// stale notes that a server was not heard for a while.
func (s *proven) stale(now time.Time) {
	if s.fresh && now.Sub(s.at) >= proofFresh {
		s.fresh, s.since = false, now
	}
}

func (s *proven) shown() Proven {
	return Proven{ID: s.id, Addr: s.addr, RPCAddr: s.rpcAddr, Protocol: s.protocol, Fresh: s.fresh, Since: s.since}
}

// list returns every server that was ever proven.
func (p *proofs) list(now time.Time) []Proven {
	p.mu.Lock()
	defer p.mu.Unlock()
	servers := make([]Proven, 0, len(p.mu.proven))
	for _, id := range slices.Sorted(maps.Keys(p.mu.proven)) {
		s := p.mu.proven[id]
		s.stale(now)
		servers = append(servers, s.shown())
	}
	return servers
}

func (p *proofs) find(id string, now time.Time) (Proven, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.mu.proven[id]
	if s == nil {
		return Proven{}, false
	}
	s.stale(now)
	return s.shown(), true
}

// mayRevive reports whether a server that is fresh and that gossip gave up
// should be joined now.
func (p *proofs) mayRevive(id string, gone bool, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.mu.proven[id]
	switch {
	case s == nil || !s.fresh:
		return false
	case !gone:
		s.wait = reviveFirst
		return false
	case now.Before(s.revive):
		return false
	}
	s.revive = now.Add(s.wait)
	s.wait = min(2*s.wait, reviveFirstMax)
	return true
}

// proveServers looks into claims, and at servers that were proven before,
// until ctx ends.
func (g *Gossip) proveServers(ctx context.Context) {
	places := make(chan struct{}, proofsAtOnce)
	tick := time.NewTicker(proofAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, server := range g.proofs.list(time.Now()) {
				c := claim{id: server.ID, addr: server.Addr, rpcAddr: server.RPCAddr}
				g.spawn(func() { g.proveOne(ctx, c) })
			}
		case <-g.proofs.wake:
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			c, found := g.proofs.take()
			if !found || !g.spawn(func() {
				g.proveOne(ctx, c)
				<-places
			}) {
				<-places
			}
		}
	}
}

// proveOne looks into one claim. A server that is new, or that gossip gave up
// while it answers, is joined at once: what it says itself is heard now.
func (g *Gossip) proveOne(ctx context.Context, c claim) {
	once, cancel := context.WithTimeout(ctx, proofTimeout)
	protocol, err := g.proofs.prove(once, c.id, c.rpcAddr)
	cancel()
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	news := g.proofs.settle(c, protocol, err, now)
	if err != nil {
		g.logger.Debug("claim about a server is not proven", logkey.PeerID, c.id, logkey.Addr, c.rpcAddr, logkey.Error, err)
		return
	}
	state := g.table.state(c.id)
	gone := state != StateAlive && state != StateSuspect
	if !news && !g.proofs.mayRevive(c.id, gone, now) {
		return
	}
	if _, err := g.Join(ctx, []string{c.addr}); err != nil && ctx.Err() == nil {
		g.logger.Debug("join proven server", logkey.PeerID, c.id, logkey.Addr, c.addr, logkey.Error, err)
	}
}

// Proven lists the servers that have proven by their certificate where they
// are, also those that gossip does not see any more. It is empty on agents
// that ask for no proofs.
func (g *Gossip) Proven() []Proven {
	if g.proofs == nil {
		return nil
	}
	return g.proofs.list(time.Now())
}
