package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

const (
	snapshotSizeMax = 64 << 30 // bytes of an uploaded snapshot
	changeTimeout   = 5 * time.Second
	joinAddrsMax    = 16
)

// parliament is the servers of the cluster as this server sees them: Raft's
// configuration and gossip side by side.
type parliament struct {
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

// answering notes whether a server answers now, and gives since when it does
// or does not.
func (p *parliament) answering(id string, alive bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term := p.raft.Term(); p.mu.heard == nil || p.mu.term != term {
		p.mu.heard, p.mu.term = map[string]heard{}, term // nobody looked meanwhile
	}
	last, known := p.mu.heard[id]
	if !known || last.alive != alive {
		last = heard{alive, now}
		p.mu.heard[id] = last
	}
	return now.Sub(last.since)
}

// views puts together what Raft knows of the servers and what they have
// proven. Gossip alone counts for nothing here: every node can say what it
// likes there.
func (p *parliament) views() []serverView {
	now := p.now()
	byID := map[string]*serverView{}
	var order []string
	view := func(id string) *serverView {
		if byID[id] == nil {
			byID[id] = &serverView{id: id, self: id == p.raft.ID()}
			order = append(order, id)
		}
		return byID[id]
	}
	for _, peer := range p.raft.Peers() {
		v := view(peer.ID)
		v.addr, v.voter = peer.Addr, peer.Voter
	}
	for _, server := range p.gossip.Proven() {
		v := view(server.ID)
		v.seenAddr, v.seen, v.seenFor = server.RPCAddr, server.Fresh, now.Sub(server.Since)
	}
	for _, health := range p.raft.Health() {
		v := view(health.ID)
		v.behind, v.heard = health.Behind, health.LastContact >= 0 && health.LastContact < time.Second
	}
	views := make([]serverView, len(order))
	cluster := p.store.Snapshot().Cluster()
	for i, id := range order {
		v := byID[id]
		v.removed = cluster.IsRemoved(id)
		condition := p.condition(id)
		if v.full = condition.Full; condition.Backup == rpc.BackupFailed {
			v.backup = condition.Reason
		}
		v.alive = v.self || v.heard || v.seen
		v.since = p.answering(id, v.alive, now)
		views[i] = *v
	}
	return views
}

// protocol is the lowest version that a server of the log speaks, as far as
// gossip knows.
func (p *parliament) protocol() int {
	lowest := wire.ProtocolVersion
	for _, peer := range p.raft.Peers() {
		if told := p.gossip.View(peer.ID).Meta.Protocol; peer.ID != p.raft.ID() && told > 0 {
			lowest = min(lowest, told)
		}
	}
	return lowest
}

// lowest is the member of Raft's configuration that speaks the lowest protocol,
// by its name for people. One that tells none may be of any age.
func (p *parliament) lowest() (protocol int, server string) {
	protocol = wire.ProtocolVersion
	for _, peer := range p.raft.Peers() {
		if peer.ID == p.raft.ID() {
			continue
		}
		meta := p.gossip.View(peer.ID).Meta
		told := meta.Protocol
		if told == 0 {
			told = wire.OldestProtocol
		}
		if told < protocol {
			if protocol, server = told, meta.Name; server == "" {
				server = peer.Addr
			}
		}
	}
	return protocol, server
}

// tend makes the changes that autopilot wants; it runs on the leader and ends
// with ctx.
func (p *parliament) tend(ctx context.Context) {
	for ctx.Err() == nil && p.raft.IsLeader() {
		next := nextChange(p.views(), p.expect)
		if next.act == changeNone {
			return
		}
		step, cancel := context.WithTimeout(ctx, changeTimeout)
		err := p.apply(step, next)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				p.log.Warn("server was not changed", "act", string(next.act), logkey.PeerID, next.id, logkey.Error, err)
			}
			return
		}
		p.log.Info("server changed", "act", string(next.act), logkey.PeerID, next.id, logkey.Addr, next.addr)
	}
}

