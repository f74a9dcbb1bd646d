package server

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// LivenessTimings are the thresholds by which nodes are judged. Zero values
// mean the defaults, which suit nodes that send a heartbeat every 200 ms.
type LivenessTimings struct {
	SilentAfter       time.Duration // silence that makes a node suspect; 800 ms
	LostAfter         time.Duration // least silence of a lost node; 1.2 s
	DisconnectedAfter time.Duration // silence of a node that answers probes; 3 s
	ProbeEvery        time.Duration // between probes of a node that answers; 500 ms
	AnswerWithin      time.Duration // for a probe or a witness, after which it is asked anew; 2 s
	AgentDownAfter    time.Duration // silence of a node whose machine lives without its agent; 20 s
	LeftAfter         time.Duration // absence of a node that left in order; 2 min
	AloneAfter        time.Duration // silence of every node at once; 60 s
	ReturnWithin      time.Duration // for the other nodes, once one is heard again after that; 3 s
	Witnesses         int           // asked for each judgement; 3
}

func (t LivenessTimings) withDefaults() LivenessTimings {
	set := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	set(&t.SilentAfter, 800*time.Millisecond)
	set(&t.LostAfter, 1200*time.Millisecond)
	set(&t.DisconnectedAfter, 3*time.Second)
	set(&t.ProbeEvery, 500*time.Millisecond)
	set(&t.AnswerWithin, 2*time.Second)
	set(&t.AgentDownAfter, 20*time.Second)
	set(&t.LeftAfter, 2*time.Minute)
	set(&t.AloneAfter, time.Minute)
	set(&t.ReturnWithin, 3*time.Second)
	if t.Witnesses == 0 {
		t.Witnesses = 3
	}
	return t
}

// Above these numbers of nodes heartbeats become slower, and with them what
// judges silence: an answered heartbeat costs a server some fifty microseconds,
// and ten thousand a second are enough.
const (
	manyNodes   = 2000
	manyFactor  = 2.5
	mostNodes   = 5000
	mostFactor  = 10
	mostPatient = 5 // fewer heartbeats may be missed where there are so many
)

// heartbeatEvery is how often each of so many nodes sends a heartbeat.
func heartbeatEvery(usual time.Duration, nodes int) time.Duration {
	switch {
	case nodes > mostNodes:
		return mostFactor * usual
	case nodes > manyNodes:
		return time.Duration(float64(usual) * manyFactor)
	}
	return usual
}

// patience is what a span of silence becomes where so many nodes are.
func patience(usual time.Duration, nodes int) time.Duration {
	switch {
	case nodes > mostNodes:
		return mostPatient * usual
	case nodes > manyNodes:
		return time.Duration(float64(usual) * manyFactor)
	}
	return usual
}

// witnessesEnough is how many witnesses must have failed to reach a node
// before it is lost, where that many exist.
const witnessesEnough = 2

// Liveness decides which nodes live. It is a machine: every method takes the
// time and what became known, changes the machine, and returns what is to be
// done. It reads no clock, asks nobody, and is used by one goroutine. Times
// are on one monotonic clock of its owner.
//
//	heard ──silent or closed──► probing ──no answer──► asking ──nobody reaches it──► lost
//	  ▲                            │                     │
//	  │                            │ answers             │ a witness reaches it
//	  │                            ▼                     ▼
//	  └──────heard again──── suspect, later disconnected ◄
//
// A new leader gives every node one hearing window, as if it had heard all of
// them when it began to lead: from data that is missing nothing follows. Where
// fewer witnesses answer than were asked, the silence must be twice as long.
// When no node at all is heard, it is rather the servers that are cut off:
// nodes become disconnected then, and lost only much later; when that ends,
// all of them get time to dial anew.
type Liveness struct {
	timings LivenessTimings
	rng     *rand.Rand
	nodes   map[string]*suspect
	ids     []string                 // keys of nodes, sorted
	servers []string                 // other servers, sorted
	busy    func(nodeID string) bool // nil: all are
	aloneAt time.Duration            // when no node was heard, most recently
	alone   bool                     // aloneAt was ever set
}

