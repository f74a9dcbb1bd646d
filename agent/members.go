package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/structs"
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
}

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
	for _, member := range p.gossip.Members() {
		if member.Meta.Role != string(auth.RoleServer) {
			continue
		}
		v := view(member.ID)
		v.seenAddr, v.since = member.Meta.RPCAddr, now.Sub(member.Since)
		v.alive = member.State == gossip.StateAlive || member.State == gossip.StateSuspect
	}
	for _, health := range p.raft.Health() {
		v := view(health.ID)
		v.behind, v.heard = health.Behind, health.LastContact >= 0 && health.LastContact < time.Second
	}
	views := make([]serverView, len(order))
	for i, id := range order {
		views[i] = *byID[id]
	}
	return views
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

func (s *site) removePeer(r *request) error {
	err := s.house.raft.RemovePeer(r.Context(), r.id)
	switch {
	case errors.Is(err, consensus.ErrUnknownPeer):
		return auth.NotFound("server", r.id)
	case errors.Is(err, consensus.ErrLastVoter):
		return structs.NewError(structs.CodeConflict, "agent.last_voter", "id", r.id)
	case err != nil:
		return raftError(err)
	}
	s.log.Warn("server removed by request", logkey.PeerID, r.id, logkey.User, r.caller.principal.ID)
	index := s.house.raft.AppliedIndex()
	r.setIndex(index)
	return r.reply(api.Changed{Index: index})
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
		healthy := v.alive && (v.self || v.heard)
		out.Healthy = out.Healthy && healthy
		out.Servers = append(out.Servers, api.ServerHealth{
			RaftPeer: api.RaftPeer{ID: v.id, Name: names[v.id], Addr: v.addr, Voter: v.voter, Leader: v.id == leader},
			Status:   string(s.house.gossip.View(v.id).State), Healthy: healthy,
		})
	}
	return r.reply(out)
}

// saveSnapshot writes an archive to a file first, so that its length is known
// and a reader can tell a whole one from a part.
func (s *site) saveSnapshot(r *request) error {
	spool, err := os.CreateTemp(s.spoolDir, "snapshot-")
	if err != nil {
		return err
	}
	defer func() {
		_ = spool.Close()
		_ = os.Remove(spool.Name())
	}()
	meta, err := s.house.raft.SnapshotSave(r.Context(), spool)
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
	meta, err := s.house.raft.SnapshotRestore(r.Context(), io.LimitReader(r.Body, snapshotSizeMax), consensus.RestoreOptions{})
	if err != nil {
		return snapshotError(err, meta)
	}
	s.log.Warn("state was replaced by request", logkey.Index, meta.Index, logkey.User, r.caller.principal.ID, logkey.TokenID, r.caller.token.ID)
	index := s.house.raft.AppliedIndex()
	r.setIndex(index)
	return r.reply(api.Changed{Index: index})
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
