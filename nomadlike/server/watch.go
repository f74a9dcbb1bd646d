package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Bounds of the leader's watch over nodes.
const (
	watchEvery     = 50 * time.Millisecond
	probesMax      = 256 // probes and questions under way at once
	probeTimeout   = time.Second
	witnessTimeout = 400 * time.Millisecond
	reportsWaiting = 64 // of servers, not yet looked at; more are dropped, newer ones follow
)

// watch is the thin coat around Liveness on the leader: one goroutine feeds it
// and executes what it orders.
type watch struct {
	config  *Config
	decide  func(ctx context.Context, kind structs.CommandKind, body any) (structs.ApplyResult, uint64, error)
	lived   lifetime
	machine *Liveness
	reports chan *structs.LivenessReport
	answers chan func(now time.Duration) []LivenessEffect // outcomes of orders
	places  chan struct{}                                 // tokens of orders under way
	orders  sync.WaitGroup
	known   map[string]uint64 // nodes that the machine knows -> ModifyIndex
}

func newWatch(config *Config, proposals *proposals) *watch {
	machine := NewLiveness(config.Timings.Liveness, config.Store.Snapshot().Index())
	machine.SetBusy(func(nodeID string) bool {
		for range config.Store.Snapshot().Occupants(nodeID) {
			return true
		}
		return false
	})
	return &watch{
		config:  config,
		decide:  proposals.decide,
		lived:   lifetime{at: time.Now()},
		machine: machine,
		reports: make(chan *structs.LivenessReport, reportsWaiting),
		answers: make(chan func(time.Duration) []LivenessEffect),
		places:  make(chan struct{}, probesMax),
		known:   make(map[string]uint64),
	}
}

// take hands over what a server hears. It never blocks: a report that finds
// no place is out of date before the next one comes.
func (w *watch) take(report *structs.LivenessReport) {
	select {
	case w.reports <- report:
	default:
	}
}

// run watches until ctx ends.
func (w *watch) run(ctx context.Context) {
	defer w.orders.Wait()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	changed, stale := w.learn(), false
	for ticks := 0; ; {
		var effects []LivenessEffect
		select {
		case <-ctx.Done():
			return
		case <-changed:
			changed, stale = nil, true // looked at with the next tick: many nodes may register at once
		case report := <-w.reports:
			for _, heartbeat := range report.Nodes {
				w.machine.Hear(w.now(), heartbeat)
			}
		case answer := <-w.answers:
			effects = answer(w.now())
		case <-tick.C:
			now := w.now() // each tick counts as lived through, also one that nobody needs
			if ticks++; ticks < w.machine.Calm() {
				continue
			}
			ticks = 0
			if stale {
				changed, stale = w.learn(), false
			}
			effects = w.machine.Tick(now)
		}
		for _, effect := range effects {
			w.execute(ctx, effect)
		}
	}
}

// now is the machine's clock.
func (w *watch) now() time.Duration { return w.lived.now(time.Now()) }

// lifetime is a clock of the time in which the watch itself was awake. A
// server that gets no processor for a while, or has more to do than it can,
// hears nobody meanwhile: that is no silence of the nodes.
type lifetime struct {
	at    time.Time     // when it was looked at last
	lived time.Duration // until then
}

// now is what was lived through by at. A tick that comes late counts as one
// that was four times as long as it should be.
func (l *lifetime) now(at time.Time) time.Duration {
	l.lived += min(max(at.Sub(l.at), 0), 4*watchEvery)
	l.at = at
	return l.lived
}

// learn tells the machine about nodes as the state has them now, and returns
// the channel of their next change.
func (w *watch) learn() <-chan struct{} {
	snapshot := w.config.Store.Snapshot()
	present := make(map[string]bool, len(w.known))
	for node := range snapshot.Nodes() {
		present[node.ID] = true
		if w.known[node.ID] != node.ModifyIndex {
			w.known[node.ID] = node.ModifyIndex
			w.machine.Know(w.now(), node)
		}
	}
	for id := range w.known {
		if !present[id] {
			delete(w.known, id)
			w.machine.Forget(id)
		}
	}
	var servers []string
	for _, server := range w.config.Servers() {
		servers = append(servers, server.ID)
	}
	w.machine.SetServers(servers)
	return snapshot.WatchNodes()
}