// LivenessEffect is one thing to be done; exactly one field is set.
type LivenessEffect struct {
	Probe   *ProbeOrder
	Ask     *WitnessOrder
	Declare *structs.NodeStatusChange
}

// ProbeOrder asks for direct probes of a node; Probed takes the outcome.
type ProbeOrder struct {
	NodeID string
	Round  int
}

// WitnessOrder asks witnesses whether they reach a node; Witnessed takes the
// outcome for each.
type WitnessOrder struct {
	NodeID    string
	Round     int
	Witnesses []Witness
}

// Witness is an agent that may be asked.
type Witness struct {
	ID     string
	Server bool
}

// suspicion is how far a judgement is.
type suspicion int

const (
	suspicionNone    suspicion = iota
	suspicionProbing           // probes are under way
	suspicionAsking            // witnesses are being asked
)

// suspect is one node under watch.
type suspect struct {
	id          string
	incarnation uint64
	registered  uint64 // log index of its newest registration
	status      structs.NodeStatus
	since       time.Duration // when the status became known here

	heard  time.Duration // last sign of life on a stream
	closed bool          // the stream that gave it has ended

	suspicion suspicion
	round     int           // tells answers to old questions from new ones
	roundAt   time.Duration // when the round began
	nextRound time.Duration // when the next may begin
	asked     int           // witnesses of this round
	answered  int           // of them, that could say something
	silent    int           // of them, that did not answer

	declared   structs.NodeStatus // told, but not yet seen in the state
	declaredAt time.Duration
}

// NewLiveness begins a watch; nodes that it gets to Know count as heard then.
// The seed chooses witnesses.
func NewLiveness(timings LivenessTimings, seed uint64) *Liveness {
	return &Liveness{
		timings: timings.withDefaults(),
		rng:     rand.New(rand.NewPCG(seed, 0)),
		nodes:   make(map[string]*suspect),
	}
}

// SetServers names the other servers, which are witnesses where nodes are
// few.
func (l *Liveness) SetServers(ids []string) { l.servers = slices.Sorted(slices.Values(ids)) }

// SetBusy lets the machine ask whether a node holds work; without it all do.
// The absence of a node that left in order matters only then.
func (l *Liveness) SetBusy(busy func(nodeID string) bool) { l.busy = busy }

// Know takes a node as the state has it. A new registration counts as a sign
// of life.
func (l *Liveness) Know(now time.Duration, node *structs.Node) {
	w := l.nodes[node.ID]
	if w == nil {
		w = &suspect{id: node.ID, heard: now, since: now, status: node.Status}
		l.nodes[node.ID] = w
		at, _ := slices.BinarySearch(l.ids, node.ID)
		l.ids = slices.Insert(l.ids, at, node.ID)
	}
	if node.RegisterIndex != w.registered {
		w.registered = node.RegisterIndex
		w.heardAt(now, false)
	}
	if node.Status != w.status {
		w.status, w.since = node.Status, now
	}
	w.incarnation = node.Incarnation
	if w.declared == w.status {
		w.declared = ""
	}
}

// Forget drops a node that the state does not have any more.
func (l *Liveness) Forget(nodeID string) {
	if _, ok := l.nodes[nodeID]; !ok {
		return
	}
	delete(l.nodes, nodeID)
	at, _ := slices.BinarySearch(l.ids, nodeID)
	l.ids = slices.Delete(l.ids, at, at+1)
}

// Hear takes what a server hears. Of several servers, the one that heard the
// node last counts.
func (l *Liveness) Hear(now time.Duration, heartbeat structs.NodeHeartbeat) {
	w := l.nodes[heartbeat.NodeID]
	if w == nil || heartbeat.Incarnation < w.incarnation {
		return
	}
	if at := now - heartbeat.SilentFor.Std(); at >= w.heard {
		w.heardAt(at, heartbeat.Closed)
	}
}

