package sim

import (
	"fmt"
	"slices"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// Paces of the leader's duties; those of production.
const (
	heartbeatEvery = 200 * time.Millisecond
	tickEvery      = 100 * time.Millisecond
	sweepEvery     = time.Second
	leaseTTL       = 2 * time.Second // shorter than in production, to see more of them end
)

// leader is whoever leads now: the queue loop, the watch over nodes, and the
// sweep of time limits, each deciding with the production function.
type leader struct {
	w        *Cluster
	term     int
	liveness *server.Liveness
	known    map[string]uint64
	heardAt  map[string]time.Duration
	closed   map[string]bool
	planning bool
	fences   *server.Fences
	planned  uint64 // schedule index that the queue was last looked at
	growAt   structs.UnixNano
}

func newLeader(w *Cluster) *leader {
	l := &leader{w: w, heardAt: make(map[string]time.Duration), closed: make(map[string]bool)}
	l.reset()
	return l
}

// reset is what a new leader knows: the state, and nothing else.
func (l *leader) reset() {
	l.liveness = server.NewLiveness(server.LivenessTimings{}, uint64(l.term))
	l.liveness.SetServers([]string{"s1", "s2"})
	l.known = make(map[string]uint64)
	l.fences = server.NewFences(leaseTTL)
	l.planning, l.planned, l.growAt = false, 0, 0
}

func (l *leader) begin() {
	l.w.log.changed = l.changed
	l.tick()
	l.sweep()
}

// elected is a change of leadership: in-flight answers belong to the old one.
func (l *leader) elected() {
	l.term++
	l.reset()
	l.changed()
}

// changed follows every applied entry: nodes are told, the queue is looked at.
func (l *leader) changed() {
	l.learn()
	for _, m := range l.w.nodes {
		m.push(false)
	}
	l.plan()
}

// learn tells the watch about nodes as the state has them.
func (l *leader) learn() {
	for node := range l.w.log.state().Nodes() {
		if l.known[node.ID] != node.ModifyIndex {
			l.known[node.ID] = node.ModifyIndex
			l.liveness.Know(l.w.now, node)
		}
	}
}

// plan runs the queue loop once, unless a plan is on its way.
func (l *leader) plan() {
	snapshot := l.w.log.state()
	if l.planning {
		return
	}
	if snapshot.ScheduleIndex() == l.planned {
		return
	}
	l.planned = snapshot.ScheduleIndex()
	if l.w.flaky(0.05) { // a plan from a state that is out of date by now
		stale := l.w.log.replicas[l.w.rng.IntN(len(l.w.log.replicas))]
		if !stale.down {
			snapshot = stale.store.Snapshot()
			l.planned = 0
		}
	}
	input := scheduler.Input{Snapshot: snapshot}
	seed := snapshot.Index()
	board := scheduler.NewBoard(input.Settings) // as Schedule does, and it reports when gangs may grow
	board.Sync(snapshot)
	plan := board.Pass(l.w.wall(), seed)
	l.growAt, _ = board.GrowDue(l.w.wall())
	l.w.checkPure(input, l.w.wall(), seed, plan)
	if l.w.config.Break == PlantTimidGrowth {
		plan.Gangs = slices.DeleteFunc(plan.Gangs, func(g structs.GangPlan) bool { return g.Attempt > 1 && len(g.Victims) > 0 })
	}
	if l.w.config.Break == PlantForgottenJob {
		plan.Gangs = slices.DeleteFunc(plan.Gangs, func(g structs.GangPlan) bool { return g.JobID == fmt.Sprintf("%032x", 3) })
	}
	kind, body := structs.CommandPlan, any(&plan)
	switch {
	case len(plan.Gangs) == 0 && len(plan.Waits) == 0:
		return
	case len(plan.Gangs) == 0:
		kind, body = structs.CommandWaitReasons, &structs.WaitReasons{Waits: plan.Waits}
	}
	l.planning = true
	term := l.term
	l.w.log.propose(kind, "leader", body, func(structs.ApplyResult, error) {
		if l.term != term {
			return
		}
		l.planning = false
		l.planned = 0
		l.plan()
	})
}

// tick is the watch's clock; restart delays end by time alone as well.
func (l *leader) tick() {
	l.w.after(tickEvery, l.tick)
	for _, m := range l.w.nodes {
		at, ok := l.heardAt[m.id]
		if !ok {
			continue
		}
		l.liveness.Hear(l.w.now, structs.NodeHeartbeat{
			NodeID: m.id, Incarnation: m.incarnation,
			SilentFor: structs.Duration(l.w.now - at), Closed: l.closed[m.id],
		})
	}
	l.execute(l.liveness.Tick(l.w.now))
	if _, due := l.w.log.state().NextDelayed(l.w.wall()); due || l.hasDue() || l.growAt != 0 && l.w.wall() >= l.growAt {
		l.planned = 0
		l.plan()
	}
}

// hasDue reports whether a subjob waits whose restart delay is over.
func (l *leader) hasDue() bool {
	for _, s := range l.w.log.state().Queue() {
		if s.NotBefore != 0 && s.NotBefore <= l.w.wall() {
			return true
		}
	}
	return false
}

func (l *leader) heard(m *machine) {
	l.heardAt[m.id], l.closed[m.id] = l.w.now, false
}

func (l *leader) streamOpened(m *machine) { l.heard(m) }

// streamClosed is heard only when the closing reaches the servers.
func (l *leader) streamClosed(m *machine) {
	if !m.dark && !m.cutOff {
		l.closed[m.id] = true
	}
}

// execute plays probes, witnesses and the log for the watch.
func (l *leader) execute(effects []server.LivenessEffect) {
	term := l.term
	for _, effect := range effects {
		switch {
		case effect.Probe != nil:
			order := effect.Probe
			m := l.machine(order.NodeID)
			delay := l.w.span(time.Millisecond, 5*time.Millisecond)
			if !m.reachable() {
				delay = 300 * time.Millisecond
			}
			l.w.after(delay, func() {
				switch {
				case l.term != term:
				case m.powered && !m.agent && !m.dark && !m.cutOff:
					l.execute(l.liveness.Refused(l.w.now, order.NodeID, order.Round))
				default:
					l.execute(l.liveness.Probed(l.w.now, order.NodeID, order.Round, m.reachable() && !l.w.flaky(0.05)))
				}
			})
		case effect.Ask != nil:
			for _, witness := range effect.Ask.Witnesses {
				l.ask(effect.Ask, witness)
			}
		case effect.Declare != nil:
			change := *effect.Declare
			l.w.note("judge %s %s", change.NodeID, change.Status)
			l.w.log.propose(structs.CommandNodeStatus, "leader", &change, func(structs.ApplyResult, error) {})
		}
	}
}

func (l *leader) ask(order *server.WitnessOrder, witness server.Witness) {
	term := l.term
	m := l.machine(order.NodeID)
	l.w.after(l.w.span(time.Millisecond, 200*time.Millisecond), func() {
		if l.term != term {
			return
		}
		answered, reached := true, m.visible()
		if witness.Server {
			reached = m.reachable()
		} else if peer := l.machine(witness.ID); !peer.reachable() {
			answered = false
		}
		l.execute(l.liveness.Witnessed(l.w.now, order.NodeID, order.Round, answered, answered && reached))
	})
}

func (l *leader) machine(id string) *machine {
	for _, m := range l.w.nodes {
		if m.id == id {
			return m
		}
	}
	panic("no machine " + id)
}

// sweep expires attempts whose time limit has passed.
func (l *leader) sweep() {
	l.w.after(sweepEvery, l.sweep)
	snapshot := l.w.log.state()
	var expired []structs.AttemptKey
	for attempt := range snapshot.LiveAttempts() {
		view, ok := snapshot.Job(attempt.JobID)
		if !ok || view.Job.TimeLimit == 0 || attempt.RunningAt == 0 || attempt.State != structs.AttemptRunning {
			continue
		}
		if l.w.wall() >= attempt.RunningAt.Add(view.Job.TimeLimit.Std()) {
			expired = append(expired, structs.AttemptKey{JobID: attempt.JobID, Subjob: attempt.Subjob, Number: attempt.Number})
		}
	}
	if len(expired) > 0 {
		l.w.log.propose(structs.CommandJobLimits, "leader", &structs.JobLimits{Expired: expired}, func(structs.ApplyResult, error) {})
	}
	l.sweepWindows(snapshot)
	now := l.w.now
	if l.w.config.Break == PlantHastyFence {
		l.fences.Step(snapshot, now-time.Hour)
	}
	for _, over := range l.fences.Step(snapshot, now) {
		l.w.log.propose(structs.CommandLeaseOver, "leader", over, func(structs.ApplyResult, error) {})
	}
}