// execute begins what the machine orders; outcomes come back through answers.
func (w *watch) execute(ctx context.Context, effect LivenessEffect) {
	switch {
	case effect.Probe != nil:
		w.start(ctx, func() { w.probe(ctx, effect.Probe) })
	case effect.Ask != nil:
		for _, witness := range effect.Ask.Witnesses {
			w.start(ctx, func() { w.ask(ctx, effect.Ask, witness) })
		}
	case effect.Declare != nil:
		w.start(ctx, func() { w.declare(ctx, effect.Declare) })
	}
}

// start runs one order beside the watch, when there is a place for it; the
// machine issues a lost order again.
func (w *watch) start(ctx context.Context, order func()) {
	select {
	case w.places <- struct{}{}:
		w.orders.Go(func() {
			defer func() { <-w.places }()
			order()
		})
	case <-ctx.Done():
	default:
	}
}

func (w *watch) answer(ctx context.Context, answer func(time.Duration) []LivenessEffect) {
	select {
	case w.answers <- answer:
	case <-ctx.Done():
	}
}

func (w *watch) probe(ctx context.Context, order *ProbeOrder) {
	once, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	agent, ok := agentOf(w.config.Store.Snapshot(), order.NodeID)
	answered, refused := false, false
	if ok {
		err := w.config.Peers.Alive(once, agent)
		// A node on this server's own machine, whose client opens after the server has
		// begun to lead: the machine lives, for it is the one that asks.
		answered, refused = err == nil, errors.Is(err, ErrAgentDown) || err != nil && order.NodeID == w.config.ID
	}
	w.answer(ctx, func(now time.Duration) []LivenessEffect {
		if refused {
			return w.machine.Refused(now, order.NodeID, order.Round)
		}
		return w.machine.Probed(now, order.NodeID, order.Round, answered)
	})
}

func (w *watch) ask(ctx context.Context, order *WitnessOrder, witness Witness) {
	once, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	answered, reached := false, false
	snapshot := w.config.Store.Snapshot()
	node, known := agentOf(snapshot, order.NodeID)
	agent, found := w.witness(snapshot, witness)
	if known && found {
		reply, err := w.config.Peers.Witness(once, agent, &structs.WitnessRequest{NodeID: node.ID, RPCAddr: node.Addr})
		answered, reached = err == nil, err == nil && reply.Reached
	}
	w.answer(ctx, func(now time.Duration) []LivenessEffect {
		return w.machine.Witnessed(now, order.NodeID, order.Round, answered, reached)
	})
}

// witness returns the address of a witness.
func (w *watch) witness(snapshot *state.Snapshot, witness Witness) (Agent, bool) {
	if !witness.Server {
		return agentOf(snapshot, witness.ID)
	}
	for _, server := range w.config.Servers() {
		if server.ID == witness.ID {
			return server, true
		}
	}
	return Agent{}, false
}

// agentOf returns the address of a node's agent.
func agentOf(snapshot *state.Snapshot, nodeID string) (Agent, bool) {
	node := snapshot.Node(nodeID)
	if node == nil {
		return Agent{}, false
	}
	return Agent{ID: node.ID, Addr: node.RPCAddr}, true
}

func (w *watch) declare(ctx context.Context, change *structs.NodeStatusChange) {
	log := w.config.Logger.With(logkey.NodeID, change.NodeID, logkey.Status, change.Status)
	if _, _, err := w.decide(ctx, structs.CommandNodeStatus, change); err != nil {
		if ctx.Err() == nil {
			log.Info("judgement of a node was not taken", logkey.Error, err)
		}
		return
	}
	log.Warn("node judged", logkey.Reason, change.Reason)
}
