package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

const changeTimeout = 5 * time.Second // of one change of autopilot

// membership is the servers of the cluster as this server sees them: Raft's
// configuration and gossip side by side.
type membership struct {
	raft   *consensus.Node
	gossip *gossip.Gossip
	log    *slog.Logger
	now    func() time.Time
	expect int
	pool   *rpc.Pool
	name   string // of this server, for people
	dir    string // of its log
	store  *state.Store

	condition func(id string) rpc.Condition // of a server, as it says itself

	mu struct {
		sync.Mutex
		heard map[string]heard // what the leader saw of the servers, by id
		term  uint64           // in which it did
	}
}

// heard is whether a server of Raft's configuration answers, and since when.
type heard struct {
	alive bool
	since time.Time
}

// answering notes whether a server answers now, and returns since when it does
// or does not.
func (m *membership) answering(id string, alive bool, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if term := m.raft.Term(); m.mu.heard == nil || m.mu.term != term {
		m.mu.heard, m.mu.term = map[string]heard{}, term // nobody looked meanwhile
	}
	last, known := m.mu.heard[id]
	if !known || last.alive != alive {
		last = heard{alive, now}
		m.mu.heard[id] = last
	}
	return now.Sub(last.since)
}

// views puts together what Raft knows of the servers and what they have
// proven. Gossip alone counts for nothing here: every node can say what it
// likes there.
func (m *membership) views() []serverView {
	now := m.now()
	byID := map[string]*serverView{}
	var order []string
	view := func(id string) *serverView {
		if byID[id] == nil {
			byID[id] = &serverView{id: id, self: id == m.raft.ID()}
			order = append(order, id)
		}
		return byID[id]
	}
	for _, peer := range m.raft.Peers() {
		v := view(peer.ID)
		v.addr, v.voter = peer.Addr, peer.Voter
	}
	for _, server := range m.gossip.Proven() {
		v := view(server.ID)
		v.seenAddr, v.seen, v.seenFor = server.RPCAddr, server.Fresh, now.Sub(server.Since)
	}
	for _, health := range m.raft.Health() {
		v := view(health.ID)
		v.behind, v.heard = health.Behind, health.LastContact >= 0 && health.LastContact < time.Second
	}
	views := make([]serverView, len(order))
	cluster := m.store.Snapshot().Cluster()
	for i, id := range order {
		v := byID[id]
		v.removed = cluster.IsRemoved(id)
		condition := m.condition(id)
		if v.full = condition.Full; condition.Backup == rpc.BackupFailed {
			v.backup = condition.Reason
		}
		v.alive = v.self || v.heard || v.seen
		v.since = m.answering(id, v.alive, now)
		views[i] = *v
	}
	return views
}

// Protocol is the lowest version that a server of the log speaks: the first
// result of Lowest.
func (m *membership) Protocol() int {
	protocol, _ := m.Lowest()
	return protocol
}

// Lowest is the member of Raft's configuration that speaks the lowest protocol,
// by its name for people. One that is silent speaks what it told last, before this
// server's start too. One that has told none may be of any age.
func (m *membership) Lowest() (protocol int, server string) {
	protocol = wire.ProtocolVersion
	for _, peer := range m.raft.Peers() {
		if peer.ID == m.raft.ID() {
			continue
		}
		meta := m.gossip.View(peer.ID).Meta
		told := meta.Protocol
		if told == 0 {
			told = m.remembered(peer.ID)
		}
		if told < protocol {
			if protocol, server = told, meta.Name; server == "" {
				server = peer.Addr
			}
		}
	}
	return protocol, server
}

// remembered is the protocol that a server told before it fell silent.
func (m *membership) remembered(id string) int {
	for _, known := range m.gossip.Remembered() {
		if known.ID == id && known.Protocol > 0 {
			return known.Protocol
		}
	}
	return wire.OldestProtocol
}

// tend makes the changes that autopilot wants; it runs on the leader and ends
// with ctx.
func (m *membership) tend(ctx context.Context) {
	for ctx.Err() == nil && m.raft.IsLeader() {
		next := nextChange(m.views(), m.expect)
		if next.act == changeNone {
			return
		}
		step, cancel := context.WithTimeout(ctx, changeTimeout)
		err := m.apply(step, next)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				m.log.Warn("server was not changed", "act", string(next.act), logkey.PeerID, next.id, logkey.Error, err)
			}
			return
		}
		m.log.Info("server changed", "act", string(next.act), logkey.PeerID, next.id, logkey.Addr, next.addr)
	}
}

func (m *membership) apply(ctx context.Context, c change) error {
	if c.act == changeAdd || c.act == changeMove {
		// Once more, now: what was true a second ago may be somebody else's word.
		if _, err := proveServer(ctx, m.pool, c.id, c.addr); err != nil {
			return err
		}
	}
	switch c.act {
	case changeAdd:
		return m.raft.AddNonvoter(ctx, c.id, c.addr)
	case changePromote:
		return m.raft.Promote(ctx, c.id)
	case changeRemove:
		return m.raft.RemovePeer(ctx, c.id)
	case changeMove:
		for _, peer := range m.raft.Peers() {
			if peer.ID == c.id && peer.Voter {
				return m.raft.AddVoter(ctx, c.id, c.addr)
			}
		}
		return m.raft.AddNonvoter(ctx, c.id, c.addr)
	}
	return nil
}

// names returns what people call the members that gossip knows.
func (m *membership) names() map[string]string {
	names := make(map[string]string)
	for _, member := range m.gossip.Members() {
		names[member.ID] = member.Meta.Name
	}
	return names
}

// raftError tells a caller what a failure of Raft means.
func raftError(err error) error {
	var notLeader *consensus.NotLeaderError
	switch {
	case errors.As(err, &notLeader):
		return structs.NewError(structs.CodeUnavailable, "agent.no_leader").Because(err)
	case errors.Is(err, consensus.ErrOutcomeUnknown), errors.Is(err, context.DeadlineExceeded):
		return structs.NewError(structs.CodeTimeout, "agent.timeout").Because(err)
	case errors.Is(err, consensus.ErrShutdown):
		return structs.NewError(structs.CodeUnavailable, "agent.stopping").Because(err)
	}
	return err
}

// begin begins the log, for the server at addr: at once when it is to be alone, else as
// soon as gossip knows as many servers as expected.
func (m *membership) begin(life *lifecycle, addr string) error {
	if m.expect == 1 {
		return m.raft.Bootstrap([]consensus.Peer{{ID: m.raft.ID(), Addr: addr, Voter: true}})
	}
	life.run(func() {
		tick := time.NewTicker(bootstrapEvery)
		defer tick.Stop()
		for {
			servers := m.gossip.Servers()
			if len(servers) >= m.expect {
				peers := make([]consensus.Peer, len(servers))
				for i, member := range servers {
					peers[i] = consensus.Peer{ID: member.ID, Addr: member.Meta.RPCAddr, Voter: true}
				}
				err := m.raft.Bootstrap(peers)
				if err != nil && !errors.Is(err, consensus.ErrShutdown) {
					life.fail(err)
				}
				return
			}
			select {
			case <-tick.C:
			case <-life.stopping:
				return
			}
		}
	})
	return nil
}