func (p *parliament) apply(ctx context.Context, c change) error {
	if c.act == changeAdd || c.act == changeMove {
		// Once more, now: what was true a second ago may be somebody else's word.
		if _, err := proveServer(ctx, p.pool, c.id, c.addr); err != nil {
			return err
		}
	}
	switch c.act {
	case changeAdd:
		return p.raft.AddNonvoter(ctx, c.id, c.addr)
	case changePromote:
		return p.raft.Promote(ctx, c.id)
	case changeRemove:
		return p.raft.RemovePeer(ctx, c.id)
	case changeMove:
		for _, peer := range p.raft.Peers() {
			if peer.ID == c.id && peer.Voter {
				return p.raft.AddVoter(ctx, c.id, c.addr)
			}
		}
		return p.raft.AddNonvoter(ctx, c.id, c.addr)
	}
	return nil
}

// listMembers answers servers.list.
func (s *site) listMembers(r *request) error {
	leader := s.house.raft.LeaderID()
	snapshot := s.store.Snapshot()
	out := api.MemberList{Members: []api.Member{}}
	for _, member := range s.house.gossip.Members() {
		role := member.Meta.Role
		if role == string(auth.RoleServer) && snapshot.Node(member.ID) != nil {
			role = "both"
		}
		out.Members = append(out.Members, api.Member{
			ID: member.ID, Name: member.Meta.Name, Role: role, GossipAddr: member.Addr, RPCAddr: member.Meta.RPCAddr,
			Status: string(member.State), Leader: member.ID == leader, Version: member.Meta.Version, Protocol: member.Meta.Protocol,
		})
	}
	return r.reply(out)
}

func (s *site) joinMembers(r *request) error {
	addresses := r.body.(*api.ServersJoinRequest).Addresses
	if len(addresses) == 0 || len(addresses) > joinAddrsMax {
		return structs.NewError(structs.CodeInvalid, "agent.join_addresses", "max", joinAddrsMax)
	}
	joined, err := s.house.gossip.Join(r.Context(), addresses)
	if err != nil {
		return structs.NewError(structs.CodeUnavailable, "agent.join_failed", "reason", err).Because(err)
	}
	return r.reply(api.ServersJoined{Joined: joined})
}

func (s *site) listPeers(r *request) error {
	if _, err := s.replica.Consistent(r.Context()); err != nil {
		return err
	}
	leader := s.house.raft.LeaderID()
	names := s.house.names()
	out := api.RaftPeerList{Peers: []api.RaftPeer{}, Index: s.house.raft.AppliedIndex()}
	if cluster := s.store.Snapshot().Cluster(); cluster != nil {
		out.Removed = cluster.Removed
	}
	for _, peer := range s.house.raft.Peers() {
		out.Peers = append(out.Peers, api.RaftPeer{ID: peer.ID, Name: names[peer.ID], Addr: peer.Addr, Voter: peer.Voter, Leader: peer.ID == leader})
	}
	return r.reply(out)
}

// names gives what people call the members that gossip knows.
func (p *parliament) names() map[string]string {
	names := make(map[string]string)
	for _, member := range p.gossip.Members() {
		names[member.ID] = member.Meta.Name
	}
	return names
}

// removePeer takes a server out for good: first the log says that it is not to
// come back, so that nobody adds it again, then Raft's configuration changes.
func (s *site) removePeer(r *request) error {
	if err := s.house.raft.MayRemove(r.id); err != nil {
		return removalError(err, r.id)
	}
	if s.house.protocol() >= wire.ProtocolRemovals { // in an upgrade, servers of before would stop at the command
		if _, err := s.propose(r, structs.CommandServerRemoval, structs.ServerRemoval{ID: r.id}); err != nil {
			return err
		}
	}
	if err := s.house.raft.RemovePeer(r.Context(), r.id); err != nil {
		return removalError(err, r.id)
	}
	s.log.Warn("server removed by request", logkey.PeerID, r.id, logkey.User, r.caller.principal.ID)
	index := s.house.raft.AppliedIndex()
	r.setIndex(index)
	return r.reply(api.Changed{Index: index})
}

func removalError(err error, id string) error {
	switch {
	case errors.Is(err, consensus.ErrUnknownPeer):
		return auth.NotFound("server", id)
	case errors.Is(err, consensus.ErrLastVoter):
		return structs.NewError(structs.CodeConflict, "agent.last_voter", "id", id)
	}
	return raftError(err)
}