// heardAt notes a sign of life; on an open stream it ends every suspicion.
func (w *suspect) heardAt(at time.Duration, closed bool) {
	fresh := at > w.heard
	w.heard, w.closed = max(w.heard, at), closed
	if fresh && !closed && w.suspicion != suspicionNone {
		w.calm(at)
	}
}

// calm ends a round; the next may begin at at.
func (w *suspect) calm(at time.Duration) {
	w.suspicion, w.nextRound = suspicionNone, at
}

// Tick looks at every node. It is called every 50 ms or so; more often does no
// harm.
func (l *Liveness) Tick(now time.Duration) []LivenessEffect {
	var effects []LivenessEffect
	for _, id := range l.ids {
		effects = l.look(now, l.nodes[id], effects)
	}
	return effects
}

// patient is a span of silence that suits the number of nodes.
func (l *Liveness) patient(usual time.Duration) time.Duration { return patience(usual, len(l.ids)) }

// Calm is the number of its owner's ticks in which Tick is worth one call: many
// nodes are judged more slowly, and looking at each of ten thousand twenty
// times a second would be much of a core's work.
func (l *Liveness) Calm() int { return int(l.patient(1)) }

// suspicious reports whether a node gives reason to probe it.
func (l *Liveness) suspicious(now time.Duration, w *suspect) bool {
	switch w.status {
	case structs.NodeLost:
		return false
	case structs.NodeLeft:
		return now-w.since >= l.timings.LeftAfter && (l.busy == nil || l.busy(w.id))
	}
	return w.closed || now-w.heard >= l.patient(l.timings.SilentAfter)
}

// look judges one node by the time alone.
func (l *Liveness) look(now time.Duration, w *suspect, effects []LivenessEffect) []LivenessEffect {
	if w.declared != "" && now-w.declaredAt < l.timings.AnswerWithin {
		return effects // the log is at work on it
	}
	if !l.suspicious(now, w) {
		if w.suspicion != suspicionNone {
			w.calm(now)
		}
		if w.status == structs.NodeDisconnected {
			return l.declare(now, w, structs.NodeReady, nil, effects)
		}
		return effects
	}
	if w.suspicion != suspicionNone && now-w.roundAt >= l.timings.AnswerWithin {
		w.calm(now) // an answer got lost
	}
	if w.suspicion == suspicionNone && now >= w.nextRound {
		w.suspicion, w.round, w.roundAt = suspicionProbing, w.round+1, now
		effects = append(effects, LivenessEffect{Probe: &ProbeOrder{NodeID: w.id, Round: w.round}})
	}
	return effects
}

// Probed takes the outcome of the direct probes of a round.
func (l *Liveness) Probed(now time.Duration, nodeID string, round int, answered bool) []LivenessEffect {
	w := l.nodes[nodeID]
	if w == nil || w.suspicion != suspicionProbing || w.round != round {
		return nil
	}
	if answered {
		w.calm(now + l.timings.ProbeEvery)
		if w.status == structs.NodeReady && now-w.heard >= l.patient(l.timings.DisconnectedAfter) {
			return l.declare(now, w, structs.NodeDisconnected, structs.NewReason("server.node_answers_probes"), nil)
		}
		return nil
	}
	witnesses := l.witnessesFor(now, w)
	w.suspicion, w.asked, w.answered, w.silent = suspicionAsking, len(witnesses), 0, 0
	if len(witnesses) == 0 {
		return l.judge(now, w)
	}
	return []LivenessEffect{{Ask: &WitnessOrder{NodeID: nodeID, Round: round, Witnesses: witnesses}}}
}

// ErrAgentDown is what a probe returns when the node's machine refused it:
// the machine lives and its agent does not. Its tasks most likely go on.
var ErrAgentDown = errors.New("the machine answers, its agent does not run")

