package sim

import (
	"fmt"
	"time"

	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// machine is one node: its agent, its disk, its network and the processes
// that truly run on it.
type machine struct {
	w    *Cluster
	id   string
	name string

	powered bool
	agent   bool // the agent's process runs
	paused  bool // the agent's process is stopped (SIGSTOP); tasks go on
	cutOff  bool // no server can be reached, peers can
	dark    bool // nobody can be reached

	life        int // of the agent: answers to an earlier life are not heard
	incarnation uint64
	table       *alloc.Table
	disk        map[string]alloc.State
	processes   map[string]*process          // by allocation
	exits       map[string]driver.ExitResult // records of supervisors whose exit nobody took yet
	cancelled   map[string]bool
	held        map[string]*held   // debug holds, by allocation
	streams     map[string]*stream // logs, by allocation

	leaseFrom time.Duration // of the newest heartbeat that was answered

	link link
}

// process is a rank that truly runs.
type process struct {
	alloc   string
	started time.Duration
}

// link is the node's session with a server.
type link struct {
	live    bool
	number  int           // of the session: words of an earlier one are not heard
	since   time.Duration // when the session began
	seen    uint64        // state index up to which assignments were sent
	arrives time.Duration
	late    []func() // words that a cut or a pause holds up
	outbox  []structs.AllocReport
	sending bool
}

func newMachine(w *Cluster, index int) *machine {
	return &machine{
		w: w, id: fmt.Sprintf("node-%02d", index), name: fmt.Sprintf("n%d", index),
		disk: make(map[string]alloc.State), processes: make(map[string]*process),
		exits: make(map[string]driver.ExitResult), cancelled: make(map[string]bool), held: make(map[string]*held),
		streams: make(map[string]*stream),
	}
}

// boot powers the machine up and starts its agent.
func (m *machine) boot() {
	m.powered = true
	m.startAgent()
}

// reachable reports whether the servers hear the machine's agent.
func (m *machine) reachable() bool {
	return m.powered && m.agent && !m.paused && !m.cutOff && !m.dark
}

// visible reports whether other nodes hear it.
func (m *machine) visible() bool { return m.powered && m.agent && !m.paused && !m.dark }

// startAgent starts the agent's process: it finds what is on disk.
func (m *machine) startAgent() {
	if !m.powered || m.agent {
		return
	}
	m.agent, m.paused = true, false
	m.life++
	m.incarnation++
	m.table = alloc.NewTable(m.id)
	m.link.outbox, m.link.sending, m.link.live = nil, false, false
	states := make([]alloc.State, 0, len(m.disk))
	for _, id := range sortedKeys(m.disk) {
		states = append(states, m.disk[id])
	}
	m.do(m.table.Resume(states, m.w.wall()))
	m.connectLater()
}

// stopAgent is kill -9 of the agent: its tasks go on.
func (m *machine) stopAgent() {
	m.agent = false
	m.life++
	m.hangUp()
}

// powerOff ends everything on the machine at once.
func (m *machine) powerOff() {
	m.stopAgent()
	m.powered = false
	for _, id := range sortedKeys(m.processes) {
		m.streams[id].tear()
	}
	m.processes = make(map[string]*process)
	m.exits = make(map[string]driver.ExitResult)
	m.held = make(map[string]*held)
}

// node is what the agent registers.
func (m *machine) node() structs.Node {
	return structs.Node{
		ID: m.id, Name: m.name, Addr: "10.0.0.1", RPCAddr: "10.0.0.1:4646", Version: "sim", Incarnation: m.incarnation,
		Drivers:  []string{"exec"},
		Capacity: structs.Capacity{CPU: 4, Memory: 8 << 30, PortMin: 20000, PortMax: 20100},
	}
}

// hear lets the agent, in the life that asked, take an event.
func (m *machine) hear(life int, id string, event alloc.Event) {
	if m.life != life || !m.agent {
		return
	}
	if m.paused {
		m.w.after(100*time.Millisecond, func() { m.hear(life, id, event) })
		return
	}
	m.do(m.table.Step(id, event, m.w.wall()))
}

// do executes effects in their order.
func (m *machine) do(effects []alloc.Effect) {
	life := m.life
	for _, effect := range effects {
		id := effect.Alloc()
		switch e := effect.(type) {
		case alloc.Prepare:
			m.prepare(life, id)
		case alloc.CancelPrepare:
			m.cancelled[id] = true
		case alloc.Start:
			m.w.after(m.w.span(time.Millisecond, 20*time.Millisecond), func() { m.start(life, id) })
		case alloc.Recover:
			m.w.after(m.w.span(time.Millisecond, 10*time.Millisecond), func() { m.recover(life, id, e.Handle != nil) })
		case alloc.Stop:
			m.w.checkWanted(m, id)
			m.stop(id, e.Grace)
		case alloc.Control:
			answer := structs.ControlAnswer{Seq: e.Control.Seq}
			if m.w.flaky(0.05) {
				answer.Failed = structs.NewReason("client.control_failed", "cause", "busy")
			}
			m.w.after(m.w.span(time.Millisecond, 300*time.Millisecond), func() { m.hear(life, id, alloc.Controlled{Answer: answer}) })
		case alloc.Report:
			m.link.outbox = append(m.link.outbox, e.Report)
			m.flush()
		case alloc.Persist:
			if s, ok := m.table.State(id); ok {
				m.disk[id] = s
			}
		case alloc.Clean:
			delete(m.exits, id)
			m.w.after(30*time.Second, func() { m.forget(life, id) })
		default:
			m.w.fail("node %s: effect %T is unknown to the simulator", m.name, effect)
		}
	}
}

func (m *machine) forget(life int, id string) {
	if m.life != life {
		return
	}
	if s, ok := m.table.State(id); ok && s.Acked && m.table.Forget(id) {
		delete(m.disk, id)
		if log := m.streams[id]; log != nil {
			delete(m.streams, id)
			log.sweep()
		}
	}
}

func (m *machine) prepare(life int, id string) {
	if m.w.config.Break == PlantEarlyStart && m.w.chance(0.2) {
		m.w.after(time.Millisecond, func() { m.start(life, id) })
	}
	m.w.after(m.w.span(time.Millisecond, 60*time.Millisecond), func() {
		switch {
		case m.cancelled[id]:
			m.hear(life, id, alloc.PrepareFailed{Cause: structs.NewReason("client.cancelled")})
		case m.w.flaky(0.01):
			m.hear(life, id, alloc.PrepareFailed{Cause: structs.NewReason("client.port_taken"), Infra: m.w.config.Break != PlantChargedInfra})
		default:
			m.hear(life, id, alloc.Prepared{})
		}
	})
}

// start is the driver's: it begins a process if the agent still wants it.
func (m *machine) start(life int, id string) {
	if m.life != life || !m.powered {
		return
	}
	if m.processes[id] != nil {
		m.w.fail("I9: node %s starts %s twice", m.name, id)
		return
	}
	m.processes[id] = &process{alloc: id, started: m.w.now}
	m.w.note("start %s on %s", id, m.name)
	m.w.checkStart(m, id)
	m.w.checkRoom(m)
	m.openLog(id, m.processes[id])
	m.w.people.plan(m, id)
	m.hear(life, id, alloc.Started{Handle: driver.Handle{}})
}

// recover is the driver's answer to an agent that has come back.
func (m *machine) recover(life int, id string, handle bool) {
	if m.life != life {
		return
	}
	if m.processes[id] != nil {
		m.hear(life, id, alloc.Started{Handle: driver.Handle{}})
		return
	}
	if result, ok := m.exits[id]; ok {
		m.hear(life, id, alloc.Started{Handle: driver.Handle{}})
		m.hearExit(life, id, result)
		return
	}
	if handle {
		m.hear(life, id, alloc.Unrecoverable{Cause: structs.NewReason("client.task_lost")})
		return
	}
	m.hear(life, id, alloc.Absent{})
}

// stop is the driver's: most processes end on the signal, some only when
// their grace is over.
func (m *machine) stop(id string, grace time.Duration) {
	if m.processes[id] == nil {
		return
	}
	delay := m.w.span(time.Millisecond, 5*time.Millisecond)
	if grace > 0 {
		delay = m.w.span(time.Millisecond, 300*time.Millisecond)
		if m.w.chance(0.1) {
			delay = grace
		}
	}
	m.exit(id, delay, driver.ExitResult{Signal: "SIGTERM"})
}

// exit ends a process after a delay, unless it has ended by then.
func (m *machine) exit(id string, delay time.Duration, result driver.ExitResult) {
	p := m.processes[id]
	m.w.after(delay, func() {
		if p == nil || m.processes[id] != p {
			return
		}
		delete(m.processes, id)
		m.streams[id].close()
		m.w.note("exit %s on %s code %d", id, m.name, result.Code)
		m.exits[id] = result
		if m.agent {
			m.hearExit(m.life, id, result)
		}
	})
}

// hearExit tells the agent of an end. It knows when it had no lease, and so who
// killed what was killed then.
func (m *machine) hearExit(life int, id string, result driver.ExitResult) {
	if result.Signal == "SIGKILL" {
		m.hear(life, id, alloc.LeaseEnded{})
	}
	m.hear(life, id, alloc.Exited{Result: result})
}

// Paces of what watches a node's lease; those of production.
const (
	leaseLookEvery = 250 * time.Millisecond
	leaseBehind    = 500 * time.Millisecond // of the supervisors, behind their agent
)

// watchLease kills what is strict when the lease has ended: the agent does, or
// the supervisors of tasks whose agent is gone or stands still.
func (m *machine) watchLease() {
	m.w.after(leaseLookEvery, m.watchLease)
	past := m.w.now - m.leaseFrom - leaseTTL
	if !m.powered || past < 0 {
		return
	}
	if m.agent && !m.paused {
		m.do(m.table.EndLease(m.w.wall()))
	}
	if past < leaseBehind {
		return
	}
	snapshot := m.w.log.state()
	for _, id := range sortedKeys(m.processes) {
		a := snapshot.Alloc(id)
		if a == nil {
			continue
		}
		if view, ok := snapshot.Job(a.JobID); ok && view.Job.Fencing == structs.FencingStrict {
			m.exit(id, time.Millisecond, driver.ExitResult{Signal: "SIGKILL"})
		}
	}
}

// hangUp ends the session from either side.
func (m *machine) hangUp() {
	if m.link.live {
		m.link.live = false
		m.link.number++
		if m.w.config.Break == PlantEagerStop && m.powered {
			for _, id := range sortedKeys(m.processes) {
				m.w.checkWanted(m, id)
				m.stop(id, 0)
			}
		}
		m.w.leader.streamClosed(m)
	}
	m.link.sending, m.link.late = false, nil
}

// connectLater tries again and again to open a session.
func (m *machine) connectLater() {
	life := m.life
	m.w.after(m.w.span(10*time.Millisecond, 250*time.Millisecond), func() {
		if m.life != life || m.link.live {
			return
		}
		if !m.reachable() {
			m.connectLater()
			return
		}
		m.link.number++
		number := m.link.number
		hello := structs.NodeRegister{Node: m.node(), Inventory: m.inventory()}
		m.w.log.propose(structs.CommandNodeRegister, m.id, &hello, func(result structs.ApplyResult, err error) {
			if m.life != life || m.link.number != number {
				return
			}
			if err != nil || result.Err != nil || !m.reachable() {
				m.connectLater()
				return
			}
			m.welcome()
		})
	})
}

// welcome opens the session: the node learns everything that is its.
func (m *machine) welcome() {
	m.link.live, m.link.since, m.link.seen, m.link.sending = true, m.w.now, 0, false
	m.leaseFrom = m.w.now
	m.w.leader.streamOpened(m)
	m.push(true)
	m.flush()
	m.heartbeat(m.link.number)
}

// push sends what the node does not know yet. A node that was declared lost
// has to register again: its session ends.
func (m *machine) push(full bool) {
	if !m.link.live {
		return
	}
	snapshot := m.w.log.state()
	if node := snapshot.Node(m.id); node != nil && node.Status == structs.NodeLost {
		m.hangUp()
		m.connectLater()
		return
	}
	message := &structs.Assignments{Index: snapshot.Index(), Full: full}
	for a := range snapshot.AllocsOfNode(m.id) {
		if full && !a.OccupiesNode() || !full && a.ModifyIndex <= m.link.seen {
			continue
		}
		view, ok := snapshot.Job(a.JobID)
		if !ok {
			continue
		}
		message.Set = append(message.Set, structs.Assignment{Alloc: a, Job: view.Job})
	}
	m.link.seen = snapshot.Index()
	if !full && len(message.Set) == 0 {
		return
	}
	life, number := m.life, m.link.number
	// The stream keeps its order: nothing overtakes.
	m.link.arrives = max(m.link.arrives, m.w.now+m.w.span(200*time.Microsecond, 10*time.Millisecond))
	m.w.after(m.link.arrives-m.w.now, func() { m.assigned(life, number, message) })
}

func (m *machine) assigned(life, number int, message *structs.Assignments) {
	m.deliver(func() bool { return m.life == life && m.link.number == number }, func() { m.take(message) })
}

// deliverLate hands over what a cut or a pause held up.
func (m *machine) deliverLate() {
	number := m.link.number
	for len(m.link.late) > 0 && m.link.number == number {
		next := m.link.late[0]
		m.link.late = m.link.late[1:]
		next()
	}
}

func (m *machine) take(message *structs.Assignments) {
	if m.w.config.Break == PlantOldAttempts {
		message.Full = false
		kept := message.Set[:0:0]
		for _, a := range message.Set {
			if a.Alloc.Status != structs.AllocLost {
				kept = append(kept, a)
			}
		}
		message.Set = kept
	}
	m.do(m.table.Assign(message, m.w.wall()))
	m.hold(message)
}

// flush sends what is waiting to be told, one batch at a time.
func (m *machine) flush() {
	if !m.link.live || m.link.sending || len(m.link.outbox) == 0 || !m.reachable() {
		return
	}
	m.link.sending = true
	batch := m.link.outbox
	life, number := m.life, m.link.number
	current := func() bool { return m.life == life && m.link.number == number }
	acked := func(err error) {
		m.link.sending = false
		if err != nil {
			m.hangUp() // the server gave up on it: a new session says it again
			m.connectLater()
			return
		}
		m.link.outbox = m.link.outbox[len(batch):]
		for _, report := range batch {
			m.do(m.table.Step(report.AllocID, alloc.Acked{Status: report.Status}, m.w.wall()))
		}
		m.flush()
	}
	send := func() {
		m.w.log.propose(structs.CommandAllocReports, m.id, &structs.AllocReports{NodeID: m.id, Reports: batch}, func(_ structs.ApplyResult, err error) {
			m.deliver(current, func() { acked(err) })
		})
	}
	m.w.after(m.w.span(200*time.Microsecond, 5*time.Millisecond), func() { m.deliver(current, send) })
}

// deliver lets words of the session through, or keeps them, in order, while
// the network is cut or the agent is paused: a stream repeats what it cannot
// deliver until it breaks.
func (m *machine) deliver(current func() bool, words func()) {
	switch {
	case !current():
	case !m.reachable() || len(m.link.late) > 0:
		m.link.late = append(m.link.late, words)
	default:
		words()
	}
}

// heartbeat is heard by the leader as long as the session lives; a machine
// that notices that nobody answers connects anew.
func (m *machine) heartbeat(number int) {
	m.w.after(heartbeatEvery, func() {
		if !m.link.live || m.link.number != number {
			return
		}
		if m.reachable() {
			m.deliverLate()
			m.leaseFrom = m.w.now
			m.w.leader.heard(m)
			m.flush()
			m.w.checkOld(m)
		} else if !m.paused && m.w.chance(0.2) { // its own time-out
			m.hangUp()
			m.connectLater()
			return
		}
		m.heartbeat(number)
	})
}