// addPeer lets a server that was removed back in: autopilot adds it as soon as
// it runs and has proven itself.
func (s *site) addPeer(r *request) error {
	if !s.store.Snapshot().Cluster().IsRemoved(r.id) {
		return structs.NewError(structs.CodeNotFound, "agent.not_removed", "id", r.id)
	}
	return s.change(r, structs.CommandServerRemoval, structs.ServerRemoval{ID: r.id, Back: true})
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

func (s *site) autopilot(r *request) error {
	views := s.house.views()
	leader, names := s.house.raft.LeaderID(), s.house.names()
	out := api.AutopilotHealth{Healthy: leader != "", FailureTolerance: failureTolerance(views), LeaderID: leader, Servers: []api.ServerHealth{}}
	for _, v := range views {
		if v.addr == "" {
			continue
		}
		healthy := v.alive && (v.self || v.heard) && !v.full
		out.Healthy = out.Healthy && healthy
		out.Servers = append(out.Servers, api.ServerHealth{
			RaftPeer: api.RaftPeer{ID: v.id, Name: names[v.id], Addr: v.addr, Voter: v.voter, Leader: v.id == leader},
			Status:   v.status(), Healthy: healthy, DiskFull: v.full, BackupFailed: v.backup,
		})
	}
	return r.reply(out)
}

// saveSnapshot writes an archive to a file first, so that its length is known
// and a reader can tell a whole one from a part.
func (s *site) saveSnapshot(r *request) error {
	if err := s.roomless(); err != nil {
		return err
	}
	spool, err := os.CreateTemp(s.spoolDir, "snapshot-")
	if err != nil {
		return err
	}
	defer func() {
		_ = spool.Close()
		_ = os.Remove(spool.Name())
	}()
	meta, err := s.house.raft.SnapshotSave(r.Context(), spool)
	if errors.Is(err, syscall.ENOSPC) {
		return s.house.roomless().Because(err)
	}
	if err != nil {
		return raftError(err)
	}
	size, err := spool.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s.log.Info("snapshot saved by request", logkey.Index, meta.Index, logkey.User, r.caller.principal.ID)
	h := r.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="nomadlike.snapshot"`)
	h.Set("Content-Length", formatInt(size))
	r.setIndex(meta.Index)
	_, _ = io.Copy(r.w, spool) // a reader that goes away misses bytes of Content-Length
	return nil
}

func (s *site) restoreSnapshot(r *request) error {
	q := query{r: r}
	options := consensus.RestoreOptions{AllowForeign: q.bool("foreign"), Revive: s.revive}
	if q.err != nil {
		return q.err
	}
	meta, err := s.house.raft.SnapshotRestore(r.Context(), io.LimitReader(r.Body, snapshotSizeMax), options)
	if err != nil {
		return snapshotError(err, meta)
	}
	s.log.Warn("state was replaced by request", logkey.Index, meta.Index, logkey.User, r.caller.principal.ID, logkey.TokenID, r.caller.token.ID)
	index := s.house.raft.AppliedIndex()
	r.setIndex(index)
	return r.reply(api.Changed{Index: index})
}

// revive makes the state of an archive fit for this cluster, of whichever it
// was.
func (s *site) revive(from io.Reader, to io.Writer, until time.Time) error {
	now := s.store.Snapshot()
	revival := structs.Revival{Now: structs.At(s.now()), Until: structs.At(until), Cluster: now.Cluster()}
	for token := range now.JoinTokens() {
		revival.JoinTokens = append(revival.JoinTokens, *token)
	}
	if err := state.Revive(from, to, revival); err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.snapshot_broken", "reason", err).Because(err)
	}
	return nil
}

func snapshotError(err error, meta consensus.Meta) error {
	switch {
	case errors.Is(err, consensus.ErrForeignSnapshot):
		return structs.NewError(structs.CodeConflict, "agent.snapshot_foreign", "cluster", meta.ClusterID).Because(err)
	case errors.Is(err, consensus.ErrBadSnapshot):
		return structs.NewError(structs.CodeInvalid, "agent.snapshot_broken", "reason", err).Because(err)
	}
	return raftError(err)
}

func (s *site) inspectSnapshot(r *request) error {
	meta, err := consensus.InspectSnapshot(io.LimitReader(r.Body, snapshotSizeMax))
	if err != nil {
		return snapshotError(err, meta)
	}
	return r.reply(api.SnapshotMeta{
		Cluster: meta.ClusterID, Index: meta.Index, Term: meta.Term, Size: meta.BodyBytes, SHA256: meta.SHA256, TakenAt: structs.At(meta.CreatedAt),
	})
}