// Refused takes direct probes of a round that the node's machine refused. An
// agent that was killed is back in a moment and finds its tasks again, so the
// node is only disconnected, until its agent has been away too long.
func (l *Liveness) Refused(now time.Duration, nodeID string, round int) []LivenessEffect {
	w := l.nodes[nodeID]
	if w == nil || w.suspicion != suspicionProbing || w.round != round {
		return nil
	}
	silence := now - w.heard
	if silence >= l.timings.AgentDownAfter {
		return l.Probed(now, nodeID, round, false)
	}
	w.calm(now + l.timings.ProbeEvery)
	if w.status == structs.NodeReady && silence >= l.patient(l.timings.LostAfter) {
		return l.declare(now, w, structs.NodeDisconnected, structs.NewReason("server.agent_down"), nil)
	}
	return nil
}

// Witnessed takes what one witness of a round says: whether it answered at
// all, and whether it reaches the node.
func (l *Liveness) Witnessed(now time.Duration, nodeID string, round int, answered, reached bool) []LivenessEffect {
	w := l.nodes[nodeID]
	if w == nil || w.suspicion != suspicionAsking || w.round != round {
		return nil
	}
	switch {
	case answered && reached:
		w.calm(now + l.timings.ProbeEvery)
		if w.status == structs.NodeReady {
			return l.declare(now, w, structs.NodeDisconnected, structs.NewReason("server.node_reached_by_peer"), nil)
		}
		return nil
	case answered:
		w.answered++
	default:
		w.silent++
	}
	if w.answered+w.silent < w.asked {
		return nil
	}
	return l.judge(now, w)
}

// judge decides about a node that neither probes nor witnesses reach.
func (l *Liveness) judge(now time.Duration, w *suspect) []LivenessEffect {
	w.calm(now)
	if w.status != structs.NodeReady {
		w.calm(now + l.timings.ProbeEvery)
	}
	silence, enough := now-w.heard, l.patient(l.timings.LostAfter)
	if w.answered < min(witnessesEnough, max(w.asked, 1)) {
		enough *= 2
	}
	if l.othersSilent(now, w) {
		l.aloneAt, l.alone = now, true
		if w.status == structs.NodeReady && silence >= enough {
			return l.declare(now, w, structs.NodeDisconnected, structs.NewReason("server.all_nodes_silent"), nil)
		}
		enough = l.timings.AloneAfter
	} else if l.alone && now-l.aloneAt < l.timings.ReturnWithin {
		return nil
	}
	if silence < enough {
		return nil
	}
	return l.declare(now, w, structs.NodeLost, structs.NewReason("server.node_unreachable",
		"silence", silence.Round(time.Millisecond), "witnesses", w.answered), nil)
}

// othersSilent reports whether nodes other than w exist and none of them is
// heard.
func (l *Liveness) othersSilent(now time.Duration, w *suspect) bool {
	others := false
	for _, id := range l.ids {
		other := l.nodes[id]
		if other == w || other.status != structs.NodeReady && other.status != structs.NodeDisconnected {
			continue
		}
		if !l.suspicious(now, other) {
			return false
		}
		others = true
	}
	return others
}

// witnessesFor chooses whom to ask: nodes that are heard, and servers when
// those are few.
func (l *Liveness) witnessesFor(now time.Duration, w *suspect) []Witness {
	var heard []string
	for _, id := range l.ids {
		other := l.nodes[id]
		if other != w && other.status == structs.NodeReady && !l.suspicious(now, other) {
			heard = append(heard, id)
		}
	}
	var chosen []Witness
	for _, at := range l.rng.Perm(len(heard)) {
		if len(chosen) < l.timings.Witnesses {
			chosen = append(chosen, Witness{ID: heard[at]})
		}
	}
	for _, id := range l.servers {
		if len(chosen) < witnessesEnough {
			chosen = append(chosen, Witness{ID: id, Server: true})
		}
	}
	return chosen
}

// declare proposes a status, and waits until the state has it or it was
// refused.
func (l *Liveness) declare(now time.Duration, w *suspect, status structs.NodeStatus, reason *structs.Reason, effects []LivenessEffect) []LivenessEffect {
	w.declared, w.declaredAt = status, now
	return append(effects, LivenessEffect{Declare: &structs.NodeStatusChange{
		NodeID: w.id, Incarnation: w.incarnation, Status: status, Reason: reason,
	}})
}
